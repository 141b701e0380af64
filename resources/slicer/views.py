"""The state of the views: layout, slice views and their layers, cameras, selection, interaction, open module.

It is kept as a flat table (node id, property) -> value, so that two moments can be compared property by property and
an undo touches only what its run changed: a person may have scrolled on in the meantime.
"""
import slicer

from slicer_ai_agent_helper.digest import matrix_values

# Properties with a Get and a Set of the same name, by class.
PROPERTIES = {
    "vtkMRMLSliceNode": (
        "FieldOfView", "XYZOrigin", "SliceVisible", "WidgetVisible", "OrientationMarkerType", "RulerType",
        "BackgroundColor", "BackgroundColor2", "SliceResolutionMode", "SliceSpacingMode", "PrescribedSliceSpacing",
        "SlabReconstructionEnabled", "SlabReconstructionType", "SlabReconstructionThickness",
    ),
    "vtkMRMLSliceCompositeNode": (
        "BackgroundVolumeID", "ForegroundVolumeID", "LabelVolumeID", "ForegroundOpacity", "LabelOpacity",
        "LinkedControl", "HotLinkedControl", "Compositing",
    ),
    "vtkMRMLViewNode": (
        "BackgroundColor", "BackgroundColor2", "BoxVisible", "AxisLabelsVisible", "RenderMode", "StereoType",
        "OrientationMarkerType", "RulerType", "FPSVisible", "AnimationMode",
    ),
    "vtkMRMLCameraNode": ("Position", "FocalPoint", "ViewUp", "ParallelProjection", "ParallelScale", "ViewAngle"),
    "vtkMRMLSelectionNode": (
        "ActiveVolumeID", "SecondaryVolumeID", "ActiveLabelVolumeID", "ActiveTableID", "ActivePlotChartID",
        "ActivePlaceNodeID", "ActivePlaceNodeClassName",
    ),
    "vtkMRMLInteractionNode": ("CurrentInteractionMode", "PlaceModePersistence"),
    "vtkMRMLCrosshairNode": ("CrosshairMode", "CrosshairBehavior", "CrosshairThickness"),
}
# Selecting these starts place mode or moves a view, so a restore sets them before the interaction mode.
LAYOUT = ("layout", "ViewArrangement")
MODULE = ("application", "module")
LAYOUT_NAMES = {
    2: "Conventional", 3: "Four-Up", 4: "3D only", 6: "Red slice only", 7: "Yellow slice only", 8: "Green slice only",
    9: "Tabbed 3D", 10: "Tabbed slice", 12: "Compare", 15: "Dual 3D", 16: "Conventional widescreen",
    17: "Compare widescreen", 19: "Triple 3D", 21: "3D table", 23: "Compare grid", 27: "Four-Up table",
    28: "Four-Up plot", 35: "Conventional plot",
}


def layout_node():
    return slicer.mrmlScene.GetFirstNodeByClass("vtkMRMLLayoutNode")


def layout_name(number):
    """The layout's name as the layout menu calls it, from the layout node's own constants when it is not a usual one."""
    node = layout_node()
    if number in LAYOUT_NAMES:
        return LAYOUT_NAMES[number]
    for name in dir(type(node)) if node is not None else ():
        if name.startswith("SlicerLayout") and name.endswith("View") and getattr(type(node), name, None) == number:
            return name[len("SlicerLayout") : -len("View")]
    return "custom layout %d" % number if number > 100 else ""


def active_module():
    try:
        selector = slicer.util.moduleSelector()
        return str(selector.selectedModule or "")
    except Exception:
        return ""  # no main window, or no module selector


def plain(value):
    if isinstance(value, (tuple, list)):
        return tuple(round(float(item), 9) for item in value)
    return round(value, 9) if isinstance(value, float) else value


def nodes_of(kind):
    scene = slicer.mrmlScene
    found = [scene.GetNthNodeByClass(index, kind) for index in range(scene.GetNumberOfNodesByClass(kind))]
    return [node for node in found if node is not None]


def capture():
    """The whole state: {(node id, property): value}."""
    state = {}
    node = layout_node()
    if node is not None:
        state[LAYOUT] = node.GetViewArrangement()
    for kind, names in PROPERTIES.items():
        for node in nodes_of(kind):
            for name in names:
                read = getattr(node, "Get" + name, None)
                if read is not None:
                    state[(node.GetID(), name)] = plain(read())
            if kind == "vtkMRMLSliceNode":
                state[(node.GetID(), "SliceToRAS")] = plain(matrix_values(node.GetSliceToRAS()))
    state[MODULE] = active_module()
    return state


def same(one, other):
    if isinstance(one, (tuple, float)) and isinstance(other, (tuple, float)):
        left = one if isinstance(one, tuple) else (one,)
        right = other if isinstance(other, tuple) else (other,)
        return len(left) == len(right) and all(abs(a - b) <= 1e-5 * max(1, abs(a), abs(b)) for a, b in zip(left, right))
    return one == other or (one in (None, "") and other in (None, ""))


def changed_keys(before, after):
    """Keys whose values differ; keys of views that came or went are left out."""
    return [key for key, value in before.items() if key in after and not same(value, after[key])]


def restore(target, keys):
    """Puts the given keys back. The layout goes first because it resizes views, the module last."""
    keys = list(keys)
    if LAYOUT in keys:
        layout_node().SetViewArrangement(target[LAYOUT])
        # A layout change moves fields of view and may make views: all slice properties are put back after it.
        keys += [key for key in target if key not in keys and key[1] in ("FieldOfView", "XYZOrigin")]
    order = sorted(keys, key=lambda key: (key[1] != "SliceToRAS", key[1] == "CurrentInteractionMode"))
    for key in order:
        if key in (LAYOUT, MODULE):
            continue
        node = slicer.mrmlScene.GetNodeByID(key[0])
        if node is not None:
            restore_one(node, key[1], target[key])
    if MODULE in keys and target[MODULE] and target[MODULE] != active_module():
        slicer.util.selectModule(target[MODULE])


def restore_one(node, name, value):
    if name == "SliceToRAS":
        matrix = node.GetSliceToRAS()
        for index, number in enumerate(value):
            matrix.SetElement(index // 4, index % 4, number)
        node.UpdateMatrices()
        return
    write = getattr(node, "Set" + name)
    if name in ("FieldOfView", "XYZOrigin"):
        write(*value)
        node.UpdateMatrices()
    elif isinstance(value, tuple):
        write(*value)
    elif not same(plain(getattr(node, "Get" + name)()), value):
        write(value)


def slices():
    """What each slice view shows, by layout name."""
    out = {}
    composites = {node.GetLayoutName(): node for node in nodes_of("vtkMRMLSliceCompositeNode")}
    for node in nodes_of("vtkMRMLSliceNode"):
        layers = composites.get(node.GetLayoutName())
        out[node.GetLayoutName() or node.GetName()] = {
            "orientation": node.GetOrientation() or "", "offset": round(slice_offset(node), 6),
            "background": layers.GetBackgroundVolumeID() if layers is not None else None,
            "foreground": layers.GetForegroundVolumeID() if layers is not None else None,
            "label": layers.GetLabelVolumeID() if layers is not None else None,
            "visible_in_3d": bool(node.GetSliceVisible()),
        }
    return out


def slice_offset(node):
    matrix = node.GetSliceToRAS()
    return sum(matrix.GetElement(row, 2) * matrix.GetElement(row, 3) for row in range(3))


def camera():
    cameras = nodes_of("vtkMRMLCameraNode")
    if not cameras:
        return []
    return [round(number, 4) for number in (*cameras[0].GetPosition(), *cameras[0].GetFocalPoint())]


def selected_volume():
    nodes = nodes_of("vtkMRMLSelectionNode")
    return (nodes[0].GetActiveVolumeID() or None) if nodes else None
