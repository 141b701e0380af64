"""The event loop: sockets, timers, posted calls and idle work, all on the main thread.

Slicer answers web requests between other events of its Qt loop and lets code run that loop from inside
(`slicer.app.processEvents()`).  This loop has the same order and the same re-entry, so that scripts meet the same
surprises.  When nothing happens it sleeps: sockets and signals wake it.
"""

import heapq
import itertools
import os
import select
import selectors
import signal
import socket
import sys
import time
import traceback

IDLE_DELAY = 0.03  # seconds of quiet before the idle work (drawing) is done
LONGEST_SLEEP = 30.0  # seconds


class EventLoop:
    """Runs slots for ready sockets and due timers.  One instance, `loop`, serves the whole process."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.notifiers = {}  # file descriptor -> {selectors event: [notifier]}
        self.timers = []  # heap of [due time, sequence number, function or None when cancelled]
        self.posted = []
        self.sequence = itertools.count()
        self.quit = False
        self.running = False
        self.exit_code = 0
        self.idle = []  # called when nothing else is to be done, once after each burst of events
        self._wakeup = None  # the socket pair that signals write to

    def add_notifier(self, notifier):
        by_event = self.notifiers.setdefault(notifier.fd, {})
        by_event.setdefault(notifier.mask, []).append(notifier)
        self._register(notifier.fd)

    def remove_notifier(self, notifier):
        by_event = self.notifiers.get(notifier.fd)
        if by_event and notifier in by_event.get(notifier.mask, []):
            by_event[notifier.mask].remove(notifier)
            self._register(notifier.fd)

    def _register(self, fd):
        """Tell the selector which events of `fd` somebody waits for."""
        mask = 0
        for event, listeners in self.notifiers.get(fd, {}).items():
            if listeners:
                mask |= event
        known = fd in self.selector.get_map()
        if mask and known:
            self.selector.modify(fd, mask)
        elif mask:
            self.selector.register(fd, mask)
        elif known:
            self.selector.unregister(fd)
        if not mask:
            self.notifiers.pop(fd, None)

    def after(self, seconds, function):
        """Call `function` after `seconds`.  Returns a handle for cancel()."""
        timer = [time.monotonic() + seconds, next(self.sequence), function]
        heapq.heappush(self.timers, timer)
        return timer

    def cancel(self, timer):
        if timer is not None:
            timer[2] = None

    def post(self, function):
        """Call `function` in the next round."""
        self.posted.append(function)

    def process(self, wait=0.0):
        """One round: posted calls, ready sockets, due timers; sleeps up to `wait` seconds.  True if anything ran."""
        while self.timers and self.timers[0][2] is None:
            heapq.heappop(self.timers)
        if self.posted:
            wait = 0.0
        elif self.timers:
            wait = max(0.0, min(wait, self.timers[0][0] - time.monotonic()))
        posted, self.posted = self.posted, []
        for function in posted:
            call_slot(function)
        ready = self._select(wait)
        for key, mask in ready:
            if self._wakeup and key.fileobj is self._wakeup[0]:
                key.fileobj.recv(64)
            for event in (selectors.EVENT_READ, selectors.EVENT_WRITE):
                if mask & event:
                    for notifier in list(self.notifiers.get(key.fd, {}).get(event, [])):
                        notifier.fire()
        return self._run_due_timers() or bool(posted) or bool(ready)

    def _run_due_timers(self):
        now, ran = time.monotonic(), False
        while self.timers and self.timers[0][0] <= now:
            timer = heapq.heappop(self.timers)
            if timer[2] is not None:
                call_slot(timer[2])
                ran = True
        return ran

    def _select(self, wait):
        if not self.selector.get_map():
            if wait:
                time.sleep(wait)
            return []
        try:
            return self.selector.select(wait)
        except OSError:
            self._drop_closed()
            return []

    def _drop_closed(self):
        """Forget sockets that code closed without switching off their notifier."""
        for fd in list(self.notifiers):
            try:
                select.select([fd], [], [], 0)
            except (OSError, ValueError):
                try:
                    self.selector.unregister(fd)
                except (KeyError, ValueError):
                    pass  # the selector has already forgotten it
                self.notifiers.pop(fd, None)

    def run(self):
        """Run until `quit` is set.  Returns the exit code."""
        self.running = True
        settled = False  # the idle work after the last event has been done
        while not self.quit:
            if self.process(LONGEST_SLEEP if settled else IDLE_DELAY):
                settled = False
            elif not settled:
                for function in self.idle:
                    call_slot(function)
                settled = True
        return self.exit_code

    def stop_on_signals(self):
        """End the loop on SIGINT and SIGTERM, also while it sleeps and while code runs."""
        reading, writing = socket.socketpair()
        reading.setblocking(False)
        writing.setblocking(False)
        signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        self.selector.register(reading, selectors.EVENT_READ)
        self._wakeup = (reading, writing)

        def stop(number, frame):
            if self.quit:
                os._exit(0)  # asked twice: the running code does not let go
            self.quit = True
            if _depth or not self.running:  # get out of the code that runs, or of the start
                raise SystemExit(0)

        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGTERM, stop)


_depth = 0  # how many slots are running inside one another


def call_slot(function, *args):
    """Call a slot as Qt does: surplus arguments are dropped, exceptions are printed and go no further."""
    global _depth
    _depth += 1
    try:
        return function(*args)
    except TypeError as error:
        raised_at_the_call = error.__traceback__.tb_next is None
        if args and raised_at_the_call and "positional argument" in str(error):
            return call_slot(function, *args[:-1])
        traceback.print_exc(file=sys.stderr)
    except SystemExit as stop:
        loop.quit = True
        loop.exit_code = stop.code if isinstance(stop.code, int) else 0
    except BaseException:  # KeyboardInterrupt too: PythonQt prints it and goes on
        traceback.print_exc(file=sys.stderr)
    finally:
        _depth -= 1
    return None


loop = EventLoop()
