"""Keeps Python's and Slicer's own functions whole around a run, and the helper out of reach of the code.

Code can replace a function of a module that everybody shares, by mistake or on purpose, and the next run, Slicer itself or
the person's console would then use it. So the modules that count are compared by identity before and after, and what was
replaced or removed is put back; new names are left alone. Some functions have no audit event and end or freeze Slicer at
once: they are exchanged while the code runs.
"""
import functools
import sys
import time
import types

import slicer

from slicer_ai_agent_helper import audit

WATCHED = (
    "slicer.util", "os", "os.path", "posix", "nt", "genericpath", "io", "sys", "json", "ast", "threading", "time", "shutil",
    "tempfile", "subprocess", "socket", "logging", "traceback", "linecache", "importlib", "importlib.util", "inspect", "stat",
    "hashlib", "functools", "re", "numpy",
)
FUNCTIONS = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
# Not ours to put back: the run's own capture, and what a debugger or the console sets.
LEFT_ALONE = {("sys", name) for name in ("stdout", "stderr", "stdin", "excepthook", "displayhook")}
STANDARD = frozenset(getattr(sys, "stdlib_module_names", ()))
_modules = sys.modules
_sleep, _monotonic = time.sleep, time.monotonic
_refuse, _may, opaque = audit.refuse, audit.may, audit.opaque
_MISSING = object()
SLICE = 0.05
# Deeper recursion overflows the stack of older Pythons, which ends Slicer.
DEEPEST = 5000


class Whole:
    """What the shared modules hold now, to be put back."""

    def __init__(self):
        self.held = []
        for name in WATCHED:
            module = _modules.get(name)
            if module is not None:
                names = {key: value for key, value in vars(module).items() if isinstance(value, FUNCTIONS)}
                self.held.append((name, vars(module), names))
        self.loaded = {name: module for name, module in _modules.items() if name.partition(".")[0] in STANDARD}
        self.own = {name: module for name, module in _modules.items() if name.partition(".")[0] == "slicer_ai_agent_helper"}
        self.finders = (list(sys.meta_path), list(sys.path_hooks))

    def put_back(self):
        """Puts back what was replaced or removed, and gives its names."""
        changed = []
        for module, now, names in self.held:
            for key, value in names.items():
                if now.get(key) is not value and (module, key) not in LEFT_ALONE:
                    now[key] = value
                    changed.append("%s.%s" % (module, key))
        for loaded in (self.loaded, self.own):
            for name, module in loaded.items():
                if _modules.get(name) is not module:
                    _modules[name] = module
                    changed.append("sys.modules[%r]" % name)
        for now, was in zip((sys.meta_path, sys.path_hooks), self.finders):
            if now != was:
                now[:] = was
                changed.append("the importers of Python")
        return changed[:20]


def interruptible_sleep(seconds):
    """`time.sleep` in slices: a stop or the time limit then reaches code that waits."""
    end = _monotonic() + seconds
    if seconds < SLICE or seconds > 1e8:
        return _sleep(seconds) if seconds < SLICE else _sleep_for_ever()
    while True:
        rest = end - _monotonic()
        if rest <= 0:
            return None
        _sleep(rest if rest < SLICE else SLICE)


def _sleep_for_ever():
    while True:
        _sleep(SLICE)


def _door(what, needs, true):
    """Stands in for a function without an audit event that needs a grant."""

    def closed(*arguments, **named):
        if needs is not None and _may(needs):
            return true(*arguments, **named)
        return _refuse(what)

    return closed


class Exchanged:
    """Functions that are exchanged while code runs, in their modules and in the namespace that the code gets."""

    def __init__(self, more=()):
        self.pairs = []
        self._exchange(time, "sleep", lambda true: interruptible_sleep)
        self._exchange(sys, "setrecursionlimit", lambda true: lambda number: true(min(number, DEEPEST)))
        self._exchange(sys, "setswitchinterval", lambda true: _door("holding up the other threads", None, true))
        for name in ("os", "posix", "nt"):
            for key in ("_exit", "abort"):
                module = _modules.get(name)
                if module is not None:
                    self._exchange(module, key, lambda true: _door("ending Slicer", "quit", true))
        for key in ("quit", "exit", "restart"):
            self._exchange(slicer.util, key, lambda true: _door("ending Slicer", "quit", true))
        for key in ("exit", "quit", "restart", "terminate"):
            owner = next((kind for kind in type(slicer.app).__mro__ if key in vars(kind)), slicer.app)
            self._exchange(owner, key, lambda true: _door("ending Slicer", "quit", true))
        for holder, key, replacement in more:
            self._exchange(holder, key, lambda true, replacement=replacement: replacement)
        self.names, self.changed = None, []

    def _exchange(self, holder, key, make):
        true = getattr(holder, key, None)
        if true is not None:
            raw = getattr(holder, "__dict__", {}).get(key, _MISSING)  # a class method is not what it gives
            self.pairs.append((holder, key, true, opaque(make(true)), raw))

    def open(self, names):
        for holder, key, _, replacement, _ in self.pairs:
            try:
                setattr(holder, key, replacement)
            except Exception:  # an object of Qt that takes no attributes stays as it is
                continue
        swaps = {id(true): replacement for _, _, true, replacement, _ in self.pairs}
        self.names, self.changed = names, []
        for key, value in list(names.items()):
            if id(value) in swaps:
                self.changed.append((key, value, swaps[id(value)]))
                names[key] = swaps[id(value)]

    def close(self):
        for holder, key, _, _, raw in self.pairs:
            try:
                if raw is _MISSING:
                    delattr(holder, key)
                else:
                    setattr(holder, key, raw)
            except Exception:
                continue
        for key, value, replacement in self.changed:
            if self.names.get(key) is replacement:
                self.names[key] = value


def restorer(package):
    """A function that puts back the names and classes of the helper itself. Code can find them through the list of all
    classes, so this is done whenever a call comes in and when a run has ended."""
    parts = [module for name, module in _modules.items() if name.startswith(package.__name__ + ".")]
    own = vars(parts[0])["__builtins__"]
    kept_builtins, spaces, classes = dict(own), [], []
    for module in parts:
        space = vars(module)
        spaces.append((space, dict(space)))
        for value in space.values():
            if type(value) is type and value.__module__ == module.__name__:
                kept = {k: v for k, v in vars(value).items() if k not in ("__dict__", "__weakref__", "__doc__")}
                classes.append((value, vars(value), kept))
    set_attribute = type.__setattr__

    def restore():
        own.update(kept_builtins)
        for space, kept in spaces:
            space.update(kept)
        for kind, now, kept in classes:
            for name, value in kept.items():
                if now.get(name) is not value:
                    set_attribute(kind, name, value)

    return restore


def seal(package):
    """Takes the helper's parts out of `sys.modules`; what stays there are two callables that lead to nothing."""
    call, execute = package.core.call, package.plain.execute
    closed = opaque(lambda: restore())
    package.run.restore = closed  # before the names are noted: it is one of them
    restore = restorer(package)

    def whole_call(request):
        restore()
        return call(request)

    def whole_execute(names, request):
        restore()
        return execute(names, request)

    package.call, package.execute = opaque(whole_call), opaque(whole_execute)
    for name in [name for name in _modules if name.startswith(package.__name__ + ".")]:
        delattr(package, name.rpartition(".")[2])
        del _modules[name]
