remove_nodes([values["segmentation"]])
