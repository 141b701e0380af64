slice_background(values["fixed"], values["moving"], 0.5)
