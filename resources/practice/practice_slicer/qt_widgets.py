"""Stand-in widgets: layouts, buttons, spin boxes, menus, text fields.

Nothing is drawn.  A widget keeps its place in the tree, its properties and its signals, so that panels of scripted
modules can be built, filled and read back.
"""

from .qt_core import QObject
from .qt_images import QPixmap, QRect, QSize


class QWidget(QObject):
    """A widget that is never shown; sizes in pixels."""

    @property
    def sizeHint(self):
        return QSize(100, 30)

    @property
    def minimumSizeHint(self):
        return QSize(20, 20)

    _defaults = {
        "visible": False,
        "enabled": True,
        "toolTip": "",
        "width": 640,
        "height": 480,
        "styleSheet": "",
        "windowTitle": "",
        "maximumHeight": 16777215,
        "maximumWidth": 16777215,
        "minimumHeight": 0,
        "minimumWidth": 0,
    }

    def layout(self):
        return self._layout

    def setLayout(self, layout):
        self._layout = layout
        if layout is not None:
            layout.setParent(self)

    def show(self):
        self._props["visible"] = True

    def hide(self):
        self._props["visible"] = False

    def close(self):
        self.hide()
        return True

    def setVisible(self, v):
        self._props["visible"] = bool(v)

    def isVisible(self):
        return self._props["visible"]

    def isHidden(self):
        return not self._props["visible"]

    def isEnabled(self):
        return self._props["enabled"]

    def setDisabled(self, v):
        self._props["enabled"] = not v

    def raise_(self):
        pass

    def activateWindow(self):
        pass

    def update(self):
        pass

    repaint = adjustSize = setFocus = updateGeometry = update

    def window(self):
        p = self
        while p.parent() is not None:
            p = p.parent()
        return p

    def addWidget(self, w, *a):
        if isinstance(w, QObject):
            w.setParent(self)

    def addAction(self, *a):
        act = a[0] if a and isinstance(a[0], QObject) else QAction(*[x for x in a if isinstance(x, str)])
        act.setParent(self)
        return act

    @property
    def size(self):  # Qt properties are attributes in PythonQt
        return QSize(self._props["width"], self._props["height"])

    def mapTo(self, other, point):
        return point

    mapToGlobal = mapFromGlobal = lambda self, point: point

    def installEventFilter(self, f):
        pass

    removeEventFilter = installEventFilter

    def resize(self, *a):
        if len(a) == 1:
            a = (a[0].width(), a[0].height())
        self._props["width"], self._props["height"] = int(a[0]), int(a[1])

    @property
    def rect(self):
        return QRect(0, 0, self._props["width"], self._props["height"])

    geometry = rect

    def grab(self, *a):
        return QPixmap(self.size)

    def setMRMLScene(self, scene):
        self._props["mrmlScene"] = scene
        for c in self.findChildren():
            c._props["mrmlScene"] = scene

    def mrmlScene(self):
        return self._props.get("mrmlScene")

    def setSizePolicy(self, *a):
        self._props["sizePolicy"] = a


class QLayout(QWidget):
    """Gives its widgets to the parent; nothing is laid out."""

    def _item(self, *a):
        for w in a:
            if isinstance(w, QObject):
                w.setParent(self.parent() or self)

    addLayout = addRow = addItem = insertWidget = insertRow = _item

    def addWidget(self, w, *a):
        self._item(w)

    def addStretch(self, *a):
        pass

    addSpacing = addSpacerItem = setContentsMargins = setSpacing = setStretch = addStretch

    def count(self):
        return 0

    def itemAt(self, i):
        return None


class QVBoxLayout(QLayout):
    """A column."""


class QHBoxLayout(QLayout):
    """A row."""


class QFormLayout(QLayout):
    """Labels and fields."""


class QGridLayout(QLayout):
    """A table."""


class QFrame(QWidget):
    """A frame."""


class QGroupBox(QWidget):
    """A titled box."""

    _defaults = {"title": "", "checked": True, "checkable": False}


class QScrollArea(QWidget):
    """A scrolled area."""


class QSplitter(QWidget):
    """A split area."""


class QMenu(QWidget):
    """A menu or tool bar: a list of actions."""

    def addSeparator(self):
        pass

    def actions(self):
        return [c for c in self._children if isinstance(c, QAction)]

    def addAction(self, *a):
        act = a[0] if a and isinstance(a[0], QObject) else QAction(*[x for x in a if isinstance(x, str)])
        act.setParent(self)
        if len(a) > 1 and callable(a[-1]):
            act._signal("triggered").connect(a[-1])
        return act

    def addMenu(self, *a):
        m = a[0] if a and isinstance(a[0], QMenu) else QMenu(*a)
        m.setParent(self)
        return m

    def widgetForAction(self, act):
        if "_button" not in act.__dict__:
            act._button = QToolButton()
            act._button.setMenu(QMenu())
        return act._button

    def removeAction(self, act):
        act.setParent(None)


class QToolBar(QMenu):
    """A tool bar."""


class QMenuBar(QMenu):
    """A menu bar."""


class QStatusBar(QWidget):
    """Keeps the last message."""

    def showMessage(self, text, *a):
        self._props["message"] = text


class QTabWidget(QWidget):
    """Tabs."""

    _defaults = {"currentIndex": 0}


class QStackedWidget(QTabWidget):
    """Pages."""


class QDockWidget(QWidget):
    """A dock with a title bar."""

    def titleBarWidget(self):
        if "_title_bar" not in self.__dict__:
            self._title_bar = QWidget()
        return self._title_bar

    def setTitleBarWidget(self, widget):
        self._title_bar = widget


class QAbstractButton(QWidget):
    """Base of what can be clicked: click() and setChecked() emit the signals."""

    _defaults = {"checked": False, "checkable": False, "text": "", "icon": None, "iconSize": None}

    def _iconSizeOrDefault(self):
        return self._props.get("iconSize") or QSize(16, 16)

    def click(self):
        if self._props.get("checkable"):
            self._setProp("checked", not self._props["checked"])
        else:
            self._emit("clicked", False)

    def isChecked(self):
        return self._props["checked"]

    def setChecked(self, v):
        self._setProp("checked", bool(v))

    def animateClick(self, *a):
        self.click()

    def toggle(self):
        self._setProp("checked", not self._props["checked"])


class QPushButton(QAbstractButton):
    """A button."""


class QToolButton(QAbstractButton):
    """A button that may have a menu."""

    def menu(self):
        return self.__dict__.get("_menu")

    def setMenu(self, m):
        self._menu = m

    def setDefaultAction(self, a):
        self._action = a

    def defaultAction(self):
        return self.__dict__.get("_action")


class QCheckBox(QAbstractButton):
    """A check box."""

    _defaults = {"checkable": True, "checkState": 0}


class QRadioButton(QAbstractButton):
    """A radio button."""

    _defaults = {"checkable": True}


class QAction(QAbstractButton):
    """An action of a menu."""

    def data(self):
        return self._props.get("data")

    def setData(self, v):
        self._props["data"] = v

    def trigger(self):
        self._emit("triggered", False)


class ValuedWidget(QWidget):
    """Base of what holds a number: spin boxes, sliders, progress bars."""

    _defaults = {"value": 0, "minimum": 0, "maximum": 100, "singleStep": 1}

    def setRange(self, a, b):
        self._props["minimum"], self._props["maximum"] = a, b


class QSpinBox(ValuedWidget):
    """A whole number."""


class QDoubleSpinBox(ValuedWidget):
    """A number."""


class QSlider(ValuedWidget):
    """A slider."""


class QProgressBar(ValuedWidget):
    """A progress bar."""


class QComboBox(QWidget):
    """A list of texts with data, one of them current."""

    _defaults = {"currentIndex": -1}

    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        self._items = []

    def addItem(self, *a):
        text = next((x for x in a if isinstance(x, str)), "")
        data = a[-1] if len(a) > 1 else None
        self._items.append((text, data))
        if self._props["currentIndex"] < 0:
            self._props["currentIndex"] = 0

    def addItems(self, texts):
        for text in texts:
            self.addItem(text)

    def clear(self):
        self._items.clear()
        self._props["currentIndex"] = -1

    @property
    def count(self):
        return len(self._items)

    def itemText(self, i):
        return self._items[i][0] if 0 <= i < len(self._items) else ""

    def itemData(self, i, *r):
        return self._items[i][1] if 0 <= i < len(self._items) else None

    def findText(self, t, *r):
        return next((i for i, x in enumerate(self._items) if x[0] == t), -1)

    def findData(self, t, *r):
        return next((i for i, x in enumerate(self._items) if x[1] == t), -1)

    @property
    def currentText(self):
        return self.itemText(self._props["currentIndex"])

    @currentText.setter
    def currentText(self, t):
        self.setCurrentText(t)

    def setCurrentText(self, t):
        i = self.findText(t)
        if i >= 0:
            self._setProp("currentIndex", i)

    @property
    def currentData(self):
        return self.itemData(self._props["currentIndex"])


class QLineEdit(QWidget):
    """A line of text."""

    _defaults = {"text": "", "readOnly": False}

    def clear(self):
        self._setProp("text", "")


class QLabel(QLineEdit):
    """A text that is shown."""


class QTextEdit(QWidget):
    """A longer text."""

    _defaults = {"plainText": "", "html": "", "readOnly": False}

    def insertHtml(self, t):
        self._props["html"] += t

    def insertPlainText(self, t):
        self._props["html"] += t
        self._props["plainText"] += t

    append = insertPlainText

    def toPlainText(self):
        return self._props["plainText"]

    def clear(self):
        self._props["html"] = self._props["plainText"] = ""

    def ensureCursorVisible(self):
        pass


class QPlainTextEdit(QTextEdit):
    """A longer plain text."""
