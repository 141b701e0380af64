keep(volume=sample("CTChest"))
