fixed = slicer.mrmlScene.GetNodeByID(values["fixed_points"]).GetNumberOfControlPoints()
moving = slicer.mrmlScene.GetNodeByID(values["moving_points"]).GetNumberOfControlPoints()
if fixed != moving:
    raise ValueError(f"There are {fixed} points on one volume and {moving} on the other. Place or remove points, then Retry.")
