"""The second ring: what Python code may reach while it runs, whatever it was read as before.

Python reports files, processes, sockets and the like to audit hooks before they happen (PEP 578). Ours is installed once,
cannot be removed, and sleeps except while a run with grants goes on in the thread of that run. A refusal raises in the
code that asked, and is kept, so that code which swallows it does not hide it. What C++ does by itself (a node that is
saved) is not reported to Python; the check before the run and the person's answer cover that.
"""
import os
import sys
import tempfile
import threading

import slicer

_ident = threading.get_ident
_realpath, _fsdecode, _sep = os.path.realpath, os.fsdecode, os.sep
_getframe = sys._getframe
_str, _isinstance, _int, _bytes = str, isinstance, int, bytes
# In place of a folder: every file.
EVERYWHERE = "*"
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

PROCESS = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.startfile/2", "os.fork",
    "os.forkpty", "pty.spawn", "os.kill",
)
NETWORK = (
    "socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request",
    "http.client.connect", "ftplib.connect", "smtplib.connect", "imaplib.open", "poplib.connect", "webbrowser.open",
)
CHANGING = (
    "os.remove", "os.rmdir", "os.rename", "os.truncate", "os.link", "os.symlink", "os.chmod", "os.chown", "os.mkdir",
    "os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile", "shutil.make_archive", "shutil.unpack_archive",
    "sqlite3.connect",
)
# Refused when the code of the run itself asks; libraries use some of them honestly.
INTERNALS = ("ctypes.", "code.__new__", "marshal.loads", "winreg.", "sys.addaudithook", "gc.get_objects", "gc.get_referrers")


class Refused(PermissionError):
    """What the code wanted to do was not granted."""


class Grants:
    """What one run may do, and what it was refused."""

    def __init__(self, wanted, filename):
        self.thread, self.filename, self.refused = _ident(), filename, []
        self.network, self.process = wanted.get("network") is True, wanted.get("process") is True
        self.write = folders(wanted.get("write", ()), own_folders(), [os.devnull])
        libraries = [path for path in sys.path if path] + [sys.prefix, sys.base_prefix, str(slicer.app.slicerHome)]
        self.read = self.write + folders(wanted.get("read", ()), libraries)

    def judge(self, event, args):
        """Why this is refused, or None."""
        if event == "open":
            return self.judge_open(*args[:3])
        if event in PROCESS:
            return None if self.process else "starting or ending programs (%s)" % event
        if event in NETWORK:
            return None if self.network else "the network (%s)" % event
        if event in CHANGING:
            paths = [path for path in args if _isinstance(path, (_str, _bytes)) or hasattr(path, "__fspath__")]
            outside = next((path for path in paths if not within(path, self.write)), None)
            return None if outside is None else "changing %s (%s)" % (shown(outside), event)
        if event.startswith(INTERNALS) and self.asked_by_the_code():
            return "Python's internals (%s)" % event
        return None

    def judge_open(self, path, mode=None, flags=0):
        if _isinstance(path, _int) or path is None:
            return None  # already open
        if "__pycache__" in shown(path) and within(path, self.read):
            return None  # Python keeps what it compiled beside the libraries
        writes = any(letter in (mode or "") for letter in "wax+") if mode else bool((flags or 0) & WRITING)
        if within(path, self.write if writes else self.read):
            return None
        return "%s the file %s" % ("writing" if writes else "reading", shown(path))

    def asked_by_the_code(self):
        frame = _getframe(3)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "ctypes":
            frame = frame.f_back
        return frame.f_code.co_filename == self.filename


def own_folders():
    """Where Slicer itself keeps what comes and goes: its temporary files and its downloads."""
    cache = slicer.mrmlScene.GetCacheManager()
    paths = [slicer.app.temporaryPath, cache.GetRemoteCacheDirectory() if cache is not None else None]
    return [path for path in paths if _isinstance(path, str) and path]


def folders(*groups):
    return [EVERYWHERE if path == EVERYWHERE else _realpath(_fsdecode(path)) for group in groups for path in group]


def within(path, allowed):
    """Whether the path, links followed, is one of these or lies below one."""
    if EVERYWHERE in allowed:
        return True
    try:
        real = _realpath(_fsdecode(path))
    except (TypeError, ValueError):
        return False
    return any(real == folder or real.startswith(folder.rstrip(_sep) + _sep) for folder in allowed)


def shown(path):
    try:
        return _fsdecode(path)[:300]
    except (TypeError, ValueError):
        return "?"


_active = []


def _hook(event, args):
    if not _active:
        return
    grants = _active[-1]
    if _ident() != grants.thread:
        return
    _active.pop()  # what the judging itself does is not judged
    try:
        reason = grants.judge(event, args)
    finally:
        _active.append(grants)
    if reason is not None:
        if len(grants.refused) < 50:
            grants.refused.append(reason)
        raise Refused("not allowed here: " + reason)


sys.addaudithook(_hook)


def begin(wanted, filename):
    """Holds code to these grants until `end`; `None` holds it to nothing."""
    if wanted is None:
        return None
    tempfile.gettempdir()  # looks for a folder by writing a file, once
    grants = Grants(wanted, filename)
    _active.append(grants)
    return grants


def end(grants):
    """Puts the hook to sleep and gives what was refused."""
    if grants is None:
        return []
    _active.clear()
    return grants.refused
