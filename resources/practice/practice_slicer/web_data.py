"""The routes of the Web Server API that list, send, take and remove MRML nodes."""

import json
import urllib.parse
import urllib.request

import numpy as np
import slicer
import vtk

from . import web_nrrd
from .node_properties import properties
from .web_types import BINARY, JSON

NO_NODES = "No nodes matched the filter criteria"
SUCCESS = b'{"success": true}'


def _filtered(query):
    """The nodes that `id`, or `class` and `name`, ask for; all nodes without them."""
    if "id" in query:
        node = slicer.mrmlScene.GetNodeByID(query["id"])
        return [node] if node else []
    nodes = slicer.util.getNodesByClass(query.get("class", "vtkMRMLNode"))
    return [node for node in nodes if node.GetName() == query["name"]] if "name" in query else nodes


def _file_path(query, download=False):
    """The path of the file on this machine that `url` or `localfile` names."""
    if "url" in query:
        url = urllib.parse.urlparse(query["url"])
        if download and url.scheme != "file":
            raise RuntimeError(f"the practice Slicer has no network: cannot download {query['url']}")
        return urllib.request.url2pathname(url.path)
    if "localfile" in query:
        return query["localfile"]
    raise RuntimeError("Required `url` or `localfile` query parameter is missing in `mrml` request")


def mrml(method, path, query, body):
    """/mrml: GET lists or saves, POST loads, PUT reads again, DELETE removes."""
    answer = {"GET": _mrml_get, "POST": _mrml_post, "PUT": _mrml_put, "DELETE": _mrml_delete}[method]
    return JSON, answer(path, query)


def _mrml_get(path, query):
    nodes = _filtered(query)
    if path in ("/mrml", "/mrml/names"):
        return json.dumps([node.GetName() for node in nodes]).encode()
    if path == "/mrml/ids":
        return json.dumps([node.GetID() for node in nodes]).encode()
    if path not in ("/mrml/properties", "/mrml/file"):
        raise RuntimeError(f"Invalid path: {path}")
    if not nodes:
        raise RuntimeError(NO_NODES)
    if path == "/mrml/properties":
        return json.dumps({node.GetID(): properties(node) for node in nodes}).encode()
    if len(nodes) > 1:
        raise RuntimeError("/mrml/file can only be used for a single node")
    file_path = _file_path(query)
    options = {key: text for key, text in query.items() if key not in ("url", "localfile", "applytransforms")}
    harden = slicer.util.toBool(query.get("applytransforms", "false"))
    return json.dumps({"success": slicer.util.exportNode(nodes[0], file_path, options, harden)}).encode()


def _mrml_post(path, query):
    file_path = _file_path(query, download=True)
    options = {key: text for key, text in query.items() if key not in ("url", "localfile")}
    loaded = slicer.util.loadNodeFromFile(file_path, options["filetype"], options)
    if loaded is None:
        loaded = []
    elif not isinstance(loaded, list):
        loaded = [loaded]
    return json.dumps({"success": True, "loadedNodeIDs": [node.GetID() for node in loaded]}).encode()


def _mrml_put(path, query):
    nodes = _filtered(query)
    if not nodes:
        raise RuntimeError(NO_NODES)
    stored = [node for node in nodes if hasattr(node, "GetStorageNode") and node.GetStorageNode()]
    read = [node.GetID() for node in stored if node.GetStorageNode().ReadData(node)]
    return json.dumps({"success": True, "reloadedNodeIDs": read} if read else {"success": False}).encode()


def _mrml_delete(path, query):
    if not query.keys() & {"class", "name", "id"}:
        slicer.mrmlScene.Clear()  # singletons (views) stay
        return SUCCESS
    nodes = _filtered(query)
    if not nodes:
        raise RuntimeError(NO_NODES)
    for node in nodes:
        slicer.mrmlScene.RemoveNode(node)
    return SUCCESS


def _listing(*classes):
    nodes = [node for name in classes for node in slicer.util.getNodes(name + "*").values()]
    return JSON, json.dumps([{"name": node.GetName(), "id": node.GetID()} for node in nodes]).encode()


def volumes(method, path, query, body):
    return _listing("vtkMRMLScalarVolumeNode", "vtkMRMLLabelMapVolumeNode")


def grid_transforms(method, path, query, body):
    return _listing("vtkMRMLGridTransformNode")


def volume(method, path, query, body):
    """Send a volume as NRRD, or with a body: take one."""
    name_or_id = query.get("id", "vtkMRMLScalarVolumeNode*")
    if body:
        _take_volume(name_or_id, body)
        return JSON, b"{'status': 'success'}"  # not JSON, as in Slicer
    node = slicer.util.getNode(name_or_id)
    voxels = slicer.util.array(name_or_id)
    if node.GetClassName() not in ("vtkMRMLScalarVolumeNode", "vtkMRMLLabelMapVolumeNode"):
        raise TypeError("cannot unpack non-iterable NoneType object")
    return BINARY, web_nrrd.volume_to_nrrd(node, voxels)


def _take_volume(name_or_id, body):
    sizes, matrix, data = web_nrrd.read_nrrd(body)
    image = vtk.vtkImageData()
    image.SetDimensions(sizes)
    image.AllocateScalars(vtk.VTK_SHORT, 1)
    try:
        node = slicer.util.getNode(name_or_id)
    except slicer.util.MRMLNodeNotFoundException:
        node = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLScalarVolumeNode", name_or_id)
        node.CreateDefaultDisplayNodes()
    node.SetAndObserveImageData(image)
    node.SetIJKToRASMatrix(matrix)
    voxels = slicer.util.array(node.GetID())
    voxels[:] = np.frombuffer(data, dtype="int16").reshape(voxels.shape)
    image.GetPointData().GetScalars().Modified()
    display = node.GetDisplayNode()
    display.ProcessMRMLEvents(display, vtk.vtkCommand.ModifiedEvent, "")
    slicer.app.applicationLogic().GetSelectionNode().SetActiveVolumeID(node.GetID())
    slicer.app.applicationLogic().PropagateVolumeSelection()


def grid_transform(method, path, query, body):
    if body:
        raise RuntimeError("POST griddtransform is not implemented")
    name_or_id = query.get("id", "vtkMRMLGridTransformNode*")
    node = slicer.util.getNode(name_or_id)
    return BINARY, web_nrrd.grid_to_nrrd(node, slicer.util.array(name_or_id))


def fiducials(method, path, query, body):
    found = {}
    for node in slicer.util.getNodesByClass("vtkMRMLMarkupsFiducialNode"):
        display = node.GetDisplayNode()
        points = [
            {"label": node.GetNthControlPointLabel(i), "position": list(node.GetNthControlPointPosition(i))}
            for i in range(node.GetNumberOfControlPoints())
        ]
        found[node.GetID()] = {
            "name": node.GetName(),
            "color": display.GetSelectedColor(),
            "scale": display.GetGlyphScale(),
            "markups": points,
        }
    return JSON, json.dumps(found).encode()


def fiducial(method, path, query, body):
    """Move the first control point; a given `index` is text and fails, as in Slicer."""
    node = slicer.util.getNode(query.get("id", "vtkMRMLMarkupsFiducialNode*"))
    node.SetNthControlPointPosition(query.get("index", 0), *(float(query.get(axis, 0)) for axis in "ras"))
    return JSON, SUCCESS


def segmentations(method, path, query, body):
    found = {
        node.GetID(): {"name": node.GetName(), "segmentIDs": node.GetSegmentation().GetSegmentIDs()}
        for node in slicer.util.getNodesByClass("vtkMRMLSegmentationNode")
    }
    return JSON, json.dumps(found).encode()


def segmentation(method, path, query, body):
    slicer.util.getNode(query.get("segmentationID", "vtkMRMLSegmentationNode*"))
    return JSON, b'{"result": "not implemented yet"}'
