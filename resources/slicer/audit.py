"""The second ring: what Python code may reach while it runs, whatever it was read as before.

Python reports files, processes, sockets and the like to audit hooks before they happen (PEP 578). Ours is installed once
and cannot be removed. While a run with grants goes on it judges every thread but those that were there before: code can
start threads, and they outlive the run, so they stay held after it. Between runs it looks only at what changes things,
and only for functions that runs left behind (timers, observers). A refusal raises in the code that asked, and is kept, so
that code which swallows it does not hide it. What C++ does by itself (a node that is saved) is not reported to Python; the
check before the run and the person's answer cover that.

Everything that the hook uses lies in the cells of one function, with copies of what it needs of Python's library, and in
objects whose types cannot be changed; what leads there from outside is behind `opaque`. Code that replaces functions or
classes of the library, or of this helper, does not reach it.
"""
import builtins
import functools
import importlib.util
import os
import stat
import sys
import tempfile
import threading
import types

import slicer

# In place of a folder or a module: every one.
EVERYWHERE = "*"
LIBRARY_FILES = ("<frozen ", "<slicer_ai_agent_helper.", "<__array_function__")

PROCESS = frozenset((
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.startfile/2", "os.fork",
    "os.forkpty", "pty.spawn", "os.kill", "os.killpg", "signal.pthread_kill", "_winapi.CreateProcess",
    "_winapi.TerminateProcess", "_posixsubprocess.fork_exec",
))
NETWORK = frozenset((
    "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr", "socket.getnameinfo", "urllib.Request", "http.client.connect", "http.client.send",
    "ftplib.connect", "smtplib.connect", "imaplib.open", "poplib.connect", "nntplib.connect", "telnetlib.Telnet.open",
    "webbrowser.open",
))
CHANGING = frozenset((
    "os.remove", "os.rmdir", "os.rename", "os.truncate", "os.link", "os.symlink", "os.chmod", "os.chown", "os.mkdir",
    "os.utime", "os.setxattr", "os.removexattr", "os.chflags", "os.lockf", "shutil.rmtree", "shutil.move", "shutil.copyfile",
    "shutil.copymode", "shutil.copystat", "shutil.copytree", "shutil.chown", "shutil.make_archive", "shutil.unpack_archive",
    "sqlite3.connect",
))
# Which arguments of these name what is changed; of the others every path does.
CHANGED_ARGUMENTS = {
    "shutil.copyfile": slice(1, 2), "shutil.copymode": slice(1, 2), "shutil.copystat": slice(1, 2), "shutil.copytree": slice(1, 2),
    "shutil.make_archive": slice(0, 1), "shutil.unpack_archive": slice(1, 2), "shutil.chown": slice(0, 1),
    "os.setxattr": slice(0, 1), "os.removexattr": slice(0, 1),
}
LISTING = frozenset(("os.listdir", "os.scandir", "os.getxattr", "os.listxattr"))
# Nobody sits at a keyboard of the run; they would wait for ever.
WAITING = frozenset(("builtins.input", "builtins.breakpoint"))
# Refused when the code of the run itself asks; libraries use them honestly.
INTERNALS = frozenset((
    "compile", "exec", "code.__new__", "function.__new__", "marshal.loads", "marshal.load", "pickle.find_class",
    "sys.addaudithook", "sys.settrace", "sys.setprofile", "sys._current_frames", "sys._current_exceptions",
    "sys.monitoring.register_callback", "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sqlite3.load_extension",
    "sqlite3.enable_load_extension", "resource.setrlimit", "resource.prlimit", "os.add_dll_directory", "setopencodehook",
))
INTERNAL_FAMILIES = ("ctypes.", "winreg.", "msvcrt.", "_xxsubinterpreters.", "cpython.run_")
READ_ATTRIBUTES = frozenset(("tb_frame", "gi_frame", "cr_frame", "ag_frame", "gi_code", "cr_code", "ag_code", "__code__", "f_code"))
SET_ATTRIBUTES = frozenset(("__code__", "__defaults__", "__kwdefaults__"))
# Functions of these modules hand frames to whoever calls them.
FRAME_GIVERS = frozenset(("inspect", "logging", "traceback"))
# What is looked at for functions that a run left behind.
LATER = PROCESS | NETWORK | CHANGING | {"open"}


class Refused(PermissionError):
    """What the code wanted to do was not granted."""


def opaque(function):
    """A callable that does what the function does and does not lead to it: neither to its globals nor to its cells."""
    closed = functools.lru_cache(maxsize=0)(lambda *arguments, **named: function(*arguments, **named))
    del closed.__wrapped__
    return closed


def private_paths():
    """A copy of Python's own path functions that nobody else holds."""
    module = importlib.util.module_from_spec(os.path.__spec__)
    module.__dict__["__builtins__"] = dict(vars(builtins))
    os.path.__spec__.loader.exec_module(module)
    module.os, module.stat = types.SimpleNamespace(**vars(os)), types.SimpleNamespace(**vars(stat))
    return module


def own_folders():
    """Where Slicer itself keeps what comes and goes: its temporary files and its downloads."""
    cache = slicer.mrmlScene.GetCacheManager()
    paths = [slicer.app.temporaryPath, cache.GetRemoteCacheDirectory() if cache is not None else None]
    return [path for path in paths if isinstance(path, str) and path]


def library_folders():
    return [path for path in sys.path if path] + [sys.prefix, sys.base_prefix, str(slicer.app.slicerHome)]


def build():
    """Installs the hook; gives `begin`, `end`, `refuse` and the importer for the code of runs."""
    isinstance, any, str, len, getattr = builtins.isinstance, builtins.any, builtins.str, builtins.len, builtins.getattr
    int, bytes, bool, type, next, iter = builtins.int, builtins.bytes, builtins.bool, builtins.type, builtins.next, builtins.iter
    list, frozenset, TypeError, ValueError = builtins.list, builtins.frozenset, builtins.TypeError, builtins.ValueError
    paths = private_paths()
    realpath, fsdecode, sep = paths.realpath, os.fsdecode, os.sep
    fspath, getcwd = os.fspath, os.getcwd
    ident, frames_now, frame_here = threading.get_ident, sys._current_frames, sys._getframe
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    process, network, changing, listing, waiting = PROCESS, NETWORK, CHANGING, LISTING, WAITING
    changed_arguments, whole = dict(CHANGED_ARGUMENTS), builtins.slice(None)
    internals, families, later = INTERNALS, INTERNAL_FAMILIES, LATER
    read_attributes, set_attributes, givers, library = READ_ATTRIBUTES, SET_ATTRIBUTES, FRAME_GIVERS, LIBRARY_FILES
    everywhere, devnull, grants_type, refused_type = EVERYWHERE, os.devnull, types.SimpleNamespace, Refused
    temporary_folder, own, libraries = tempfile.gettempdir, own_folders, library_folders
    # Runs that go on (one), threads that outlived theirs, grants by the file name of the code, threads that judge.
    runs, left, known, judging = [], [], {}, {}

    def shown(path):
        try:
            return fsdecode(path)[:300]
        except (TypeError, ValueError):
            return "?"

    def resolved(*groups):
        return [everywhere if path == everywhere else realpath(fsdecode(path)) for group in groups for path in group]

    def within(path, allowed):
        """Whether the path, links followed, is one of these or lies below one."""
        if everywhere in allowed:
            return True
        try:
            real = realpath(fsdecode(path))
        except (TypeError, ValueError):
            return False
        for folder in allowed:
            if real == folder or real.startswith(folder.rstrip(sep) + sep):
                return True
        return False

    def is_code(frame, filename):
        """Whether a frame is the code of the run, or code that it made out of text."""
        file = frame.f_code.co_filename
        return file == filename or (file[:1] == "<" and not file.startswith(library))

    def asked(frame, filename):
        """Whether the code itself asks: the nearest frame that is not of ctypes is its own."""
        while frame is not None:
            if is_code(frame, filename):
                return True
            if str(frame.f_globals.get("__name__", "")).partition(".")[0] != "ctypes":
                return False
            frame = frame.f_back
        return False

    def loads(frame, filename):
        """Whether the code, through whatever library, calls for C code now. A module that is being imported may."""
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return False
            if is_code(frame, filename):
                return True
            frame = frame.f_back
        return False

    def gets_a_frame(frame, filename):
        if is_code(frame, filename):
            return True
        back = frame.f_back
        return frame.f_globals.get("__name__") in givers and back is not None and is_code(back, filename)

    def judge_open(grants, path, mode=None, flags=0):
        if isinstance(path, int) or path is None:
            return None  # already open
        if "__pycache__" in shown(path) and within(path, grants.read):
            return None  # Python keeps what it compiled beside the libraries
        writes = any(letter in mode for letter in "wax+") if mode else bool((flags or 0) & writing)
        if within(path, grants.write if writes else grants.read):
            return None
        return "%s the file %s" % ("writing" if writes else "reading", shown(path))

    def judge_changing(grants, event, args):
        for path in args[changed_arguments.get(event, whole)]:
            if isinstance(path, int) or path is None or path == ":memory:":
                continue
            try:
                fspath(path)
            except TypeError:  # no path
                continue
            if not within(path, grants.write):
                return "changing %s (%s)" % (shown(path), event)
        return None

    def judge_inside(grants, event, args, frame):
        """Judges what only matters when the code itself asks for it."""
        filename = grants.filename
        if event == "object.__getattr__":
            if args[1] in read_attributes and gets_a_frame(frame, filename):
                return "Python's internals (%s)" % args[1]
        elif event == "object.__setattr__":
            if args[1] in set_attributes and asked(frame, filename):
                return "Python's internals (%s)" % args[1]
        elif event == "sys._getframe":
            if gets_a_frame(frame, filename):
                return "Python's internals (%s)" % event
        elif event == "ctypes.dlopen":
            if loads(frame, filename):
                return "C code that is loaded by name (%s)" % event
        elif (event in internals or event.startswith(families)) and asked(frame, filename):
            made = event in ("compile", "exec", "code.__new__", "function.__new__", "marshal.loads", "marshal.load")
            return "running code that is made while it runs (%s)" % event if made else "Python's internals (%s)" % event
        return None

    def judge(grants, event, args, frame):
        """Why this is refused, or None."""
        if event == "open":
            return judge_open(grants, *args[:3])
        if event in process:
            return None if grants.process else "starting or ending programs (%s)" % event
        if event in network:
            return None if grants.network else "the network (%s)" % event
        if event in changing:
            return judge_changing(grants, event, args)
        if event in listing:
            path = args[0] if args and args[0] is not None else getcwd()
            if isinstance(path, int) or within(path, grants.read):
                return None
            return "reading the folder %s" % shown(path)
        if event in waiting:
            return "waiting for the keyboard (%s)" % event
        return judge_inside(grants, event, args, frame)

    def bottom(frame):
        while frame.f_back is not None:
            frame = frame.f_back
        return frame

    def held_by(number, frame, event):
        """The grants that hold this thread now, or None."""
        if runs:
            grants = runs[-1]
            if number != grants.main and grants.trusted.get(number) is bottom(frame):
                return None
            return grants
        base = bottom(frame)
        for thread, first, grants in left:
            if thread == number and first is base:
                return grants
        while frame is not None:  # a function that a run left behind
            grants = known.get(frame.f_code.co_filename)
            if grants is not None:
                return grants
            frame = frame.f_back
        return None

    def refuse(reason, grants=None):
        grants = grants or (runs[-1] if runs else None)
        if grants is not None and len(grants.refused) < 50 and reason not in grants.refused:
            grants.refused.append(reason)
        raise refused_type("not allowed here: " + reason)

    def hook(event, args):
        if not runs and (event not in later or not known):
            return
        number = ident()
        if number in judging:
            return
        judging[number] = True  # what the judging itself does is not judged
        try:
            frame = frame_here(1)
            grants = held_by(number, frame, event)
            reason = None if grants is None else judge(grants, event, args, frame)
        finally:
            del judging[number]
        if reason is not None:
            refuse(reason, grants)

    def from_code():
        """Whether code of a run is on the stack above our own entry: it must not steer what holds it."""
        frame, filename = frame_here(2), runs[-1].filename if runs else None
        while frame is not None and filename is not None:
            if frame.f_code.co_filename == filename:
                return True
            frame = frame.f_back
        return False

    def threads():
        return {number: bottom(frame) for number, frame in frames_now().items()}

    def begin(wanted, filename):
        """Holds code to these grants until `end`; `None` holds it to nothing."""
        if wanted is None or runs:
            return None
        temporary_folder()  # looks for a folder by writing a file, once
        grants = grants_type()
        grants.filename, grants.refused, grants.main = filename, [], ident()
        grants.network, grants.process = wanted.get("network") is True, wanted.get("process") is True
        grants.quit = wanted.get("quit") is True
        grants.write = resolved(wanted.get("write", ()), own(), [devnull])
        grants.read = grants.write + resolved(wanted.get("read", ()), libraries())
        modules = wanted.get("modules")
        grants.modules = None if modules is None or everywhere in modules else frozenset(modules)
        grants.trusted = threads()
        left[:] = [one for one in left if grants.trusted.get(one[0]) is one[1]]
        for number, _, _ in left:
            grants.trusted.pop(number, None)
        judging.clear()
        while len(known) >= 50:
            del known[next(iter(known))]
        known[filename] = grants
        runs.append(grants)
        return grants

    def end(grants):
        """Ends the hold. Gives what was refused, and how many threads of the code still run (they stay held)."""
        if grants is None or from_code():
            return [], 0
        judging[ident()] = True
        try:
            now = threads()
            now.pop(grants.main, None)
            before = len(left)
            for number, base in now.items():
                ours = base.f_code.co_filename.startswith("<slicer_ai_agent_helper.")  # the watchdog, on its way out
                if grants.trusted.get(number) is not base and not ours:
                    left.append((number, base, grants))
            grants.trusted = {}
            del runs[:]
        finally:
            del judging[ident()]
        return list(grants.refused), len(left) - before

    def importer(true_import):
        """The `__import__` of a run's code, which knows the modules that were granted."""

        def guarded(name, globals=None, locals=None, fromlist=(), level=0):
            grants = runs[-1] if runs else None
            if grants is not None and grants.modules is not None and not level and type(name) is str:
                part, granted = name, False
                while part and not granted:
                    granted, part = part in grants.modules, part.rpartition(".")[0]
                if not granted:
                    refuse("the module %s" % name[:100])
            return true_import(name, globals, locals, fromlist, level)

        return opaque(guarded)

    def may(what):
        """Whether the run that goes on may do this (`quit`, `process`, …); without a run everything may be done."""
        return getattr(runs[-1], what) if runs else True

    sys.addaudithook(hook)
    return opaque(begin), opaque(end), opaque(refuse), opaque(importer), opaque(may)


begin, end, refuse, importer, may = build()
