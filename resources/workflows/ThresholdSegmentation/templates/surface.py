segment_surface(values["segmentation"])
