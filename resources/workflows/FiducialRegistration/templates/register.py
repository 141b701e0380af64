fixed = slicer.util.arrayFromMarkupsControlPoints(slicer.mrmlScene.GetNodeByID(values["fixed_points"]), world=True)
movingNode = slicer.mrmlScene.GetNodeByID(values["moving_points"])
moving = slicer.util.arrayFromMarkupsControlPoints(movingNode, world=True)

sourcePoints, targetPoints = vtk.vtkPoints(), vtk.vtkPoints()
for source, target in zip(moving, fixed):
    sourcePoints.InsertNextPoint(source)
    targetPoints.InsertNextPoint(target)
landmarks = vtk.vtkLandmarkTransform()
landmarks.SetSourceLandmarks(sourcePoints)
landmarks.SetTargetLandmarks(targetPoints)
if values["kind"] == "Rigid":
    landmarks.SetModeToRigidBody()
elif values["kind"] == "Similarity":
    landmarks.SetModeToSimilarity()
else:
    landmarks.SetModeToAffine()
landmarks.Update()

transform = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLLinearTransformNode", "Landmark registration")
transform.SetMatrixTransformToParent(landmarks.GetMatrix())
slicer.mrmlScene.GetNodeByID(values["moving"]).SetAndObserveTransformNodeID(transform.GetID())
movingNode.SetAndObserveTransformNodeID(transform.GetID())

moved = [landmarks.TransformPoint(source) for source in moving]
errors = [float(sum((a - b) ** 2 for a, b in zip(one, other)) ** 0.5) for one, other in zip(moved, fixed)]
mean = (sum(error * error for error in errors) / len(errors)) ** 0.5
keep(transform=transform, errors={"each_mm": errors, "root_mean_square_mm": mean})
