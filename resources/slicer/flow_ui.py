"""The verbs of guided workflows that work on a module's panel: buttons, check boxes, node selectors, fields, tables.

A control is named as a person sees it or as the module calls it: object name, then the whole label, then the beginning of
one label only. What a person could not click is an error here too. Where a step names the handler of a button it is called
instead of the click, because Qt swallows what a slot raises.
"""
import re

import slicer


class Failed(Exception):
    """A verb could not do what it was asked; the text says what to do."""


def node(value):
    """The node of an id, or the node itself."""
    found = slicer.mrmlScene.GetNodeByID(value) if isinstance(value, str) else value
    if found is None or not hasattr(found, "GetID"):
        raise Failed("There is no node %s in the scene." % (value,))
    return found


def open_module(name):
    if slicer.app.moduleManager().module(name) is None:
        raise Failed("Slicer has no module %s. Install the extension that it belongs to, and start Slicer again." % name)
    slicer.util.selectModule(name)


def panel(module):
    """The panel of a module, opened or not."""
    found = slicer.app.moduleManager().module(module)
    if found is None:
        raise Failed("Slicer has no module %s. Install the extension that it belongs to, and start Slicer again." % module)
    widget = found.widgetRepresentation()
    if widget is None:
        raise Failed("The module %s has no panel." % module)
    return widget


def scripted(module):
    """The Python object behind a scripted panel, or None."""
    own = getattr(panel(module), "self", None)
    return own() if callable(own) else None


def controls(widget):
    found, open_ = [], [widget]
    while open_:
        for child in open_.pop().children():
            found.append(child)
            if hasattr(child, "children"):
                open_.append(child)
    return found


def label(control):
    """What a person reads on a control, without the mark of its shortcut."""
    text = getattr(control, "text", "")
    text = text() if callable(text) else text
    return re.sub(r"&(?!&)", "", text).strip().rstrip(":") if isinstance(text, str) else ""


def find(module, name, can):
    """The one control of that name which has the method or property `can`."""
    there = [control for control in controls(panel(module)) if hasattr(control, can)]
    wanted = name.strip().rstrip(":")
    for fits in (
        lambda control: control.objectName == name,
        lambda control: label(control) == wanted,
        lambda control: label(control).startswith(wanted),
    ):
        found = [control for control in there if fits(control)]
        if len(found) == 1:
            return found[0]
        if found:
            raise Failed('%s has %d controls called "%s"; use the object name of one.' % (module, len(found), name))
    known = sorted({label(control) or control.objectName for control in there} - {""})
    raise Failed('%s has no control "%s" for this. It has: %s.' % (module, name, ", ".join(known) or "none"))


def usable(control, name):
    while control is not None:
        enabled = getattr(control, "enabled", True)
        if enabled is False or (callable(enabled) and not enabled()):
            raise Failed('"%s" cannot be used now (it is greyed out). Something before it is missing.' % name)
        control = control.parent() if callable(getattr(control, "parent", None)) else None


def press(name, module, handler=None):
    """Presses a button. `handler`: the method of the panel that is connected to it."""
    button = find(module, name, "click")
    usable(button, name)
    own = getattr(scripted(module), handler, None) if handler else None
    if own is not None:
        own()
    else:
        button.click()
    slicer.app.processEvents()


def press_text(text, module):
    """Presses the button with exactly this text."""
    buttons = [one for one in controls(panel(module)) if hasattr(one, "click") and label(one) == text.strip()]
    if len(buttons) != 1:
        raise Failed('%s has %d buttons with the text "%s".' % (module, len(buttons), text))
    usable(buttons[0], text)
    buttons[0].click()
    slicer.app.processEvents()


def check(name, module, on=True):
    box = find(module, name, "setChecked")
    usable(box, name)
    box.setChecked(bool(on))
    now = box.checked if not callable(box.checked) else box.checked()
    if bool(now) != bool(on):
        raise Failed('"%s" did not take the value.' % name)


def set_value(name, module, value):
    """Sets a field: a number, a text, or both ends of a range."""
    pair = isinstance(value, (list, tuple))
    setter = "setValues" if pair else "setText" if isinstance(value, str) else "setValue"
    field = find(module, name, setter)
    usable(field, name)
    if pair:
        field.setValues(float(value[0]), float(value[1]))
        return
    getattr(field, setter)(value)
    now = field.text if setter == "setText" else field.value
    now = now() if callable(now) else now
    if now != value and abs(float(now) - float(value)) > 1e-6 * max(1.0, abs(float(value))):
        raise Failed('"%s" took %s instead of %s; see the limits of the field.' % (name, now, value))


def choose_node(name, module, value):
    selector = find(module, name, "setCurrentNode")
    usable(selector, name)
    wanted = node(value)
    types = selector.nodeTypes
    types = types() if callable(types) else types
    if types and not any(wanted.IsA(one) for one in types):
        raise Failed('"%s" takes %s; %s is a %s.' % (name, ", ".join(types), wanted.GetName(), wanted.GetClassName()))
    selector.setCurrentNode(wanted)
    now = selector.currentNode()
    if now is None or now.GetID() != wanted.GetID():
        raise Failed('"%s" did not take %s.' % (name, wanted.GetName()))


def choose_item(name, module, text):
    box = find(module, name, "findText")
    usable(box, name)
    at = box.findText(text)
    if at < 0:
        count = box.count if not callable(box.count) else box.count()
        there = ", ".join(box.itemText(index) for index in range(count))
        raise Failed('"%s" has no item "%s". It has: %s.' % (name, text, there))
    box.setCurrentIndex(at) if hasattr(box, "setCurrentIndex") else setattr(box, "currentIndex", at)


def call(module, method, *positional, **named):
    """A method of the module's logic."""
    own = scripted(module)
    logic = getattr(own, "logic", None) or slicer.app.moduleManager().module(module).logic()
    found = getattr(logic, method, None)
    if found is None:
        raise Failed("The logic of %s has no method %s. The extension may have changed." % (module, method))
    return found(*positional, **named)


def parameter_node(module):
    own = scripted(module)
    logic = getattr(own, "logic", None)
    found = logic.getParameterNode() if logic is not None and hasattr(logic, "getParameterNode") else None
    found = getattr(found, "parameterNode", found)
    if found is None:
        raise Failed("%s has no parameter node." % module)
    return found


def param_get(module, name):
    parameters = parameter_node(module)
    reference = parameters.GetNodeReference(name)
    return reference.GetID() if reference is not None else parameters.GetParameter(name)


def param_set(module, name, value):
    """A text or number, or the id of a node for a reference."""
    parameters = parameter_node(module)
    if isinstance(value, str) and value.startswith("vtkMRML"):
        parameters.SetNodeReferenceID(name, node(value).GetID())
    else:
        parameters.SetParameter(name, value if isinstance(value, str) else str(value))


def wizard_next(module):
    """The next page of a wizard."""
    press_text("Next", module)


def wizard_back(module):
    press_text("Back", module)


def missing_modules(names):
    """Those of the modules that this Slicer does not have."""
    return [name for name in names if slicer.app.moduleManager().module(name) is None]


def probe(module, names):
    """Those of the controls that the panel does not have, or not once."""
    missing = []
    for name in names:
        try:
            find(module, name, "objectName")
        except Failed:
            missing.append(name)
    return missing


VERBS = {
    one.__name__: one
    for one in (wizard_next, wizard_back, missing_modules, probe, press, check, set_value, choose_node, choose_item, press_text, call, open_module, param_get, param_set)
}
