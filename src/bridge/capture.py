"""Takes a picture of Slicer's main window or of one view, and puts back what it changed for the picture.

The bridge sends this text with every picture and runs it in a dictionary of its own, so nothing of it stays in Slicer.
Pictures leave as PNG; making them smaller, joining them and turning them into JPEG is the bridge's work, because that
needs no time on Slicer's main thread.  Events are never pumped here: the next request would run inside this one.
"""
import base64
import contextlib

import slicer
import vtk

# The order of ctkAxesWidget::Axis.
AXES = {"R": 1, "L": 2, "S": 3, "I": 4, "A": 5, "P": 6}


class Problem(Exception):
    """Something that the person who asked can put right."""


def answer(request):
    """The reply to one request: never an exception, whatever happens."""
    reply = {"id": request["id"], "ok": True}
    try:
        reply["pictures"] = pictures(request)
    except Problem as problem:
        reply.update(ok=False, error=str(problem))
    except BaseException as error:  # an exception that leaves the request handler would leave the client waiting
        reply.update(ok=False, error=f"{type(error).__name__}: {error}")
    return reply


def pictures(request):
    kind = request["view_type"]
    if kind == "application":
        window = main_window()
        return [of_window(window)] if window else [of_view(view) for view in shown_views()]
    views = slice_views() if kind == "slice" else three_d_views()
    view = choose(views, request.get("view_name"), "slice view" if kind == "slice" else "3D view")
    with arranged(view, request):
        return [of_view(view)]


def main_window():
    window = slicer.util.mainWindow()
    return window if window is not None and window.visible else None


def layout():
    manager = slicer.app.layoutManager()
    if manager is None:
        raise Problem("This Slicer runs without views, so there is nothing to take a picture of.")
    return manager


class View:
    """A slice view or a 3D view: its names, its widget, and what is needed to arrange it."""

    def __init__(self, label, names, view, node, logic=None):
        self.label, self.names, self.view, self.node, self.logic = label, names, view, node, logic

    def shown(self):
        return bool(self.view.visible)


def slice_views():
    manager = layout()
    found = []
    for name in manager.sliceViewNames():
        widget = manager.sliceWidget(name)
        node = widget.mrmlSliceNode()
        found.append(View(name, [name, node.GetName(), node.GetID()], widget.sliceView(), node, widget.sliceLogic()))
    return found


def three_d_views():
    manager = layout()
    found = []
    for index in range(manager.threeDViewCount):
        widget = manager.threeDWidget(index)
        node = widget.mrmlViewNode()
        names = [node.GetLayoutName(), node.GetName(), node.GetID(), str(index + 1)]
        found.append(View("3D view " + node.GetLayoutName(), names, widget.threeDView(), node))
    return found


def shown_views():
    views = [view for view in slice_views() + three_d_views() if view.shown()]
    if not views:
        raise Problem("Slicer has no main window and shows no view, so there is nothing to take a picture of.")
    return views


def choose(views, wanted, kind):
    """The view of that name; without a name the first one on the screen."""
    if not views:
        raise Problem(f"Slicer has no {kind}. Choose a layout that has one.")
    if not wanted:
        return next((view for view in views if view.shown()), views[0])
    for view in views:
        if wanted.strip().lower() in [name.lower() for name in view.names if name]:
            return view
    known = ", ".join(view.names[0] for view in views)
    raise Problem(f'There is no {kind} named "{wanted}". There are: {known}.')


@contextlib.contextmanager
def arranged(view, request):
    """Turns and moves the view as asked; afterwards it is as it was."""
    if view.logic is not None:
        with arranged_slice(view, request.get("slice_orientation"), request.get("slice_offset")):
            yield
    else:
        with arranged_camera(view, request.get("camera_axis")):
            yield


@contextlib.contextmanager
def arranged_slice(view, orientation, offset):
    if orientation is None and offset is None:
        yield
        return
    node, logic = view.node, view.logic
    matrix = vtk.vtkMatrix4x4()
    matrix.DeepCopy(node.GetSliceToRAS())
    field, origin = tuple(node.GetFieldOfView()), tuple(node.GetXYZOrigin())
    try:
        if orientation is not None and node.GetOrientation() != orientation:
            node.SetOrientation(orientation)
            fit = getattr(logic, "FitSliceToBackground", None) or getattr(logic, "FitSliceToAll", None)
            if fit is not None:
                fit()
        if offset is not None:
            logic.SetSliceOffset(offset)
        yield
    finally:
        modifying = node.StartModify()
        node.GetSliceToRAS().DeepCopy(matrix)
        node.SetFieldOfView(*field)
        node.SetXYZOrigin(*origin)
        node.UpdateMatrices()
        node.EndModify(modifying)


@contextlib.contextmanager
def arranged_camera(view, axis):
    if axis is None:
        yield
        return
    renderer = view.view.renderWindow().GetRenderers().GetFirstRenderer()
    camera = renderer.GetActiveCamera()
    before = vtk.vtkCamera()
    before.DeepCopy(camera)
    try:
        view.view.lookFromAxis(AXES[axis])
        yield
    finally:
        camera.DeepCopy(before)
        renderer.ResetCameraClippingRange()


def of_window(window):
    import qt

    data = qt.QByteArray()
    buffer = qt.QBuffer(data)
    buffer.open(qt.QIODevice.WriteOnly)
    if not window.grab().save(buffer, "PNG"):
        raise Problem("Slicer could not take a picture of its main window.")
    buffer.close()
    return {"name": "main window", "shown": True, "png": base64.b64encode(bytes(data.data())).decode("ascii")}


def of_view(view):
    window = view.view.renderWindow()
    ready = getattr(window, "GetReadyForRendering", None)
    if min(window.GetSize()) < 2 or (not view.shown() and ready is not None and not ready()):
        raise Problem(f"{view.label} is not on the screen and was never drawn. Choose a layout that shows it.")
    view.view.forceRender()
    grabber = vtk.vtkWindowToImageFilter()
    grabber.SetInput(window)
    grabber.ReadFrontBufferOff()
    grabber.Update()
    writer = vtk.vtkPNGWriter()
    writer.WriteToMemoryOn()
    writer.SetCompressionLevel(1)
    writer.SetInputData(grabber.GetOutput())
    writer.Write()
    png = bytes(memoryview(writer.GetResult()))
    return {"name": view.label, "shown": view.shown(), "png": base64.b64encode(png).decode("ascii")}
