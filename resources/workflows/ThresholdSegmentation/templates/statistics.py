table = segment_statistics(values["segmentation"], values["volume"], "Threshold statistics")
keep(table=table, figures=table_get(table))
