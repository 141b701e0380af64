"""Holds a run of foreign code: a watchdog for time and stop, capture of what it prints, and repair of what it broke.

Python can only be interrupted between its instructions: the watchdog asks the interpreter to raise an exception of
ours in the running thread, and asks again while the code swallows it. Code that waits inside a C function is not
reached; the caller then finds Slicer busy.
"""
import _thread
import builtins
import ctypes
import io
import logging
import os
import sys
import time
import warnings

import vtk

from slicer_ai_agent_helper.text import clip, describe

# Kept from before any foreign code ran: it may replace them.
_set_async_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
_builtins_now = vars(builtins)
_builtins = dict(_builtins_now)
# Only what is written in C: Python's own threading and os.path call functions that code can replace.
_monotonic, _ident, _sleep = time.monotonic, _thread.get_ident, time.sleep
_start_thread, _Lock, _RLock = _thread.start_new_thread, _thread.allocate_lock, _thread.RLock
_current_frames = sys._current_frames
_armed = []

PERIOD = 0.02
AGAIN = 0.05
MAX_PRINTED = 200000
MAX_MESSAGES = 200


class TimeLimit(BaseException):
    """The run took longer than it may."""


class Stopped(BaseException):
    """The person stopped the run."""


def _existence():
    stat, os_error, value_error = os.stat, OSError, ValueError

    def exists(path):
        try:
            stat(path)
            return True
        except (os_error, value_error):
            return False

    return exists


_exists = _existence()


def repair_builtins():
    """Undoes what code did to Python's own functions. Calls none of them."""
    _builtins_now.update(_builtins)


class Watchdog:
    """Raises `TimeLimit` or `Stopped` in the thread that made it while it runs code of one file, until `disarm`.

    An exception of this kind arrives a little later than it is sent, so one may still come when the code has ended. It
    is sent only while a frame of the code is on the stack, so it is one at most, and none once `disarm` has returned.
    """

    def __init__(self, seconds, stop_path, filename):
        self.seconds, self.stop_path, self.filename = seconds, stop_path, filename
        self.number = _ident()
        self.target = ctypes.c_ulong(self.number)
        self.done, self.sending, self.over = False, _RLock(), _Lock()
        self.end = self.reason = None
        self.sent = False

    def start(self):
        """With a thread of its own, which nothing else can hold up."""
        self._arm()
        self.over.acquire()  # freed by `disarm`, which the thread waits for
        _start_thread(self._watcher(), ())

    def start_shared(self):
        """With the one thread of all short calls."""
        self._arm()
        _shared.look_after(self)

    def _arm(self):
        self.end = None if self.seconds is None else _monotonic() + self.seconds
        _armed.append(self)

    def _watcher(self):
        """What the thread does, with all of it in cells: code can replace the methods of this class."""
        over, sending, seconds_again, end, stop, number = self.over, self.sending, AGAIN, self.end, self.stop_path, self.number
        frames, filename, send, target, exists, clock = _current_frames, self.filename, _set_async_exception, self.target, _exists, _monotonic
        raised, stopped, late, period, box = ctypes.py_object, Stopped, TimeLimit, PERIOD, self

        def runs_the_code():
            frame = frames().get(number)
            while frame is not None:
                if frame.f_code.co_filename == filename:
                    return True
                frame = frame.f_back
            return False

        def watch():
            reason = None
            while not over.acquire(True, period if reason is None else seconds_again):
                if reason is None and stop and exists(stop):
                    reason = stopped
                if reason is None and end is not None and clock() >= end:
                    reason = late
                if reason is None:
                    continue
                box.reason = reason
                if runs_the_code() and sending.acquire(True, 1):
                    try:
                        if not box.done:
                            box.sent = True
                            send(target, raised(reason))
                    finally:
                        sending.release()

        return watch

    def look(self):
        """One look at the stop file and the clock."""
        if self.reason is None and self.stop_path and _exists(self.stop_path):
            self.reason = Stopped
        if self.reason is None and self.end is not None and _monotonic() >= self.end:
            self.reason = TimeLimit
        if self.reason is not None and self._runs_the_code():
            self._send()

    def _runs_the_code(self):
        frame = _current_frames().get(self.number)
        while frame is not None:
            if frame.f_code.co_filename == self.filename:
                return True
            frame = frame.f_back
        return False

    def _send(self):
        if self.sending.acquire(True, 1):
            try:
                if not self.done:
                    self.sent = True
                    _set_async_exception(self.target, ctypes.py_object(self.reason))
            finally:
                self.sending.release()

    def disarm(self):
        self.done = True
        if self.over.locked():
            self.over.release()
        with self.sending:  # what was being sent has been sent; what comes later sees that it is done
            pass
        if self.sent:
            # One that is still on its way arrives at the next turn of a loop, which is here. Taking it back instead would
            # leave the interpreter looking for it for ever, and a profiler or debugger then hangs Python 3.11.
            for _ in range(3):
                pass
        if self in _armed:
            _armed.remove(self)


class SharedThread:
    """Looks after calls that mostly take less time than the start of a thread does. It sleeps while there are none."""

    IDLE = 50

    def __init__(self):
        self.watched, self.asleep, self.thread = [], _Lock(), None
        self.asleep.acquire()

    def look_after(self, watchdog):
        self.watched = [one for one in self.watched if not one.done] + [watchdog]
        if self.thread is None:
            self.thread = _start_thread(self._watch, ())
        self._wake()

    def _wake(self):
        try:
            self.asleep.release()
        except RuntimeError:  # it is awake
            pass

    def _watch(self):
        while True:
            self.asleep.acquire()
            idle = 0
            while idle < self.IDLE:
                _sleep(PERIOD)
                watched = [one for one in self.watched if not one.done]
                idle = 0 if watched else idle + 1
                for one in watched:
                    one.look()


_shared = SharedThread()


def armed():
    """How many watchdogs are armed; runs inside runs leave the outer ones alone."""
    return len(_armed)


def disarm_all(keep=0):
    """Disarms all but the first `keep`. An exception of ours may still come inside, so it tries until it is through."""
    while len(_armed) > keep:
        try:
            _armed[-1].disarm()
        except (TimeLimit, Stopped):
            pass


class Printed(io.TextIOBase):
    """Takes the place of stdout or stderr; keeps at most `MAX_PRINTED` characters, the first and the last."""

    encoding = "utf-8"

    def __init__(self):
        self.head, self.tail, self.size = [], [], 0

    def writable(self):
        return True

    def write(self, text):
        text = text if isinstance(text, str) else str(text)
        (self.head if self.size < MAX_PRINTED // 2 else self.tail).append(text[:MAX_PRINTED])
        self.size += len(text)
        if len(self.tail) > 2000 or sum(map(len, self.tail[:50])) > MAX_PRINTED:
            joined = "".join(self.tail)[-MAX_PRINTED // 2 :]
            self.tail = [joined]
        return len(text)

    def flush(self):
        pass

    def text(self):
        whole = "".join(self.head)
        tail = "".join(self.tail)
        missing = self.size - len(whole) - len(tail)
        if missing > 0:
            whole += "\n[… %d characters left out …]\n" % missing
        return clip(whole + tail, MAX_PRINTED)


class LogKeeper(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        if len(self.lines) < MAX_MESSAGES:
            try:
                line = record.getMessage()
            except Exception:
                line = describe(record.msg)
            self.lines.append(clip("%s: %s" % (record.levelname, line), 2000))


class VtkMessages:
    """Stands in as VTK's output window and keeps what is written to it; passes it on afterwards."""

    def __init__(self):
        self.messages = []
        self.window = vtk.vtkStringOutputWindow()

        @vtk.calldata_type(vtk.VTK_STRING)
        def on_error(_caller, _event, text):
            self._keep("error", text)

        @vtk.calldata_type(vtk.VTK_STRING)
        def on_warning(_caller, _event, text):
            self._keep("warning", text)

        self.window.AddObserver("ErrorEvent", on_error)
        self.window.AddObserver("WarningEvent", on_warning)

    def _keep(self, kind, text):
        if len(self.messages) < MAX_MESSAGES:
            self.messages.append({"kind": kind, "text": clip((text or "").strip(), 4000)})

    def open(self):
        self.former = vtk.vtkOutputWindow.GetInstance()
        vtk.vtkOutputWindow.SetInstance(self.window)

    def close(self):
        vtk.vtkOutputWindow.SetInstance(self.former)
        self.window.RemoveAllObservers()
        for message in self.messages:  # Slicer's own error log keeps its record
            show = self.former.DisplayErrorText if message["kind"] == "error" else self.former.DisplayWarningText
            show(message["text"] + "\n")


def counted(path, name):
    """Bytes that the system tells in a line of one of its files."""
    with open(path, encoding="ascii", errors="replace") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) << 10


class MemoryLimit:
    """Lets an absurd allocation fail in the code that asked for it instead of making the system end Slicer.

    Only where the system counts what a process has (Linux); elsewhere the allocation fails by itself or the system swaps.
    """

    SPARE = 512 << 20

    def __init__(self):
        self.former = None

    def open(self):
        try:
            import resource

            free, used = counted("/proc/meminfo", "MemAvailable"), counted("/proc/self/status", "VmData")
            former = resource.getrlimit(resource.RLIMIT_DATA)
            limit = used + max(free - self.SPARE, self.SPARE)
            if former[0] == resource.RLIM_INFINITY or former[0] > limit:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, former[1]))
                self.former = former
        except (ImportError, OSError, ValueError, StopIteration, AttributeError):
            self.former = None

    def close(self):
        if self.former is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_DATA, self.former)


class Surroundings:
    """The interpreter's state around a run: captured streams and logs, and what is put right afterwards."""

    def open(self):
        self.out, self.err, self.log, self.vtk = Printed(), Printed(), LogKeeper(), VtkMessages()
        self.streams = (sys.stdout, sys.stderr)
        self.limit, self.trace, self.profile = sys.getrecursionlimit(), sys.gettrace(), sys.getprofile()
        self.interval = sys.getswitchinterval()
        self.hooks = (sys.excepthook, sys.displayhook)
        self.root_level = logging.getLogger().level
        self.warnings = warnings.catch_warnings(record=True)
        self.caught = self.warnings.__enter__()
        warnings.simplefilter("always")
        logging.getLogger().addHandler(self.log)
        sys.stdout, sys.stderr = self.out, self.err
        self.vtk.open()

    def close(self):
        self.vtk.close()
        sys.stdout, sys.stderr = self.streams
        sys.settrace(self.trace)
        sys.setprofile(self.profile)
        sys.setrecursionlimit(self.limit)
        sys.excepthook, sys.displayhook = self.hooks
        sys.setswitchinterval(self.interval)
        logging.getLogger().removeHandler(self.log)
        self.warnings.__exit__(None, None, None)
        self.warned = [
            clip("%s: %s (line %s)" % (one.category.__name__, one.message, one.lineno), 2000)
            for one in self.caught[:MAX_MESSAGES]
        ]
