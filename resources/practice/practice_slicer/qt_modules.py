"""Puts the stand-in `qt` and `ctk` modules where scripts import them from.

The classes written out in this package are always there.  Any other `qt.QSomething` or `ctk.ctkSomething` is a made-up
widget class, and using it is noted in `made_up`.
"""

import sys
import types

from . import qt_core, qt_dialogs, qt_factory, qt_images, qt_system, qt_widgets, made_up


class CtkMessageBox(qt_dialogs.QMessageBox):
    """A message box with the `don't show again` box, which nobody ticks."""

    _defaults = {"dontShowAgain": False}


class CtkAxesWidget(qt_widgets.QWidget):
    """Carries the numbers of the viewing directions; the little axes themselves are not drawn."""

    # "None" is a keyword and is set after the class.
    Right, Left, Superior, Inferior, Anterior, Posterior = 1, 2, 3, 4, 5, 6


setattr(CtkAxesWidget, "None", 0)


def _made_up_classes(module_name, prefix):
    """A module-level __getattr__ that makes widget classes for names with this prefix."""

    def getattr_of_module(name):
        if not name.startswith(prefix):
            raise AttributeError(f"module '{module_name}' has no attribute '{name}'")
        made_up.note(f"{module_name}.{name} (class)")
        return qt_factory.make_widget_class(name)

    return getattr_of_module


def install():
    """Put `qt` and `ctk` in sys.modules.  Must run before `import slicer`.  Returns both."""
    qt, ctk = types.ModuleType("qt"), types.ModuleType("ctk")
    qt.__doc__ = ctk.__doc__ = "Stand-in of the practice Slicer: there is no Qt behind it."
    for source in (qt_core, qt_images, qt_widgets, qt_dialogs, qt_system, qt_factory):
        for name, value in vars(source).items():
            if name.startswith("Q") and isinstance(value, type):
                setattr(qt, name, value)
    qt.Signal = qt_core.Signal
    qt.Qt = qt_system.QtNamespace()
    qt.__getattr__ = _made_up_classes("qt", "Q")
    ctk.ctkMessageBox = CtkMessageBox
    ctk.ctkAxesWidget = CtkAxesWidget
    ctk.__getattr__ = _made_up_classes("ctk", "ctk")
    sys.modules["qt"], sys.modules["ctk"] = qt, ctk
    return qt, ctk
