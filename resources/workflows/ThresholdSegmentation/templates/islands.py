operation = "KEEP_LARGEST_ISLAND" if values["parts"] == "Keep the largest part" else "REMOVE_SMALL_ISLANDS"
segment_effect(values["segmentation"], values["volume"], values["segment"], "Islands", Operation=operation, MinimumSize=1000)
