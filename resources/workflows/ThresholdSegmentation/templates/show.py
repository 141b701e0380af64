slice_background(values["volume"])
