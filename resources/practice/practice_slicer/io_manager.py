"""Reading and writing of files by type, over MRML's own storage nodes and logics."""

import os

import slicer
import vtk

from .qt_core import QObject


class CoreIOManager(QObject):
    kinds = [  # first match wins, as the reader with the highest confidence does
        (("mrml", "mrb"), "SceneFile"),
        (("seg.nrrd", "seg.nhdr", "seg.vtm"), "SegmentationFile"),
        (("seq.nrrd", "seq.nhdr", "seq.mrb"), "SequenceFile"),
        (("mrk.json", "fcsv"), "MarkupsFile"),
        (("term.json",), "TerminologyFile"),
        (("vp.json", "vp"), "TransferFunctionFile"),
        (("sp",), "ShaderPropertyFile"),
        (("acsv",), "AnnotationFile"),
        (
            (
                "nrrd",
                "nhdr",
                "nii",
                "nii.gz",
                "mha",
                "mhd",
                "hdr",
                "img",
                "img.gz",
                "dcm",
                "mgh",
                "mgz",
                "mnc",
                "png",
                "jpg",
                "jpeg",
                "tif",
                "tiff",
            ),
            "VolumeFile",
        ),
        (("vtk", "vtp", "vtu", "g", "byu", "stl", "ply", "obj", "ucd"), "ModelFile"),
        (("h5", "tfm", "mat", "hdf5", "he5"), "TransformFile"),
        (("tsv", "csv", "db"), "TableFile"),
        (("ctbl", "cxml"), "ColorTableFile"),
        (("txt", "xml", "json"), "TextFile"),
    ]
    writers = [
        ("vtkMRMLSegmentationNode", "SegmentationFile"),
        ("vtkMRMLMarkupsNode", "MarkupsFile"),
        ("vtkMRMLVolumeNode", "VolumeFile"),
        ("vtkMRMLModelNode", "ModelFile"),
        ("vtkMRMLTransformNode", "TransformFile"),
        ("vtkMRMLTableNode", "TableFile"),
        ("vtkMRMLTextNode", "TextFile"),
        ("vtkMRMLColorNode", "ColorTableFile"),
        ("vtkMRMLSequenceNode", "SequenceFile"),
        ("vtkMRMLVolumePropertyNode", "TransferFunctionFile"),
        ("vtkMRMLShaderPropertyNode", "ShaderPropertyFile"),
        ("vtkMRMLSceneViewNode", "SceneViewFile"),
    ]

    def fileType(self, filename):
        base = os.path.basename(str(filename)).lower()
        for exts, kind in self.kinds:
            if any(base.endswith("." + e) for e in exts):
                return kind
        return "VolumeFile"

    def registeredFileReaderCount(self, kind):
        return 1 if any(k == kind for _, k in self.kinds) else 0

    def fileWriterFileType(self, node, *a):
        return next((k for c, k in self.writers if node.IsA(c)), "NoFile")

    def fileWriterExtensions(self, node):
        s = node.GetStorageNode() if hasattr(node, "GetStorageNode") and node.GetStorageNode() else None
        if s is None and hasattr(node, "CreateDefaultStorageNode"):
            s = node.CreateDefaultStorageNode()
            if s is not None:
                s.UnRegister(None)
        if s is None:
            return ()
        if s.GetScene() is None:
            s.SetScene(slicer.mrmlScene)  # volumes ask the scene's data IO manager for ITK's formats
        t = s.GetSupportedWriteFileTypes()
        return tuple(t.GetValue(i) for i in range(t.GetNumberOfValues()))

    def extractKnownExtension(self, filename, node):
        base = os.path.basename(str(filename)).lower()
        known = sorted(
            (
                slicer.vtkDataFileFormatHelper.GetFileExtensionFromFormatString(f)
                for f in self.fileWriterExtensions(node)
            ),
            key=lambda x: -len(x or ""),
        )
        return next((e for e in known if e and base.endswith(e.lower())), "")

    def completeSlicerWritableFileNameSuffix(self, node):
        s = node.GetStorageNode()
        return "." + s.GetDefaultWriteFileExtension() if s else ""

    def forceFileNameValidCharacters(self, n):
        return "".join(c if c.isalnum() or c in " _.-()" else "_" for c in n)

    forceFileNameMaxLength = forceFileNameValidCharacters

    def addDefaultStorageNodes(self):
        for n in slicer.util.getNodesByClass("vtkMRMLStorableNode"):
            n.AddDefaultStorageNode()

    def _message(self, msgs, text):
        msgs.AddMessage(vtk.vtkCommand.ErrorEvent, text)

    def loadNodes(self, kind, props, out=None, msgs=None):
        msgs = msgs or slicer.vtkMRMLMessageCollection()
        out = out if out is not None else vtk.vtkCollection()
        fn = (
            os.path.abspath(props["fileName"]) if not isinstance(props["fileName"], list) else props["fileName"][0]
        )
        if not os.path.exists(fn):
            self._message(msgs, f"File does not exist: {fn}")
            return False
        before = {n.GetID() for n in slicer.util.getNodesByClass("vtkMRMLNode")}
        reader = getattr(self, "_read" + kind, None)
        if reader is None:
            self._message(msgs, f"No reader for {kind} in this practice Slicer")
            return False
        name = props.get("name") or self._baseName(fn)
        got = reader(fn, name, props, msgs)
        if got is False or got is None:
            return False
        if got is True:
            got = [n for n in slicer.util.getNodesByClass("vtkMRMLNode") if n.GetID() not in before]
        for n in got if isinstance(got, (list, tuple)) else [got]:
            out.AddItem(n)
        return True

    def _baseName(self, fn):
        base = os.path.basename(fn)
        for exts, _ in self.kinds:
            for e in sorted(exts, key=len, reverse=True):
                if base.lower().endswith("." + e):
                    return base[: -len(e) - 1]
        return os.path.splitext(base)[0]

    def _logic(self, m):
        return getattr(slicer.modules, m).logic()

    def _readVolumeFile(self, fn, name, p, msgs):
        opts = sum(
            bit
            for key, bit in (
                ("labelmap", 1),
                ("center", 2),
                ("singleFile", 4),
                ("autoWindowLevel", 8),
                ("discardOrientation", 16),
            )
            if slicer.util.toBool(p.get(key, False))
        )
        files = None
        if p.get("fileNames"):
            files = vtk.vtkStringArray()
            for f in p["fileNames"]:
                files.InsertNextValue(f)
        node = self._logic("volumes").AddArchetypeVolume(fn, name, opts, files)
        if node is None:
            return None
        if p.get("colorNodeID"):
            node.GetDisplayNode().SetAndObserveColorNodeID(p["colorNodeID"])
        if slicer.util.toBool(p.get("show", True)):
            sel = slicer.app.applicationLogic().GetSelectionNode()
            (sel.SetActiveLabelVolumeID if node.IsA("vtkMRMLLabelMapVolumeNode") else sel.SetActiveVolumeID)(
                node.GetID()
            )
            slicer.app.applicationLogic().PropagateVolumeSelection()
        return node

    def _readModelFile(self, fn, name, p, msgs):
        n = self._logic("models").AddModel(
            fn, int(p.get("coordinateSystem", slicer.vtkMRMLStorageNode.CoordinateSystemLPS)), msgs
        )
        if n and p.get("name"):
            n.SetName(slicer.mrmlScene.GetUniqueNameByString(p["name"]))
        return n

    def _readMarkupsFile(self, fn, name, p, msgs):
        ids = self._logic("markups").LoadMarkups(fn, name, msgs)
        return [slicer.mrmlScene.GetNodeByID(i) for i in ids.split(",")] if ids else None

    def _readTransformFile(self, fn, name, p, msgs):
        return self._logic("transforms").AddTransform(fn, slicer.mrmlScene, msgs)

    def _readSegmentationFile(self, fn, name, p, msgs):
        lg = self._logic("segmentations")
        if fn.lower().endswith(
            (".seg.nrrd", ".seg.nhdr", ".seg.vtm", ".nrrd", ".nii.gz", ".nii", ".vtm", ".nhdr")
        ):
            color = slicer.mrmlScene.GetNodeByID(p["colorNodeID"]) if p.get("colorNodeID") else None
            return lg.LoadSegmentationFromFile(fn, bool(p.get("autoOpacities", True)), name, color, msgs)
        seg = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLSegmentationNode", name)
        model = self._readModelFile(fn, name, {}, msgs)
        if not model or not lg.ImportModelToSegmentationNode(model, seg):
            return None
        slicer.mrmlScene.RemoveNode(model)
        return seg

    def _readTableFile(self, fn, name, p, msgs):
        n = self._logic("tables").AddTable(fn, name, True, p.get("password", ""), msgs)
        if n:
            slicer.app.applicationLogic().GetSelectionNode().SetActiveTableID(n.GetID())
            slicer.app.applicationLogic().PropagateTableSelection()
        return n

    def _readTextFile(self, fn, name, p, msgs):
        n = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLTextNode", name)
        with open(fn, encoding="utf8", errors="replace") as f:
            n.SetText(f.read())
        return n

    def _readColorTableFile(self, fn, name, p, msgs):
        return self._logic("colors").LoadColorFile(fn, name, msgs)

    def _readSequenceFile(self, fn, name, p, msgs):
        seq = self._logic("sequences").AddSequence(fn, msgs)
        if seq is None:
            return None
        br = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLSequenceBrowserNode", name + " browser")
        br.AddSynchronizedSequenceNode(seq)
        self._logic("sequences").UpdateProxyNodesFromSequences(br)
        return seq

    def _readTransferFunctionFile(self, fn, name, p, msgs):
        return self._logic("volumerendering").AddVolumePropertyFromFile(fn)

    def _readShaderPropertyFile(self, fn, name, p, msgs):
        return self._logic("volumerendering").AddShaderPropertyFromFile(fn)

    def _readTerminologyFile(self, fn, name, p, msgs):
        return [] if self._logic("terminologies").LoadContextFromFile(fn) else None

    def _readSceneFile(self, fn, name, p, msgs):
        clear = slicer.util.toBool(p.get("clear", False))
        if fn.lower().endswith(".mrb"):
            return bool(slicer.mrmlScene.ReadFromMRB(fn, clear, msgs))
        slicer.mrmlScene.SetURL(fn)
        slicer.mrmlScene.SetRootDirectory(os.path.dirname(fn))
        return bool(slicer.mrmlScene.Connect(msgs) if clear else slicer.mrmlScene.Import(msgs))

    # writing
    def saveNodes(self, kind, props, msgs=None):
        msgs = msgs or slicer.vtkMRMLMessageCollection()
        fn = str(props["fileName"])
        if kind == "SceneFile":
            if fn.lower().endswith(".mrb"):
                return bool(slicer.mrmlScene.WriteToMRB(os.path.abspath(fn), None, msgs))
            if fn.lower().endswith(".mrml"):
                slicer.mrmlScene.SetURL(os.path.abspath(fn))
                slicer.mrmlScene.SetRootDirectory(os.path.dirname(os.path.abspath(fn)))
                return bool(slicer.mrmlScene.Commit(fn, msgs))
            os.makedirs(fn, exist_ok=True)
            return bool(slicer.app.applicationLogic().SaveSceneToSlicerDataBundleDirectory(fn, None, msgs))
        node = slicer.mrmlScene.GetNodeByID(props["nodeID"])
        if not node.GetStorageNode():
            if not node.AddDefaultStorageNode(fn):
                return False
        s = node.GetStorageNode()
        s.SetFileName(fn)
        if "useCompression" in props:
            s.SetUseCompression(slicer.util.toBool(props["useCompression"]))
        return bool(s.WriteData(node))

    def exportNodes(self, ids, names, props, harden=False, msgs=None):
        ok = True
        for i, fn in zip(ids, names):
            node = slicer.mrmlScene.GetNodeByID(i)
            tmp = slicer.vtkMRMLScene()
            tmp.SetRootDirectory(os.path.dirname(os.path.abspath(fn)))
            tmp.SetDataIOManager(slicer.mrmlScene.GetDataIOManager())
            copy = node.CreateNodeInstance()
            copy.UnRegister(None)
            tmp.AddNode(copy)
            copy.CopyContent(node)
            if harden and hasattr(node, "GetParentTransformNode") and node.GetParentTransformNode():
                m = vtk.vtkGeneralTransform()
                node.GetParentTransformNode().GetTransformToWorld(m)
                copy.ApplyTransform(m)
            s = copy.CreateDefaultStorageNode()
            s.UnRegister(None)
            tmp.AddNode(s)
            s.SetFileName(os.path.abspath(fn))
            if "useCompression" in props:
                s.SetUseCompression(slicer.util.toBool(str(props["useCompression"])))
            ok = bool(s.WriteData(copy)) and ok
        return ok

    def openScreenshotDialog(self, *a):
        return False
