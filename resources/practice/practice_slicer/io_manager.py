"""Reading and writing of files by type, over MRML's own storage nodes and module logics.

In Slicer each module registers its readers and writers with the IO manager; here one table and one function for each
file type do.  `slicer.util.loadVolume`, `saveNode` and the like call this.
"""

import os

import slicer
import vtk

from .qt_core import QObject

# File name endings and file type; the first match wins, as the reader with the highest confidence does in Slicer.
FILE_TYPES = tuple(
    (tuple("." + ending for ending in endings.split()), file_type)
    for endings, file_type in (
        ("mrml mrb", "SceneFile"),
        ("seg.nrrd seg.nhdr seg.vtm", "SegmentationFile"),
        ("seq.nrrd seq.nhdr seq.mrb", "SequenceFile"),
        ("mrk.json fcsv", "MarkupsFile"),
        ("term.json", "TerminologyFile"),
        ("vp.json vp", "TransferFunctionFile"),
        ("sp", "ShaderPropertyFile"),
        ("acsv", "AnnotationFile"),
        ("nrrd nhdr nii nii.gz mha mhd hdr img img.gz dcm mgh mgz mnc png jpg jpeg tif tiff", "VolumeFile"),
        ("vtk vtp vtu g byu stl ply obj ucd", "ModelFile"),
        ("h5 tfm mat hdf5 he5", "TransformFile"),
        ("tsv csv db", "TableFile"),
        ("ctbl cxml", "ColorTableFile"),
        ("txt xml json", "TextFile"),
    )
)
WRITERS = (  # class of the node, file type
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
)
# Read properties of a volume and their bits in the volumes logic's options.
VOLUME_OPTIONS = {"labelmap": 1, "center": 2, "singleFile": 4, "autoWindowLevel": 8, "discardOrientation": 16}
LABEL_MAP_ENDINGS = (".seg.nrrd", ".seg.nhdr", ".seg.vtm", ".nrrd", ".nii.gz", ".nii", ".vtm", ".nhdr")


def _logic(module):
    return getattr(slicer.modules, module).logic()


def _is_true(properties, name, default=False):
    return slicer.util.toBool(properties.get(name, default))


def _select_volume(node):
    """Show a volume in the slice views, as loading it does in Slicer."""
    selection = slicer.app.applicationLogic().GetSelectionNode()
    if node.IsA("vtkMRMLLabelMapVolumeNode"):
        selection.SetActiveLabelVolumeID(node.GetID())
    else:
        selection.SetActiveVolumeID(node.GetID())
    slicer.app.applicationLogic().PropagateVolumeSelection()


# The readers: each takes the path, the name for the node, the read properties and the message collection, and gives
# a node, a list of nodes, True when the scene knows which nodes are new, or None or False when it failed.


def _read_volume(path, name, properties, messages):
    options = sum(bit for key, bit in VOLUME_OPTIONS.items() if _is_true(properties, key))
    files = None
    if properties.get("fileNames"):
        files = vtk.vtkStringArray()
        for file_name in properties["fileNames"]:
            files.InsertNextValue(file_name)
    node = _logic("volumes").AddArchetypeVolume(path, name, options, files)
    if node is None:
        return None
    if properties.get("colorNodeID"):
        node.GetDisplayNode().SetAndObserveColorNodeID(properties["colorNodeID"])
    if _is_true(properties, "show", True):
        _select_volume(node)
    return node


def _read_model(path, name, properties, messages):
    system = int(properties.get("coordinateSystem", slicer.vtkMRMLStorageNode.CoordinateSystemLPS))
    node = _logic("models").AddModel(path, system, messages)
    if node and properties.get("name"):
        node.SetName(slicer.mrmlScene.GetUniqueNameByString(properties["name"]))
    return node


def _read_markups(path, name, properties, messages):
    ids = _logic("markups").LoadMarkups(path, name, messages)
    return [slicer.mrmlScene.GetNodeByID(node_id) for node_id in ids.split(",")] if ids else None


def _read_transform(path, name, properties, messages):
    return _logic("transforms").AddTransform(path, slicer.mrmlScene, messages)


def _read_segmentation(path, name, properties, messages):
    """A label map file, or a surface file, which becomes one segment."""
    logic = _logic("segmentations")
    if path.lower().endswith(LABEL_MAP_ENDINGS):
        color = slicer.mrmlScene.GetNodeByID(properties.get("colorNodeID") or "")
        opacities = bool(properties.get("autoOpacities", True))
        return logic.LoadSegmentationFromFile(path, opacities, name, color, messages)
    segmentation = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLSegmentationNode", name)
    model = _read_model(path, name, {}, messages)
    if not model or not logic.ImportModelToSegmentationNode(model, segmentation):
        return None
    slicer.mrmlScene.RemoveNode(model)
    return segmentation


def _read_table(path, name, properties, messages):
    node = _logic("tables").AddTable(path, name, True, properties.get("password", ""), messages)
    if node:
        slicer.app.applicationLogic().GetSelectionNode().SetActiveTableID(node.GetID())
        slicer.app.applicationLogic().PropagateTableSelection()
    return node


def _read_text(path, name, properties, messages):
    node = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLTextNode", name)
    with open(path, encoding="utf8", errors="replace") as file:
        node.SetText(file.read())
    return node


def _read_color_table(path, name, properties, messages):
    return _logic("colors").LoadColorFile(path, name, messages)


def _read_sequence(path, name, properties, messages):
    sequence = _logic("sequences").AddSequence(path, messages)
    if sequence is None:
        return None
    browser = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLSequenceBrowserNode", name + " browser")
    browser.AddSynchronizedSequenceNode(sequence)
    _logic("sequences").UpdateProxyNodesFromSequences(browser)
    return sequence


def _read_transfer_function(path, name, properties, messages):
    return _logic("volumerendering").AddVolumePropertyFromFile(path)


def _read_shader_property(path, name, properties, messages):
    return _logic("volumerendering").AddShaderPropertyFromFile(path)


def _read_terminology(path, name, properties, messages):
    return [] if _logic("terminologies").LoadContextFromFile(path) else None


def _read_scene(path, name, properties, messages):
    scene, clear = slicer.mrmlScene, _is_true(properties, "clear")
    if path.lower().endswith(".mrb"):
        return bool(scene.ReadFromMRB(path, clear, messages))
    scene.SetURL(path)
    scene.SetRootDirectory(os.path.dirname(path))
    return bool(scene.Connect(messages) if clear else scene.Import(messages))


READERS = {
    "VolumeFile": _read_volume,
    "ModelFile": _read_model,
    "MarkupsFile": _read_markups,
    "TransformFile": _read_transform,
    "SegmentationFile": _read_segmentation,
    "TableFile": _read_table,
    "TextFile": _read_text,
    "ColorTableFile": _read_color_table,
    "SequenceFile": _read_sequence,
    "TransferFunctionFile": _read_transfer_function,
    "ShaderPropertyFile": _read_shader_property,
    "TerminologyFile": _read_terminology,
    "SceneFile": _read_scene,
}


def _base_name(path):
    """The file name without its ending, which may have several parts (`.seg.nrrd`)."""
    base = os.path.basename(path)
    for endings, _ in FILE_TYPES:
        for ending in sorted(endings, key=len, reverse=True):
            if base.lower().endswith(ending):
                return base[: -len(ending)]
    return os.path.splitext(base)[0]


def _all_nodes():
    return slicer.util.getNodesByClass("vtkMRMLNode")


def _write_scene(path, messages):
    scene, full_path = slicer.mrmlScene, os.path.abspath(path)
    if path.lower().endswith(".mrb"):
        return bool(scene.WriteToMRB(full_path, None, messages))
    if path.lower().endswith(".mrml"):
        scene.SetURL(full_path)
        scene.SetRootDirectory(os.path.dirname(full_path))
        return bool(scene.Commit(path, messages))
    os.makedirs(path, exist_ok=True)
    return bool(slicer.app.applicationLogic().SaveSceneToSlicerDataBundleDirectory(path, None, messages))


def _export_node(node, path, properties, harden):
    """Write a copy of a node from a scene of its own, so that the node keeps its file name and transform."""
    scene = slicer.vtkMRMLScene()
    scene.SetRootDirectory(os.path.dirname(path))
    scene.SetDataIOManager(slicer.mrmlScene.GetDataIOManager())
    copy = node.CreateNodeInstance()
    copy.UnRegister(None)
    scene.AddNode(copy)
    copy.CopyContent(node)
    if harden and hasattr(node, "GetParentTransformNode") and node.GetParentTransformNode():
        transform = vtk.vtkGeneralTransform()
        node.GetParentTransformNode().GetTransformToWorld(transform)
        copy.ApplyTransform(transform)
    storage = copy.CreateDefaultStorageNode()
    storage.UnRegister(None)
    scene.AddNode(storage)
    storage.SetFileName(path)
    if "useCompression" in properties:
        storage.SetUseCompression(slicer.util.toBool(str(properties["useCompression"])))
    return bool(storage.WriteData(copy))


class CoreIOManager(QObject):
    """What `slicer.app.coreIOManager()` gives."""

    def fileType(self, filename):
        base = os.path.basename(str(filename)).lower()
        return next((kind for endings, kind in FILE_TYPES if base.endswith(endings)), "VolumeFile")

    def registeredFileReaderCount(self, file_type):
        return 1 if file_type in READERS else 0

    def fileWriterFileType(self, node, *name):
        return next((kind for class_name, kind in WRITERS if node.IsA(class_name)), "NoFile")

    def fileWriterExtensions(self, node):
        """The formats in which a node can be written, as texts like `NRRD (.nrrd)`."""
        storage = node.GetStorageNode() if hasattr(node, "GetStorageNode") else None
        if storage is None and hasattr(node, "CreateDefaultStorageNode"):
            storage = node.CreateDefaultStorageNode()
            if storage is not None:
                storage.UnRegister(None)
        if storage is None:
            return ()
        if storage.GetScene() is None:
            storage.SetScene(slicer.mrmlScene)  # volumes ask the scene's data IO manager for ITK's formats
        formats = storage.GetSupportedWriteFileTypes()
        return tuple(formats.GetValue(i) for i in range(formats.GetNumberOfValues()))

    def extractKnownExtension(self, filename, node):
        base = os.path.basename(str(filename)).lower()
        extension_of = slicer.vtkDataFileFormatHelper.GetFileExtensionFromFormatString
        known = [extension_of(text) or "" for text in self.fileWriterExtensions(node)]
        fitting = [extension for extension in known if extension and base.endswith(extension.lower())]
        return max(fitting, key=len, default="")

    def completeSlicerWritableFileNameSuffix(self, node):
        storage = node.GetStorageNode()
        return "." + storage.GetDefaultWriteFileExtension() if storage else ""

    def forceFileNameValidCharacters(self, name):
        return "".join(c if c.isalnum() or c in " _.-()" else "_" for c in name)

    forceFileNameMaxLength = forceFileNameValidCharacters

    def addDefaultStorageNodes(self):
        for node in slicer.util.getNodesByClass("vtkMRMLStorableNode"):
            node.AddDefaultStorageNode()

    def loadNodes(self, file_type, properties, loaded=None, messages=None):
        """Load a file; new nodes go into the collection `loaded`, complaints into `messages`.  False on failure."""
        messages = messages or slicer.vtkMRMLMessageCollection()
        loaded = loaded if loaded is not None else vtk.vtkCollection()
        path = properties["fileName"]
        path = path[0] if isinstance(path, list) else os.path.abspath(path)
        if not os.path.exists(path):
            messages.AddMessage(vtk.vtkCommand.ErrorEvent, f"File does not exist: {path}")
            return False
        if file_type not in READERS:
            messages.AddMessage(vtk.vtkCommand.ErrorEvent, f"The practice Slicer has no reader for {file_type}")
            return False
        before = {node.GetID() for node in _all_nodes()}
        name = properties.get("name") or _base_name(path)
        nodes = READERS[file_type](path, name, properties, messages)
        if nodes is None or nodes is False:
            return False
        if nodes is True:
            nodes = [node for node in _all_nodes() if node.GetID() not in before]
        for node in nodes if isinstance(nodes, (list, tuple)) else [nodes]:
            loaded.AddItem(node)
        return True

    def saveNodes(self, file_type, properties, messages=None):
        """Save the scene, or the node `nodeID`, to `fileName`.  False on failure."""
        path = str(properties["fileName"])
        if file_type == "SceneFile":
            return _write_scene(path, messages or slicer.vtkMRMLMessageCollection())
        node = slicer.mrmlScene.GetNodeByID(properties["nodeID"])
        if not node.GetStorageNode() and not node.AddDefaultStorageNode(path):
            return False
        storage = node.GetStorageNode()
        storage.SetFileName(path)
        if "useCompression" in properties:
            storage.SetUseCompression(slicer.util.toBool(properties["useCompression"]))
        return bool(storage.WriteData(node))

    def exportNodes(self, ids, names, properties, harden=False, messages=None):
        """Write copies of nodes; True when all were written."""
        done = [
            _export_node(slicer.mrmlScene.GetNodeByID(node_id), os.path.abspath(name), properties, harden)
            for node_id, name in zip(ids, names)
        ]
        return all(done)

    def openScreenshotDialog(self, *args):
        return False
