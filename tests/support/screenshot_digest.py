# All that the person's views consist of, one line a value, and when other nodes were last modified.
import re

lines = []
VIEWS = (
    "vtkMRMLAbstractViewNode vtkMRMLSliceCompositeNode vtkMRMLCameraNode vtkMRMLCrosshairNode vtkMRMLLayoutNode "
    "vtkMRMLSelectionNode vtkMRMLInteractionNode"
).split()
# Slices that are shown in 3D are models, which follow their slice wherever it goes.
FOLLOWERS = re.compile(r"Slice$|Volume Slice|Slice.*(Model|Transform|Display)")
for index in range(slicer.mrmlScene.GetNumberOfNodes()):
    node = slicer.mrmlScene.GetNthNode(index)
    key = node.GetID()
    if any(node.IsA(name) for name in VIEWS):
        for line in str(node).splitlines():
            if not re.search(r"Modified Time|MTime|\(0x|: 0x", line):
                lines.append(f"{key} {line.strip()}")
    if node.IsA("vtkMRMLSliceNode"):
        for name in ("SliceToRAS", "XYToRAS", "XYToSlice", "UVWToRAS", "UVWToSlice"):
            matrix = getattr(node, "Get" + name)()
            lines.append(f"{key} {name} {[matrix.GetElement(i, j) for i in range(4) for j in range(4)]!r}")
        for name in (
            "FieldOfView XYZOrigin UVWOrigin UVWExtents UVWDimensions Dimensions PrescribedSliceSpacing "
            "OrientationReference SliceOffset Orientation LayoutGridRows LayoutGridColumns SlabReconstructionEnabled "
            "SlabReconstructionThickness SliceVisible SliceSpacingMode Interacting InteractionFlags"
        ).split():
            value = getattr(node, "Get" + name, lambda: "not in Python")()
            lines.append(f"{key} {name} {value!r}")
    elif node.IsA("vtkMRMLCameraNode"):
        camera = node.GetCamera()
        for name in (
            "Position FocalPoint ViewUp ViewAngle ParallelScale ParallelProjection ClippingRange Thickness Distance "
            "WindowCenter"
        ).split():
            lines.append(f"{key} {name} {getattr(camera, 'Get' + name)()!r}")
    elif not FOLLOWERS.search(node.GetName() or "") and not node.IsA("vtkMRMLModelNode"):
        lines.append(f"{key} {node.GetName()} modified {node.GetMTime()}")
    if node.IsA("vtkMRMLStorageNode"):
        lines.append(f"{key} stored {node.GetStoredTime().GetMTime()}")
renderer = slicer.app.layoutManager().threeDWidget(0).threeDView().renderWindow().GetRenderers().GetFirstRenderer()
cameras = slicer.util.getNodesByClass("vtkMRMLCameraNode")
lines.append(f"active camera {[node.GetID() for node in cameras if node.GetCamera() is renderer.GetActiveCamera()]}")
lines.append(f"names {sorted(name for name in globals() if not name.startswith('__'))}")
__execResult = lines
