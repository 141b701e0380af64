"""Makes widget classes by name and widgets from .ui files.

A .ui file may name any class of Qt, CTK or Slicer.  Known names give their class; for others a class is made whose
base is guessed from the name (`...Button`, `...ComboBox`, `...Slider`), so that the usual members work.
"""

import sys
import xml.etree.ElementTree as ET

from .qt_core import QObject, UnknownNamesAreZero
from .qt_dialogs import QDialog
from .qt_system import QFile
from .qt_widgets import QAbstractButton, QAction, QComboBox, QLayout, QLineEdit, QWidget, ValuedWidget

# Functions name -> class or None, asked before a class is made: Slicer's own widgets are added here.
class_hooks = []
_made = {}
_BASES = (
    ("Layout", QLayout),
    ("Button", QAbstractButton),
    ("CheckBox", QAbstractButton),
    ("Slider", ValuedWidget),
    ("SpinBox", ValuedWidget),
    ("RangeWidget", ValuedWidget),
    ("ComboBox", QComboBox),
    ("Dialog", QDialog),
    ("LineEdit", QLineEdit),
)


def make_widget_class(name):
    """The class `name`: one of ours, or one made from the name alone."""
    for hook in class_hooks:
        known = hook(name)
        if known is not None:
            return known
    if name not in _made:
        base = next((cls for part, cls in _BASES if part in name), QWidget)
        if base is QComboBox and name.startswith("qMRML"):
            base = QWidget  # those select nodes, not texts
        _made[name] = UnknownNamesAreZero(name, (base,), {"__module__": __name__})
    return _made[name]


def class_for(name):
    """The class of that name in `qt` or `ctk`, else a made one."""
    module = sys.modules["ctk" if name.startswith("ctk") else "qt"]
    found = getattr(module, name, None)
    return found if isinstance(found, type) else make_widget_class(name)


class QUiLoader(QObject):
    """Builds the widgets of a .ui file with their names and simple properties."""

    def addPluginPath(self, path):
        pass

    def load(self, file, parent=None):
        path = file.fileName() if isinstance(file, QFile) else str(file)
        widget = _build_widget(ET.parse(path).getroot().find("widget"))
        if parent is not None:
            widget.setParent(parent)
        return widget


def _property_value(element):
    """The value of a <property>, or None for kinds that do not matter without a window (fonts, sizes)."""
    if not len(element):
        return None
    value = element[0]
    text = (value.text or "").strip()
    readers = {
        "bool": lambda: text == "true",
        "number": lambda: int(text),
        "double": lambda: float(text),
        "string": lambda: value.text or "",
        "cstring": lambda: value.text or "",
        "stringlist": lambda: [line.text or "" for line in value.findall("string")],
    }
    return readers[value.tag]() if value.tag in readers else None


def _set_properties(widget, element):
    for entry in element.findall("property"):
        value = _property_value(entry)
        if value is None:
            continue
        try:
            setattr(widget, entry.get("name"), value)
        except (AttributeError, TypeError):
            widget._props[entry.get("name")] = value


def _build_widget(element):
    widget = class_for(element.get("class"))()
    widget.objectName = element.get("name", "")
    _set_properties(widget, element)
    if isinstance(widget, QComboBox):
        for entry in element.findall("item/property"):
            if entry.get("name") == "text":
                widget.addItem(_property_value(entry))
    for child in element:
        if child.tag == "widget":
            _build_widget(child).setParent(widget)
        elif child.tag == "layout":
            _build_layout(child, widget)
        elif child.tag in ("action", "actiongroup"):
            action = QAction()
            action.objectName = child.get("name", "")
            action.setParent(widget)
    return widget


def _build_layout(element, widget):
    layout = class_for(element.get("class"))()
    layout.objectName = element.get("name", "")
    layout.setParent(widget)
    if widget._layout is None:
        widget._layout = layout
    for child in element.findall("item/*"):
        if child.tag == "widget":
            _build_widget(child).setParent(widget)
        elif child.tag == "layout":
            _build_layout(child, widget)
