"""Makes any Python value fit for JSON.

Slicer's Web Server passes a reply through `json.dumps` and a value that it cannot write loses the whole reply, although
the code has run. JSON readers outside Python also refuse NaN, half surrogates and integers of any size. So every reply
passes through here: numbers that JSON does not know become null or text, arrays become a summary, nodes become their
identity, and long things are cut with a note that says so.
"""
import math

MAX_TEXT = 20000
MAX_ITEMS = 500
MAX_ARRAY = 64
MAX_DEPTH = 8
MAX_TOTAL = 5000


def clean(text):
    """The text without half surrogates, which no JSON reader outside Python takes."""
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clip(text, limit=MAX_TEXT):
    """The text, cut in the middle with a note when it is longer than `limit` characters."""
    text = clean(text)
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return text[:head] + "\n[… %d characters left out …]\n" % (len(text) - head - tail) + text[-tail:]


def describe(value):
    """`repr` of anything, also of objects whose `repr` fails."""
    try:
        return clip(repr(value), 500)
    except BaseException:
        return "<%s object whose repr fails>" % type(value).__name__


def message_of(error, limit=4000):
    """What an exception says, also when its `__str__` fails."""
    try:
        return clip(str(error), limit)
    except BaseException:
        return "<no message: the exception's own text fails>"


def node_reference(node):
    return {"id": node.GetID() or "", "name": clean(node.GetName() or ""), "class": node.GetClassName()}


def finite(number):
    number = float(number)
    return number if math.isfinite(number) else None


def array_summary(array):
    """What an array holds, in a few numbers, when it is too long to send."""
    summary = {"type": "array", "shape": [int(n) for n in array.shape], "dtype": str(array.dtype)}
    if array.size and array.dtype.kind in "iufb":
        summary.update(min=finite(array.min()), max=finite(array.max()), mean=finite(array.mean()))
    summary["note"] = "array of %d values summarised" % array.size
    return summary


class Converter:
    """One conversion, with a budget for the number of values in all."""

    def __init__(self):
        self.left = MAX_TOTAL

    def convert(self, value, depth=0):
        self.left -= 1
        if value is None or value is True or value is False:
            return value
        kind = type(value)
        if isinstance(value, str):
            return clip(str(value))
        if isinstance(value, int):
            number = int(value)
            return number if -(2**63) <= number < 2**63 else clip(str(describe(number)), 500)
        if isinstance(value, float):
            return finite(value)
        if isinstance(value, complex):
            return describe(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return {"type": kind.__name__, "length": len(value)}
        if kind.__module__ == "numpy":
            return self.numpy(value, depth)
        if hasattr(value, "IsA") and hasattr(value, "GetClassName"):
            return self.vtk(value, depth)
        if depth >= MAX_DEPTH or self.left <= 0:
            return describe(value)
        if isinstance(value, dict):
            return self.mapping(value, depth)
        if isinstance(value, (list, tuple, set, frozenset)):
            return self.sequence(list(value), depth)
        return {"type": kind.__name__, "text": describe(value)}

    def numpy(self, value, depth):
        if not hasattr(value, "shape") or value.shape == ():
            item = value.item() if hasattr(value, "item") else None
            return self.convert(item, depth) if type(item).__module__ != "numpy" else describe(value)
        if value.size > MAX_ARRAY or value.dtype.kind not in "iufbU":
            return array_summary(value)
        return self.convert(value.tolist(), depth)

    def vtk(self, value, depth):
        if value.IsA("vtkMRMLNode"):
            return node_reference(value)
        if value.IsA("vtkMatrix4x4"):
            return [[finite(value.GetElement(row, column)) for column in range(4)] for row in range(4)]
        if value.IsA("vtkCollection"):
            count = min(value.GetNumberOfItems(), MAX_ITEMS)
            return self.sequence([value.GetItemAsObject(index) for index in range(count)], depth)
        return {"type": value.GetClassName()}

    def mapping(self, value, depth):
        out = {}
        for index, (key, item) in enumerate(list(value.items())):
            if index >= MAX_ITEMS or self.left <= 0:
                out["…"] = "%d more entries left out" % (len(value) - index)
                break
            out[clip(key if isinstance(key, str) else describe(key), 200)] = self.convert(item, depth + 1)
        return out

    def sequence(self, value, depth):
        out = []
        for index, item in enumerate(value):
            if index >= MAX_ITEMS or self.left <= 0:
                out.append("… %d more values left out" % (len(value) - index))
                break
            out.append(self.convert(item, depth + 1))
        return out


def safe(value):
    """`value` as plain JSON data; never raises."""
    try:
        return Converter().convert(value)
    except BaseException as error:
        return {"type": type(value).__name__, "text": "cannot be shown: " + type(error).__name__}


def clean_reply(value):
    """The helper's own reply (plain data) with texts and numbers that every JSON reader takes."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean(key): clean_reply(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_reply(item) for item in value]
    return value
