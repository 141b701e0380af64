slice_background(values["fixed"])
points = markup_new("point", "Fixed landmarks")
markup_place(points)
keep(fixed_points=points)
