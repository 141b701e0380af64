remove_nodes([values["transform"], values["fixed_points"], values["moving_points"]])
