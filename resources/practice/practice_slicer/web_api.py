"""The routes of Slicer's Web Server API: which path runs what, and those that concern the application.

Routing is by prefix, in this order, as in Slicer; errors carry Slicer's texts, because clients show them.
"""

import json
import logging
import os
import time
import urllib.parse
import urllib.request  # noqa: F401  (in Slicer code sent to /exec finds it loaded)

import numpy
import qt
import slicer
import vtk

from . import web_data, web_views
from .web_types import JSON, TEXT

__all__ = ["JSON", "Api"]

VERSION_FIELDS = (
    "applicationName applicationDisplayName applicationVersion releaseType repositoryUrl repositoryBranch revision "
    "majorVersion minorVersion arch os isCustomMainApplication mainApplicationName mainApplicationRepositoryUrl "
    "mainApplicationRepositoryRevision mainApplicationRevision mainApplicationMajorVersion "
    "mainApplicationMinorVersion mainApplicationPatchVersion"
).split()


class Api:
    """Answers requests.  `handle` gives the content type and the body of the reply, or raises."""

    def __init__(self, enable_exec):
        self.enable_exec = enable_exec
        # What code sent to /exec finds, and keeps from one call to the next: the names of Slicer's handler module.
        self.namespace = {
            "__name__": "WebServerLib.SlicerRequestHandler",
            "json": json,
            "logging": logging,
            "numpy": numpy,
            "os": os,
            "qt": qt,
            "slicer": slicer,
            "time": time,
            "urllib": urllib,
            "vtk": vtk,
        }
        self.routes = (
            ("/exec", self._exec),
            ("/timeimage", web_views.timeimage),
            ("/system", _system),
            ("/gui", _gui),
            ("/screenshot", web_views.screenshot),
            ("/slice", web_views.slice_view),
            ("/threeDGraphics", web_views.three_d_graphics),
            ("/threeD", web_views.three_d),
            ("/mrml", web_data.mrml),
            ("/tracking", _tracking),
            ("/sampledata", _sampledata),
            ("/volumeSelection", _volume_selection),
            ("/volumes", web_data.volumes),
            ("/volume", web_data.volume),
            ("/gridTransforms", web_data.grid_transforms),
            ("/gridTransform", web_data.grid_transform),
            ("/fiducials", web_data.fiducials),
            ("/fiducial", web_data.fiducial),
            ("/segmentations", web_data.segmentations),
            ("/segmentation", web_data.segmentation),
            ("/accessDICOMwebStudy", _access_dicom_web_study),
        )

    def handle(self, method, uri, body):
        """Answer one request; `uri` and `body` are bytes.  Returns (content type, body), both bytes."""
        parts = urllib.parse.urlparse(uri)
        path = parts.path[len(b"/slicer") :]
        query = {key: values[0].strip() for key, values in urllib.parse.parse_qs(parts.query.decode()).items()}
        for prefix, answer in self.routes:
            if path.startswith(prefix.encode()) and (prefix != "/exec" or self.enable_exec):
                return answer(method, path.decode(), query, body)
        shown = path + (b"?" + parts.query if parts.query else b"")
        raise RuntimeError(f'unknown command "{shown}"')

    def _exec(self, method, path, query, body):
        """Run Python; the reply is what it left in `__execResult`."""
        if body:
            source = body
        elif "source" in query:
            source = urllib.parse.unquote(query["source"])  # decoded a second time, as in Slicer
        else:
            return TEXT, b""
        self.namespace["__execResult"] = {}
        exec(source, self.namespace)
        if "__execResult" not in self.namespace:
            raise NameError("name '__execResult' is not defined")
        return JSON, json.dumps(self.namespace["__execResult"]).encode()


def _system(method, path, query, body):
    if method == "DELETE":
        qt.QTimer.singleShot(1000, slicer.app.exit)
        return JSON, b'{"success": true}'
    if path != "/system/version":
        raise TypeError("cannot unpack non-iterable NoneType object")
    return JSON, json.dumps({name: getattr(slicer.app, name) for name in VERSION_FIELDS}).encode()


def _gui(method, path, query, body):
    contents = query.get("contents", "").lower()
    if contents not in ("", "viewers", "full"):
        raise RuntimeError("contents must be 'viewers' or 'full'")
    if contents:
        full = contents == "full"
        slicer.util.findChild(slicer.util.mainWindow(), "PanelDockWidget").setVisible(full)
        slicer.util.setStatusBarVisible(full)
        slicer.util.setMenuBarsVisible(full)
        slicer.util.setToolbarsVisible(full)
    if "viewersLayout" in query:
        layouts = {
            name.removeprefix("SlicerLayout").removesuffix("View").lower(): value
            for name, value in vars(slicer.vtkMRMLLayoutNode).items()
            if name.startswith("SlicerLayout") and name.endswith("View")
        }
        name = query["viewersLayout"].lower()
        if name not in layouts:
            raise RuntimeError("Unknown layout name: " + name)
        slicer.app.layoutManager().setLayout(layouts[name])
    return JSON, b'{"success": true}'


def _sampledata(method, path, query, body):
    if not query.get("name"):
        raise RuntimeError("sampledata name was not specified")
    import SampleData

    try:
        SampleData.downloadSample(query["name"])
    except IndexError:
        raise RuntimeError(f"sampledata {query['name']} was not found") from None
    return TEXT, f"Sample data {query['name']} loaded".encode()


def _make_tracker():
    """A yellow plate under a transform, for the pose that /tracking sets."""
    cube = vtk.vtkCubeSource()
    cube.SetXLength(30)
    cube.SetYLength(70)
    cube.SetZLength(5)
    cube.Update()
    display = slicer.mrmlScene.AddNode(slicer.vtkMRMLModelDisplayNode())
    display.SetColor(1, 1, 0)
    device = slicer.vtkMRMLModelNode()
    device.SetName("trackingDevice")
    device.SetAndObservePolyData(cube.GetOutput())
    device = slicer.mrmlScene.AddNode(device)
    device.SetAndObserveDisplayNodeID(display.GetID())
    tracker = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLLinearTransformNode", "tracker")
    device.SetAndObserveTransformNodeID(tracker.GetID())
    return tracker


def _tracking(method, path, query, body):
    """Set the pose of the tracker: m = 9 numbers by rows, p = RAS position in mm, q = quaternion w,x,y,z."""
    numbers = {key: [float(text) for text in query[key].split(",")] for key in "mqp" if key in query}
    tracker = slicer.mrmlScene.GetFirstNodeByName("tracker") or _make_tracker()
    matrix = vtk.vtkMatrix4x4()
    tracker.GetMatrixTransformToParent(matrix)
    rotation = None
    if "m" in numbers:
        rotation = [numbers["m"][3 * row : 3 * row + 3] for row in range(3)]
    if "q" in numbers:
        rotation = [[0.0] * 3 for _ in range(3)]
        vtk.vtkMath.QuaternionToMatrix3x3(numbers["q"], rotation)
    for row in range(3):
        if "p" in numbers:
            matrix.SetElement(row, 3, numbers["p"][row])
        for column in range(3):
            if rotation is not None:
                matrix.SetElement(row, column, rotation[row][column])
    tracker.SetMatrixTransformToParent(matrix)
    return TEXT, b"Set matrix"


def _volume_selection(method, path, query, body):
    """Broken in Slicer 5.13: always one of these two errors."""
    if not slicer.app.applicationLogic().GetSelectionNode().GetActiveVolumeID():
        raise UnboundLocalError("cannot access local variable 'nodes' where it is not associated with a value")
    raise TypeError("'odict_keys' object is not subscriptable")


def _access_dicom_web_study(method, path, query, body):
    """Broken in Slicer 5.13: this error for every well-formed request."""
    json.loads(body)
    raise TypeError("tuple indices must be integers or slices, not str")
