"""The routes of the Web Server API that give pictures."""

import time

import slicer
import vtk
from PIL import Image, ImageDraw
from vtk.util.numpy_support import vtk_to_numpy

from .pictures import pil_to_vtk
from .qt_images import QBuffer, QByteArray, QColor
from .web_types import JSON, PNG

AXES = ("none", "r", "l", "s", "i", "a", "p")  # their places are the numbers that lookFromAxis takes


def _png(image):
    """A vtkImageData as PNG without compression, which is how Slicer sends pictures."""
    writer = vtk.vtkPNGWriter()
    writer.WriteToMemoryOn()
    writer.SetInputData(image)
    writer.SetCompressionLevel(0)
    writer.Write()
    return PNG, vtk_to_numpy(writer.GetResult()).tobytes()


def screenshot(method, path, query, body):
    """The main window."""
    slicer.app.processEvents()
    slicer.util.forceRenderAllViews()
    data = QByteArray()
    slicer.util.mainWindow().grab().save(QBuffer(data), "PNG")
    return PNG, data.data()


def _number(query, key):
    try:
        return float(query[key])
    except (KeyError, ValueError):
        return None


def slice_view(method, path, query, body):
    """The blended volume layers of a slice view, after moving it as the query says (offset in mm)."""
    view = query.get("view", "red").lower()
    manager = slicer.app.layoutManager()
    widget = manager.sliceWidget((view if view in ("red", "yellow", "green") else "red").capitalize())
    logic = widget.sliceLogic()
    node = logic.GetSliceNode()
    if _number(query, "scrollTo"):  # 0 counts as not given, as in Slicer
        bounds = [0] * 6
        logic.GetVolumeSliceBounds(logic.GetBackgroundLayer().GetVolumeNode(), bounds)
        logic.SetSliceOffset(bounds[4] + _number(query, "scrollTo") * (bounds[5] - bounds[4]))
    if _number(query, "offset"):
        logic.SetSliceOffset(_number(query, "offset"))
    if query.get("copySliceGeometryFrom"):
        other = manager.sliceWidget(query["copySliceGeometryFrom"].capitalize()).sliceLogic().GetSliceNode()
        node.GetSliceToRAS().DeepCopy(other.GetSliceToRAS())
        own, theirs = node.GetFieldOfView(), other.GetFieldOfView()
        node.SetFieldOfView(theirs[0], theirs[0] * own[1] / own[0], own[2])
    if query.get("orientation"):
        before = node.GetOrientationString().lower()
        wanted = query["orientation"].lower()
        if wanted in ("axial", "sagittal", "coronal"):
            getattr(node, "SetOrientationTo" + wanted.capitalize())()
        if wanted != before:
            logic.FitSliceToBackground()
    logic.GetBlend().Update(0)
    return _png(logic.GetBlend().GetOutputDataObject(0))


def three_d(method, path, query, body):
    """The first 3D view, looked at from the axis that the query names."""
    view = slicer.app.layoutManager().threeDWidget(0).threeDView()
    axis = query.get("lookFromAxis", "")[:1].lower()
    if axis in AXES[1:]:
        view.lookFromAxis(AXES.index(axis))
    view.forceRender()
    grabber = vtk.vtkWindowToImageFilter()
    grabber.SetInput(view.renderWindow())
    grabber.ReadFrontBufferOff()
    grabber.Update()
    return _png(grabber.GetOutput())


def three_d_graphics(method, path, query, body):
    """A 3D view as glTF."""
    if "format" in query:  # Slicer lowers the given name and compares it with "glTF": no name is ever accepted
        raise RuntimeError(f"format {query['format'].lower()} not supported")
    widget = slicer.app.layoutManager().threeDWidget(int(query.get("widgetIndex", 0)))
    node = widget.mrmlViewNode()
    before = node.GetBoxVisible()
    node.SetBoxVisible(query.get("boxVisible", "false").lower() != "false")
    exporter = vtk.vtkGLTFExporter()
    exporter.InlineDataOn()
    exporter.SaveNormalOn()
    exporter.SetRenderWindow(widget.threeDView().renderWindow())
    text = exporter.WriteToString()
    node.SetBoxVisible(before)
    return JSON, text.encode()


def timeimage(method, path, query, body):
    """A small picture with the time on it."""
    picture = Image.new("RGBA", (128, 32))
    draw = ImageDraw.Draw(picture)
    frame = QColor("#" + query.get("color", "330")).rgba()[:3] + (204,)
    draw.rectangle((1, 1, 127, 31), outline=frame, width=5)
    draw.text((10, 10), str(time.time()), fill=(51, 51, 51, 255))
    image = vtk.vtkImageData()
    pil_to_vtk(picture, image)
    return _png(image)
