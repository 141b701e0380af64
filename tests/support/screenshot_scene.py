# A scene in which a picture could disturb much: oblique, linked, thick and tiled slices, marks, a segment, a crosshair.
import SampleData
import numpy

volume = SampleData.downloadSample("MRHead")
manager = slicer.app.layoutManager()


def slice_node(name):
    return manager.sliceWidget(name).mrmlSliceNode()


segmentation = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLSegmentationNode", "Segmentation")
segmentation.CreateDefaultDisplayNodes()
segmentation.SetReferenceImageGeometryParameterFromVolumeNode(volume)
ball = vtk.vtkSphereSource()
ball.SetRadius(30)
bounds = [0.0] * 6
volume.GetRASBounds(bounds)
middle = [(bounds[2 * i] + bounds[2 * i + 1]) / 2 for i in range(3)]
ball.SetCenter(middle)
ball.Update()
segmentation.AddSegmentFromClosedSurfaceRepresentation(ball.GetOutput(), "ball", [0.0, 1.0, 0.0])
segmentation.CreateClosedSurfaceRepresentation()

marks = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLMarkupsFiducialNode", "F")
marks.CreateDefaultDisplayNodes()
marks.AddControlPoint(*middle)
marks.GetDisplayNode().SetSelectedColor(1.0, 0.0, 1.0)

crosshair = slicer.mrmlScene.GetFirstNodeByClass("vtkMRMLCrosshairNode")
crosshair.SetCrosshairMode(slicer.vtkMRMLCrosshairNode.ShowBasic)
crosshair.SetCrosshairRAS(middle)

for composite in slicer.util.getNodesByClass("vtkMRMLSliceCompositeNode"):
    composite.SetBackgroundVolumeID(volume.GetID())
    composite.SetLinkedControl(True)
    composite.SetHotLinkedControl(True)
for name in manager.sliceViewNames():
    manager.sliceWidget(name).sliceLogic().FitSliceToBackground()
    slice_node(name).SetSliceVisible(True)
    slice_node(name).SetRulerType(slice_node(name).RulerTypeThin)

red, green, yellow = (slice_node(name) for name in ("Red", "Green", "Yellow"))
red.SetSlabReconstructionEnabled(True)
red.SetSlabReconstructionThickness(5.0)
red.SetSliceOffset(middle[2] + 1.2345678901)
red.SetXYZOrigin(3.3, -7.7, 0.0)
green.RotateToAxes(vtk.vtkMatrix4x4())
turn = vtk.vtkTransform()
turn.SetMatrix(green.GetSliceToRAS())
turn.RotateWXYZ(23.7, 0.3, 1.0, 0.2)
green.GetSliceToRAS().DeepCopy(turn.GetMatrix())
green.UpdateMatrices()
yellow.SetLayoutGrid(1, 2)
yellow.SetFieldOfView(77.7, 77.7 * yellow.GetFieldOfView()[1] / yellow.GetFieldOfView()[0], yellow.GetFieldOfView()[2])

for node in (red, green, yellow):
    node.UpdateMatrices()  # what follows from the values is otherwise renewed by the next movement only

three_d = manager.threeDWidget(0)
three_d.mrmlViewNode().SetOrientationMarkerType(three_d.mrmlViewNode().OrientationMarkerTypeAxes)
camera = three_d.threeDView().renderWindow().GetRenderers().GetFirstRenderer().GetActiveCamera()
camera.SetFocalPoint(*middle)
camera.SetPosition(middle[0] + 250.1, middle[1] + 180.2, middle[2] + 99.9)
camera.SetViewUp(0.1, 0.05, 0.99)
camera.OrthogonalizeViewUp()
camera.SetViewAngle(31.4)
camera.SetParallelScale(123.4)
camera.SetClippingRange(11.1, 999.9)
__execResult = middle
