segment_effect(
    values["segmentation"], values["volume"], values["segment"], "Smoothing", SmoothingMethod="MEDIAN", KernelSizeMm=values["kernel"]
)
