slice_background(values["moving"])
points = markup_new("point", "Moving landmarks")
markup_place(points)
keep(moving_points=points)
