__execResult = {"pid": __import__("os").getpid(), "scene": __import__("slicer").mrmlScene.GetURL() or ""}
