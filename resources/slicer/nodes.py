"""What one MRML node is: its content in numbers, its one-line fact, and its fingerprints by aspect.

The aspects are those that a person tells apart: content, name, properties, attributes, display, parent transform,
references, place in the hierarchy. Facts that need a pass over bulk data (ranges, voxel counts) are kept by content
hash, so an unchanged volume is only hashed, not measured again.
"""
import numpy
import vtk

from slicer_ai_agent_helper import digest as d
from slicer_ai_agent_helper.text import clean, finite

VIEW_CLASSES = (
    "vtkMRMLAbstractViewNode", "vtkMRMLSliceCompositeNode", "vtkMRMLCameraNode", "vtkMRMLLayoutNode",
    "vtkMRMLSelectionNode", "vtkMRMLInteractionNode", "vtkMRMLCrosshairNode", "vtkMRMLClipNode",
    "vtkMRMLClipModelsNode", "vtkMRMLSliceDisplayNode",
)
INTERNAL_CLASSES = VIEW_CLASSES + ("vtkMRMLSubjectHierarchyNode", "vtkMRMLUnitNode")


def is_internal(node):
    """Nodes that the application keeps for itself: views, colour tables, units, the models of slice planes."""
    if any(node.IsA(name) for name in INTERNAL_CLASSES):
        return True
    return bool(node.GetHideFromEditors() and not node.GetSaveWithScene())


def is_shown(node):
    """Nodes that a person works with: those that a snapshot lists."""
    if is_internal(node) or node.GetHideFromEditors():
        return False
    return not any(node.IsA(name) for name in ("vtkMRMLDisplayNode", "vtkMRMLStorageNode", "vtkMRMLColorNode"))


def lineage(node):
    return [kind.__name__ for kind in type(node).__mro__ if kind.__name__.startswith("vtkMRML")]


def display_nodes(node):
    if not hasattr(node, "GetNumberOfDisplayNodes"):
        return []
    nodes = [node.GetNthDisplayNode(index) for index in range(node.GetNumberOfDisplayNodes())]
    return [one for one in nodes if one is not None]


def bulk_bytes(node):
    """Memory of the node's bulk data in bytes."""
    objects = []
    if node.IsA("vtkMRMLVolumeNode"):
        objects.append(node.GetImageData())
    elif node.IsA("vtkMRMLModelNode"):
        objects.append(node.GetMesh())
    elif node.IsA("vtkMRMLTableNode"):
        objects.append(node.GetTable())
    elif node.IsA("vtkMRMLSegmentationNode"):
        return sum(one.GetActualMemorySize() for one in segment_objects(node)) * 1024
    elif node.IsA("vtkMRMLSequenceNode"):
        return sum(bulk_bytes(node.GetNthDataNode(i)) for i in range(node.GetNumberOfDataNodes()))
    elif node.IsA("vtkMRMLTransformNode") and not node.IsLinear():
        transform = node.GetTransformToParent()
        for name in ("GetDisplacementGrid", "GetCoefficientData"):
            if transform is not None and hasattr(transform, name):
                objects.append(getattr(transform, name)())
    return sum(one.GetActualMemorySize() for one in objects if one is not None) * 1024


def segment_objects(node):
    """The distinct data objects of all segments (label maps are shared between segments)."""
    segmentation, seen = node.GetSegmentation(), {}
    for index in range(segmentation.GetNumberOfSegments()):
        segment = segmentation.GetNthSegment(index)
        for name in representation_names(segment):
            data = segment.GetRepresentation(name)
            seen[id(data)] = data
    return list(seen.values())


def representation_names(segment):
    names = []
    try:
        segment.GetContainedRepresentationNames(names)
    except TypeError:
        pass
    return list(names)


_pairs = {}
# Not settings: what is told elsewhere, and what the node keeps of the moment.
NO_SETTINGS = ("Scene", "Debug", "ObjectName", "AddToScene", "TempURI", "ReadState", "WriteState", "UndoEnabled", "Modified")


def setting_names(node):
    """The names of a class that can be read and set under the same name. Those that complain when they are read are
    left out: a deprecated one would fill Slicer's log at every checkpoint."""
    kind = type(node)
    if kind not in _pairs:
        names = set(dir(kind))
        short = [name[3:] for name in names if name.startswith("Get") and "Set" + name[3:] in names]
        wanted = [
            name for name in sorted(short)
            if not name.startswith(NO_SETTINGS) and not name.startswith("Nth") and not name.endswith(("ID", "IDs", "Node"))
        ]
        former, quiet = vtk.vtkOutputWindow.GetInstance(), vtk.vtkStringOutputWindow()
        vtk.vtkOutputWindow.SetInstance(quiet)
        try:
            _pairs[kind] = [name for name in wanted if reads_quietly(node, name, quiet)]
        finally:
            vtk.vtkOutputWindow.SetInstance(former)
    return _pairs[kind]


def reads_quietly(node, name, window):
    said = len(window.GetOutput() or "")
    try:
        getattr(node, "Get" + name)()
    except Exception:  # it wants an argument
        return False
    return len(window.GetOutput() or "") == said


def settings(node):
    """Numbers and texts that the node can be set to: {name: value}. A copy function can forget one of them."""
    out = {}
    for name in setting_names(node):
        try:
            value = getattr(node, "Get" + name)()
        except Exception:
            continue
        if isinstance(value, (int, float)) or (isinstance(value, str) and not value.endswith("_p_void")):
            out[name] = value
        elif isinstance(value, tuple) and len(value) <= 16 and all(isinstance(one, (int, float)) for one in value):
            out[name] = value
    return out


def put_back_settings(node, wanted):
    """Sets those that differ. A setter that refuses its own value leaves a difference, which the proof then finds."""
    now = settings(node)
    for name, value in wanted.items():
        if now.get(name) == value:
            continue
        try:
            write = getattr(node, "Set" + name)
            write(*value) if isinstance(value, tuple) else write(value)
        except Exception:
            continue


# ---------------------------------------------------------------- content: (hash, facts for the snapshot, one line)


def scalars_of(image):
    array = image.GetPointData().GetScalars() if image is not None else None
    return d.numpy_of(array) if array is not None else None


def volume(node):
    image = node.GetImageData()
    matrix = vtk.vtkMatrix4x4()
    node.GetIJKToRASMatrix(matrix)
    bulk = d.data_digest(image)
    content, line = {"spacing": list(node.GetSpacing())}, "no image data"
    if image is not None:
        values = scalars_of(image)
        dims = [int(n) for n in image.GetDimensions()]
        content.update(dimensions=dims, voxels=dims[0] * dims[1] * dims[2])
        if values is not None and values.size:
            content["range"] = d.remember(("range", bulk), lambda: [finite(values.min()), finite(values.max())])
            if None in content["range"]:
                del content["range"]
            if node.IsA("vtkMRMLLabelMapVolumeNode"):
                count = d.remember(("nonzero", bulk), lambda: int(numpy.count_nonzero(values)))
                content["nonzero_voxels"] = count
        spacing = " × ".join("%g" % round(s, 4) for s in node.GetSpacing())
        line = "%d × %d × %d voxels, %s mm, %s" % (*dims, spacing, image.GetScalarTypeAsString())
    return d.digest(bulk, d.matrix_values(matrix), d.printed(node, d.GEOMETRY)), content, line


def model(node):
    mesh = node.GetMesh()
    points = int(mesh.GetNumberOfPoints()) if mesh is not None else 0
    cells = int(mesh.GetNumberOfCells()) if mesh is not None else 0
    return d.data_digest(mesh), {"points": points, "cells": cells}, "%d points, %d cells" % (points, cells)


def markups(node):
    count = node.GetNumberOfControlPoints()
    positions = [tuple(node.GetNthControlPointPosition(index)) for index in range(count)]
    extra = [own_matrix(node, name) for name in ("ObjectToNodeMatrix", "BaseToNodeMatrix", "ObjectToBaseMatrix")]
    # PlaneBounds and the like follow from the points; what is printed holds labels, flags, sizes and kinds.
    told = d.printed(node, ("PlaneBounds", "Locked", "Description"))
    line = "%d control point%s" % (count, "" if count == 1 else "s")
    if node.IsA("vtkMRMLMarkupsLineNode") and count == 2:
        line += ", length %.2f mm" % node.GetLineLengthWorld()
    return d.digest(positions, extra, told), {"points": int(count)}, line


def own_matrix(node, name):
    """A matrix of a plane or region of interest; some classes return it, others fill one."""
    read = getattr(node, "Get" + name, None)
    if read is None:
        return None
    try:
        return d.matrix_values(read())
    except TypeError:
        matrix = vtk.vtkMatrix4x4()
        read(matrix)
        return d.matrix_values(matrix)


def segmentation(node):
    segments, parts = [], []
    inner = node.GetSegmentation()
    source = inner.GetSourceRepresentationName() if hasattr(inner, "GetSourceRepresentationName") else (
        inner.GetMasterRepresentationName())
    hashes = {}
    for index in range(inner.GetNumberOfSegments()):
        key, segment = inner.GetNthSegmentID(index), inner.GetNthSegment(index)
        names = representation_names(segment)
        data = segment.GetRepresentation(source) if source in names else None
        mark = hashes.setdefault(id(data), d.data_digest(data)) if data is not None else "none"
        label = segment.GetLabelValue() if hasattr(segment, "GetLabelValue") else 1
        parts.append((key, segment.GetName(), segment.GetColor(), label, mark, segment_tags(segment)))
        segments.append({
            "id": clean(key), "name": clean(segment.GetName() or ""),
            "voxels": segment_voxels(segment, names, label), "closed_surface": "Closed surface" in names,
        })
    names = ", ".join(one["name"] for one in segments[:8]) + (", …" if len(segments) > 8 else "")
    line = "%d segment%s%s" % (len(segments), "" if len(segments) == 1 else "s", ": " + names if names else "")
    return d.digest(source, parts), {"segments": segments}, line


def segment_tags(segment):
    text = vtk.reference("")
    return str(text) if segment.GetTag("TerminologyEntry", text) else ""


def segment_voxels(segment, names, label):
    name = next((name for name in names if name.lower() == "binary labelmap"), None)
    image = segment.GetRepresentation(name) if name else None
    if image is None:
        return None
    values = scalars_of(image)
    if values is None:
        return 0
    key = ("label", d.array_digest(image.GetPointData().GetScalars()), label)
    return d.remember(key, lambda: int(numpy.count_nonzero(values == label)))


def transform(node):
    linear = bool(node.IsLinear())
    content, line = {}, "not linear"
    if linear:
        matrix = vtk.vtkMatrix4x4()
        node.GetMatrixTransformToParent(matrix)
        values = d.matrix_values(matrix)
        same = all(abs(v - (i % 5 == 0)) < 1e-9 for i, v in enumerate(values))
        content["identity"] = same
        line = "identity" if same else "linear, translation (%.4g, %.4g, %.4g) mm" % (values[3], values[7], values[11])
        return d.digest(values), content, line
    return d.transform_digest(node.GetTransformToParent()), content, line


def table(node):
    inner = node.GetTable()
    rows = int(inner.GetNumberOfRows()) if inner is not None else 0
    columns = int(inner.GetNumberOfColumns()) if inner is not None else 0
    return d.data_digest(inner), {"rows": rows}, "%d rows, %d columns" % (rows, columns)


def text(node):
    value = node.GetText() or ""
    return d.digest(value), {}, "%d characters" % len(value)


def sequence(node):
    count = node.GetNumberOfDataNodes()
    items = [content_of(node.GetNthDataNode(index))[0] for index in range(count)]
    values = [node.GetNthIndexValue(index) for index in range(count)]
    return d.digest(values, items), {}, "%d items" % count


def parameters(node):
    names = node.GetParameterNames() if hasattr(node, "GetParameterNames") else ()
    told = [(name, node.GetParameter(name)) for name in names or ()]
    return d.digest(told), {}, "%d parameters" % len(told)


def colours(node):
    lookup = node.GetLookupTable() if hasattr(node, "GetLookupTable") else None
    if lookup is None:
        return d.digest(d.printed(node)), {}, ""
    names = [node.GetColorName(index) for index in range(lookup.GetNumberOfTableValues())]
    return d.digest(d.array_digest(lookup.GetTable()), names, lookup.GetRange()), {}, "%d colours" % len(names)


CONTENT = (
    ("vtkMRMLVolumeNode", volume), ("vtkMRMLModelNode", model), ("vtkMRMLMarkupsNode", markups),
    ("vtkMRMLSegmentationNode", segmentation), ("vtkMRMLTransformNode", transform), ("vtkMRMLTableNode", table),
    ("vtkMRMLTextNode", text), ("vtkMRMLSequenceNode", sequence), ("vtkMRMLScriptedModuleNode", parameters),
    ("vtkMRMLColorNode", colours),
)
# Classes whose printed text is content already, or repeats content in fewer digits.
TOLD_BY_CONTENT = {"vtkMRMLMarkupsNode", "vtkMRMLVolumeNode", "vtkMRMLColorNode", "vtkMRMLTextNode"}


def content_of(node):
    for name, read in CONTENT:
        if node.IsA(name):
            try:
                return read(node)
            except Exception:  # an unusual node must not hide the rest of the scene
                return d.digest(d.printed(node)), {}, ""
    return d.digest(), {}, ""


def properties_digest(node):
    own = [
        node.GetDescription() or "", node.GetHideFromEditors(), node.GetSelectable(), node.GetSelected(), node.GetSaveWithScene(),
    ]
    if hasattr(node, "GetLocked"):
        own.append(node.GetLocked())
    if not any(node.IsA(name) for name in TOLD_BY_CONTENT):
        own.append(d.printed(node, d.GEOMETRY if node.IsA("vtkMRMLTransformNode") else ()))
    return d.digest(*own)


def display_digest(displays):
    return d.digest(*[(one.GetID(), d.printed(one), d.attributes(one), d.references(one)) for one in displays])


# Kept for a restore; a person does not tell them apart.
UNSEEN = ("links", "marks", "numbering")


class State:
    """A node at one moment: its digests and facts."""

    def __init__(self, node, place, marks=()):
        self.node = node
        self.id, self.name, self.kind = node.GetID(), node.GetName() or "", node.GetClassName()
        mark, self.content, self.line = content_of(node)
        displays = display_nodes(node)
        everything = d.all_references(node)
        self.parent = (everything.get("transform") or [None])[0] or None
        self.digests = {
            "content": mark, "name": self.name, "properties": properties_digest(node),
            "attributes": d.digest(sorted(d.attributes(node).items())), "display": display_digest(displays),
            "transform": self.parent or "", "reference": d.digest(sorted(d.references(node).items())),
            "links": d.digest(everything.get("display", []), everything.get("storage", [])), "hierarchy": place,
            "marks": d.digest(sorted(dict(marks).items())),
        }
        if node.IsA("vtkMRMLMarkupsNode"):
            self.digests["numbering"] = str(node.GetLastUsedControlPointNumber())
        if self.kind == "vtkMRMLSegmentationNode":
            closed = [segment["closed_surface"] for segment in self.content["segments"]]
            self.digests["representations"] = d.digest(closed)

    def summary(self, slices):
        displays = display_nodes(self.node)
        showable = hasattr(self.node, "GetNumberOfDisplayNodes")
        visible = any(one.GetVisibility() for one in displays) if showable else None
        if self.node.IsA("vtkMRMLVolumeNode"):
            shown = any(self.id in (s["background"], s["foreground"], s["label"]) for s in slices.values())
            rendered = any(one.GetVisibility() for one in displays if one.IsA("vtkMRMLVolumeRenderingDisplayNode"))
            visible = shown or rendered
        digests = {key: clean(value) for key, value in self.digests.items() if key not in UNSEEN}
        return {
            "id": self.id, "name": clean(self.name), "class": self.kind, "classes": lineage(self.node),
            "fact": clean(self.line), "visible": visible, "has_display": bool(displays),
            "parent_transform": self.parent, "content": self.content, "digests": digests,
        }
