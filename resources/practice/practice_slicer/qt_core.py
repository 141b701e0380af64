"""Stand-in for the object system of Qt: signals, properties, timers, socket notifiers, settings.

Scripts written for Slicer expect PythonQt's habits: a property is an attribute (`w.text = "a"`) and has a setter too
(`w.setText("a")`), signals connect by text or by attribute, surplus signal arguments are dropped.  These classes only
remember what is set on them.  A name that nobody defined is made up on the spot and noted in `made_up`.
"""

import os
import selectors
import tempfile
import threading
import time
import types

from . import made_up
from .event_loop import call_slot, loop

# A name that ends so is taken for a signal when it is read from an object.
SIGNAL_ENDINGS = ("Changed", "clicked", "toggled", "triggered", "Activated", "activated")
SIGNAL_ENDINGS += ("timeout", "finished", "pressed", "released")


class Signal:
    """Slots that are called in the order in which they were connected."""

    def __init__(self, owner=None, name=""):
        self.owner, self.name, self.slots = owner, name, []

    def connect(self, slot, *rest):
        self.slots.append(slot)
        return True

    def disconnect(self, slot=None, *rest):
        if slot is None:
            self.slots.clear()
        elif slot in self.slots:
            self.slots.remove(slot)
        return True

    def emit(self, *args):
        for slot in list(self.slots):
            call_slot(slot, *args)

    __call__ = emit


class Made:
    """A made-up value: may be called (gives None) and connected to (nothing happens)."""

    def __init__(self, path):
        object.__setattr__(self, "_path", path)

    def __call__(self, *a, **k):
        return None

    def connect(self, *a):
        return True

    def disconnect(self, *a):
        return True

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made_up.note(f"{self._path}.{name}")
        return Made(f"{self._path}.{name}")

    def __int__(self):
        return 0

    __index__ = __int__

    def __or__(self, other):
        return other

    __ror__ = __or__

    def __repr__(self):
        return f"<made-up {self._path}>"


class UnknownNamesAreZero(type):
    """A class attribute that nobody defined is taken for an enumeration value: 0, and noted."""

    def __getattr__(cls, n):
        if n.startswith("_"):
            raise AttributeError(n)
        made_up.note(f"{cls.__name__}.{n} (enum)")
        return 0


class QObject(metaclass=UnknownNamesAreZero):
    """Remembers properties, signals, parent and children; see the module text.

    Names that begin with an underscore are this package's own and never become properties.
    """

    _defaults = {}

    def __init__(self, *args, **kw):
        self._props = {}
        self._signals = {}
        self._children = []
        self._parent = None
        self._layout = None
        for c in reversed(type(self).__mro__):
            self._props.update(c.__dict__.get("_defaults", {}))
        for a in args:
            if isinstance(a, QObject):
                self.setParent(a)
                if self.inherits("QLayout") and a._layout is None:
                    a._layout = self
            elif isinstance(a, str):
                self._props["text"] = a
                self._props.setdefault("title", a)

    # Identity.
    def className(self):
        return type(self).__name__

    def inherits(self, name):
        return any(c.__name__ == name for c in type(self).__mro__)

    def metaObject(self):
        return types.SimpleNamespace(className=self.className)

    # The tree of objects.
    def setParent(self, p):
        old = self._parent
        if old is not None and self in old._children:
            old._children.remove(self)
        self._parent = p
        if p is not None:
            p._children.append(self)

    def parent(self):
        return self._parent

    parentWidget = parent

    def children(self):
        return list(self._children)

    def findChildren(self, cls=None, name=None):
        out = []
        for c in self._children:
            ok = (
                cls is None
                or (isinstance(cls, str) and c.inherits(cls))
                or (isinstance(cls, type) and isinstance(c, cls))
            )
            if ok and (not name or c.objectName == name):
                out.append(c)
            out += c.findChildren(cls, name)
        return out

    def findChild(self, cls=None, name=None):
        found = self.findChildren(cls, name)
        return found[0] if found else None

    def deleteLater(self):
        self.setParent(None)

    delete = deleteLater

    # Signals.
    def _signal(self, name):
        name = name.split("(")[0].strip()
        return self._signals.setdefault(name, Signal(self, name))

    def connect(self, signal, *slot):
        if len(slot) == 1:
            self._signal(signal).connect(slot[0])
        return True

    def disconnect(self, signal=None, *slot):
        if signal is None:
            self._signals.clear()
        elif len(slot) == 1:
            self._signal(signal).disconnect(slot[0])
        else:
            self._signals.pop(signal.split("(")[0], None)
        return True

    def emit(self, signal, *args):
        self._signal(signal).emit(*args)

    def blockSignals(self, b):
        was = self._props.get("signalsBlocked", False)
        self._props["signalsBlocked"] = b
        return was

    def _emit(self, name, *args):
        if not self._props.get("signalsBlocked"):
            s = self._signals.get(name)
            if s:
                s.emit(*args)

    # Properties.
    def setProperty(self, n, v):
        self._props[n] = v

    def property(self, n):
        return self._props.get(n)

    def __setattr__(self, name, value):
        ours = name.startswith("_") or name in self.__dict__
        if ours or any(isinstance(c.__dict__.get(name), property) for c in type(self).__mro__):
            object.__setattr__(self, name, value)
            return
        self._setProp(name, value)

    def _setProp(self, name, value):
        if name == "objectName" or name == "name":
            self._props["objectName"] = self._props["name"] = value
            return
        old = self._props.get(name)
        self._props[name] = value
        if old != value:
            self._emit(name + "Changed", value)
            if name == "checked":
                self._emit("toggled", value)
                self._emit("clicked", value)
                self._emit("stateChanged", 2 if value else 0)

    def __getattr__(self, name):
        props = self.__dict__.get("_props")
        if name.startswith("_") or props is None:
            raise AttributeError(name)
        if name in props:
            return props[name]
        if name in ("objectName", "name"):
            return ""
        if name.startswith("set") and len(name) > 3 and name[3].isupper():
            prop = name[3].lower() + name[4:]
            return lambda *a: self._setProp(prop, a[0] if len(a) == 1 else a)
        if name in self._signals or name.endswith(SIGNAL_ENDINGS):
            return self._signal(name)
        made_up.note(f"{type(self).__name__}.{name}")
        return Made(f"{type(self).__name__}.{name}")

    def __bool__(self):
        return True

    def __repr__(self):
        return f"{type(self).__name__} ({type(self).__name__} at: {hex(id(self))})"


class QSocketNotifier(QObject):
    """Emits `activated(fd)` when the socket can be read (or written)."""

    Read, Write, Exception = 0, 1, 2

    def __init__(self, fd, kind, parent=None):
        super().__init__()
        self._fd = fd
        self._mask = selectors.EVENT_WRITE if kind == self.Write else selectors.EVENT_READ
        self._on = True
        loop.add_notifier(self)

    @property
    def fd(self):
        return self._fd

    @property
    def mask(self):
        return self._mask

    def fire(self):
        if self._on:
            self._signal("activated").emit(self.fd)

    def setEnabled(self, on):
        if bool(on) == self._on:
            return
        self._on = bool(on)
        (loop.add_notifier if on else loop.remove_notifier)(self)

    def disconnect(self, signal=None, *slot):
        super().disconnect(signal, *slot)
        if not any(s.slots for s in self._signals.values()):
            loop.remove_notifier(self)
        return True


class QTimer(QObject):
    """A timer on the event loop; intervals in milliseconds."""

    _defaults = {"interval": 0, "active": False}

    def __init__(self, *a):
        super().__init__(*[x for x in a if isinstance(x, QObject)])
        self._item = None
        self._single = False

    # PythonQt lets `t.singleShot = True` set the property and `QTimer.singleShot(ms, fn)` call the static function
    def __setattr__(self, name, value):
        if name == "singleShot":
            self._single = bool(value)
        else:
            super().__setattr__(name, value)

    @staticmethod
    def singleShot(ms, *slot):
        fn = slot[-1]
        if callable(fn):
            loop.after(ms / 1000.0, fn)

    def setSingleShot(self, v):
        self._single = bool(v)

    def setInterval(self, ms):
        self._props["interval"] = ms

    def start(self, ms=None):
        if ms is not None:
            self._props["interval"] = ms
        self.stop()
        self._props["active"] = True
        self._item = loop.after(self._props["interval"] / 1000.0, self._tick)

    def stop(self):
        loop.cancel(self._item)
        self._item = None
        self._props["active"] = False

    def isActive(self):
        return self._props["active"]

    def _tick(self):
        if not self._props["active"]:
            return
        if self._single:
            self._props["active"] = False
        else:
            self._item = loop.after(max(0.001, self._props["interval"] / 1000.0), self._tick)
        self._signal("timeout").emit()


class QSettings:
    """Settings that last as long as the process."""

    store = {}
    IniFormat, NativeFormat = 1, 0

    def __init__(self, *a):
        self.group = []

    def _key(self, k):
        return "/".join(self.group + [k])

    def value(self, k, default=None):
        return self.store.get(self._key(k), default)

    def setValue(self, k, v):
        self.store[self._key(k)] = v

    def contains(self, k):
        return self._key(k) in self.store

    def remove(self, k):
        for q in [q for q in self.store if q == self._key(k) or q.startswith(self._key(k) + "/")]:
            del self.store[q]

    def beginGroup(self, g):
        self.group.append(g)

    def endGroup(self):
        self.group.pop()

    def allKeys(self):
        p = "/".join(self.group)
        return [k[len(p) + 1 if p else 0 :] for k in self.store if k.startswith(p)]

    def fileName(self):
        return os.path.join(tempfile.gettempdir(), "practice-slicer.ini")

    def sync(self):
        pass


class QEventLoop:
    """A loop inside the loop, until quit()."""

    ExcludeUserInputEvents = 1

    def exec_(self):
        self._go = True
        while self._go and not loop.quit:
            loop.process(0.05)
        return 0

    exec = exec_

    def quit(self):
        self._go = False

    exit = quit


class QThread:
    """Only enough to ask whether code runs on the main thread."""

    _main = object()

    @classmethod
    def currentThread(cls):
        current = threading.current_thread()
        return cls._main if current is threading.main_thread() else current

    @staticmethod
    def msleep(n):
        time.sleep(n / 1000)
