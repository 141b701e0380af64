keep(fixed=sample("MRBrainTumor1"), moving=sample("MRBrainTumor2"))
