low, high = values["thresholds"]
segmentation = segment_new(values["volume"], "Threshold segmentation")
segment = segment_add(segmentation, "Threshold")
segment_threshold(segmentation, values["volume"], segment, low, high)
keep(segmentation=segmentation, segment=segment)
