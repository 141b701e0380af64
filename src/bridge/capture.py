"""Takes a picture of Slicer's main window or of one view, and leaves the person's views exactly as they were.

The bridge installs this text once as a module of its own in the running Slicer and calls `answer` for each picture;
nothing of it is in the namespace that all requests share.  Pictures leave as PNG; making them smaller, joining them
and turning them into JPEG is the bridge's work, because that needs no time on Slicer's main thread.

Events are never pumped: the next request would run inside this one.  So nothing is shown while a view is arranged for
a picture: the view is drawn into the buffer that is read, not onto the screen, and it is put back before the event
loop goes on.  Values are put back by copying numbers, never by the reverse operation, because turning and fitting
lose digits and touch more than they are asked to.
"""
import base64
import contextlib

import slicer
import vtk

# Where the camera goes for each side, and what is up then (RAS).
SIDES = {
    "R": ((1, 0, 0), (0, 0, 1)),
    "L": ((-1, 0, 0), (0, 0, 1)),
    "A": ((0, 1, 0), (0, 0, 1)),
    "P": ((0, -1, 0), (0, 0, 1)),
    "S": ((0, 0, 1), (0, 1, 0)),
    "I": ((0, 0, -1), (0, 1, 0)),
}
# What turning, fitting and moving a slice may change beside its matrix, as (getter, setter).
SLICE_VALUES = [
    ("Get" + name, "Set" + name)
    for name in ("FieldOfView", "XYZOrigin", "UVWOrigin", "UVWExtents", "UVWDimensions", "PrescribedSliceSpacing")
]


class Problem(Exception):
    """Something that the person who asked can put right."""


def answer(request):
    """The reply to one request: never an exception, whatever happens."""
    reply = {"id": request["id"], "ok": True, "pictures": [], "notes": []}
    try:
        take(request, reply)
    except Problem as problem:
        reply.update(ok=False, error=str(problem))
    except BaseException as error:  # an exception that leaves the request handler would leave the client waiting
        reply.update(ok=False, error=f"{type(error).__name__}: {error}")
    return reply


def take(request, reply):
    kind = request["view_type"]
    if kind == "application":
        application(reply)
        return
    views = slice_views() if kind == "slice" else three_d_views()
    view = choose(views, request.get("view_name"), "slice view" if kind == "slice" else "3D view")
    check_drawn(view)
    if not view.shown():
        reply["notes"].append("This view is not shown in Slicer's present layout.")
    with arranged(view, request):
        reply["pictures"].append(of_view(view))


def application(reply):
    """The main window; of a Slicer without one the views that it shows."""
    window = main_window()
    if window is not None:
        if window.minimized is True:
            reply["notes"].append("Slicer's main window is minimised; this is what it shows when it is restored.")
        reply["pictures"].append(of_window(window))
        return
    reply["notes"].append("Slicer has no main window; these are the views it has.")
    for view in shown_views():
        try:
            check_drawn(view)
            reply["pictures"].append(of_view(view))
        except Problem as problem:
            reply["notes"].append(str(problem))
    if not reply["pictures"]:
        raise Problem("Slicer has no main window, and none of its views has been drawn yet. Try again in a moment.")


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


def check_drawn(view):
    """A view that was never on the screen has no drawing context yet; reading its pixels could end Slicer."""
    window = view.view.renderWindow()
    ready = getattr(window, "GetReadyForRendering", None)
    if min(window.GetSize()) < 2 or (ready is not None and not ready()):
        advice = "Try again in a moment." if view.shown() else "Choose a layout that shows it."
        raise Problem(f"{view.label} was never drawn. {advice}")


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
    """Linked slice views stay where they are: links pass on only what happens while a node says that it interacts."""
    if orientation is None and offset is None:
        yield
        return
    node = view.node
    if node.GetInteracting():
        raise Problem(f"Somebody is moving slice view {view.label} at this moment. Try again when it stands still.")
    matrix = vtk.vtkMatrix4x4()
    matrix.DeepCopy(node.GetSliceToRAS())
    values = [(put, tuple(getattr(node, get)())) for get, put in SLICE_VALUES]
    try:
        if orientation is not None and node.GetOrientation() != orientation:
            turn_slice(view, orientation)
        if offset is not None:
            node.SetSliceOffset(offset)
        yield
    finally:
        with told_once([node]):
            node.GetSliceToRAS().DeepCopy(matrix)
            for put, value in values:
                getattr(node, put)(*value)
            node.UpdateMatrices()


def turn_slice(view, orientation):
    """As `SetOrientation`, but the node's memory of the last chosen orientation stays the person's."""
    preset = view.node.GetSliceOrientationPreset(orientation)
    if preset is None:
        raise Problem(f"Slice view {view.label} knows no orientation named {orientation}.")
    for row in range(3):
        for column in range(3):
            view.node.GetSliceToRAS().SetElement(row, column, preset.GetElement(row, column))
    view.node.UpdateMatrices()
    fit = getattr(view.logic, "FitSliceToBackground", None) or view.logic.FitSliceToAll
    fit()


@contextlib.contextmanager
def arranged_camera(view, side):
    """Looks from a side at what the camera looks at, from as far away.

    The camera is turned itself and not exchanged, because interaction handles hold on to it.  Its node says so once and
    once more when it is put back: axis labels follow that, and linked views do not while nobody interacts.
    """
    if side is None:
        yield
        return
    renderer = view.view.renderWindow().GetRenderers().GetFirstRenderer()
    camera = renderer.GetActiveCamera()
    nodes = [node for node in slicer.util.getNodesByClass("vtkMRMLCameraNode") if node.GetCamera() is camera]
    if any(node.GetInteracting() for node in nodes):
        raise Problem(f"Somebody is turning {view.label} at this moment. Try again when it stands still.")
    before = vtk.vtkCamera()
    before.DeepCopy(camera)
    try:
        with told_once(nodes):
            direction, up = SIDES[side]
            distance = camera.GetDistance()
            camera.SetPosition(*(c + distance * d for c, d in zip(camera.GetFocalPoint(), direction)))
            camera.SetViewUp(*up)
            camera.OrthogonalizeViewUp()
            renderer.ResetCameraClippingRange()
        yield
    finally:
        with told_once(nodes):
            camera.DeepCopy(before)


@contextlib.contextmanager
def told_once(nodes):
    """Several changes, one modified event of each node."""
    modifying = [(node, node.StartModify()) for node in nodes]
    try:
        yield
    finally:
        for node, was in modifying:
            node.EndModify(was)


def of_window(window):
    """The window with its panels.  Views that wait for their turn to be drawn are drawn first."""
    import qt

    for view in slice_views() + three_d_views():
        if view.shown():
            view.view.forceRender()
    data = qt.QByteArray()
    buffer = qt.QBuffer(data)
    buffer.open(qt.QIODevice.WriteOnly)
    saved = window.grab().save(buffer, "PNG")
    buffer.close()
    if not saved:
        raise Problem("Slicer could not take a picture of its main window.")
    return {"name": "main window", "png": base64.b64encode(bytes(data.data())).decode("ascii")}


def of_view(view):
    """What the view's render window draws: corner texts, crosshair and marks too; in the screen's own pixels.

    The window is told to draw: the grabber would leave that to the interactor, which in Slicer only notes that drawing
    is due.  With buffers not swapped the screen does not flicker.
    """
    window = view.view.renderWindow()
    swapping = window.GetSwapBuffers()
    window.SwapBuffersOff()
    try:
        window.Render()
        grabber = vtk.vtkWindowToImageFilter()
        grabber.SetInput(window)
        grabber.SetInputBufferTypeToRGB()
        grabber.ReadFrontBufferOff()
        grabber.ShouldRerenderOff()
        grabber.Update()
    finally:
        window.SetSwapBuffers(swapping)
    writer = vtk.vtkPNGWriter()
    writer.WriteToMemoryOn()
    writer.SetCompressionLevel(1)
    writer.SetInputData(grabber.GetOutput())
    writer.Write()
    png = bytes(memoryview(writer.GetResult()))
    return {"name": view.label, "png": base64.b64encode(png).decode("ascii")}
