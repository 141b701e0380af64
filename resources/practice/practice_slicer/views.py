"""Slice and 3D views: a render window, MRML displayable managers, interaction; drawn off screen.

What is seen (slices, markups, segments, models, volume rendering) is drawn by Slicer's own displayable managers, so it
looks as in Slicer.  What the Qt classes add (when to draw, where the camera goes) is here.
"""

import slicer
import vtk

from .pictures import window_image
from .qt_images import QColor, QPixmap
from .qt_widgets import QWidget


class qMRMLViewBase(QWidget):
    """A render window, a displayable manager group, a view node."""

    _defaults = {"renderEnabled": True}

    def _open(self, factory_class, node, size):
        """Make the view for a view node; `size` is (width, height) in pixels."""
        self._node = node
        self._dirty = True
        self._props["width"], self._props["height"] = size
        self._renderer = vtk.vtkRenderer()
        self._render_window = window = vtk.vtkRenderWindow()
        window.SetOffScreenRendering(1)
        window.ShowWindowOff()
        window.SetMultiSamples(0)
        window.SetSize(*size)
        window.AddRenderer(self._renderer)
        self._interactor = vtk.vtkGenericRenderWindowInteractor()
        self._interactor.SetRenderWindow(window)
        self._interactor.EnableRenderOff()  # nothing is drawn but when the view says so
        self._interactor.Initialize()
        self._group = slicer.vtkMRMLDisplayableManagerGroup()
        self._group.SetRenderer(self._renderer)
        self._group.Initialize(factory_class.GetInstance(), self._renderer)
        self._group.AddObserver(vtk.vtkCommand.UpdateEvent, self._want_render)
        self._group.SetMRMLDisplayableNode(node)
        self._props["visible"] = True
        self.objectName = self.className() + node.GetLayoutName()

    def _want_render(self, *a):
        self._dirty = True

    def viewNode(self):
        return self._node

    def displayableManagerGroup(self):
        return self._group

    def renderWindow(self):
        return self._render_window

    def renderer(self):
        return self._renderer

    def interactor(self):
        return self._interactor

    def interactorStyle(self):
        return self._style

    sliceViewInteractorStyle = interactorObserver = interactorStyle

    def displayableManagerByClassName(self, name):
        return self._group.GetDisplayableManagerByClassName(name)

    def getDisplayableManagers(self, out):
        for i in range(self._group.GetDisplayableManagerCount()):
            out.AddItem(self._group.GetNthDisplayableManager(i))

    def mrmlScene(self):
        return slicer.mrmlScene

    def scheduleRender(self):
        self._want_render()

    def forceRender(self):
        self._render_window.Render()
        self._dirty = False

    def renderIfNeeded(self):
        if self._dirty and self._props["renderEnabled"] and not slicer.app.renderPaused:
            self.forceRender()

    def cornerAnnotation(self):
        if "_corner" not in self.__dict__:
            self._corner = vtk.vtkCornerAnnotation()
            self._renderer.AddViewProp(self._corner)
        return self._corner

    def setBackgroundColor(self, c):
        self._renderer.SetBackground(c.redF(), c.greenF(), c.blueF())
        self._want_render()

    def setBackgroundColor2(self, c):
        self._renderer.SetBackground2(c.redF(), c.greenF(), c.blueF())

    @property
    def backgroundColor(self):
        return QColor.fromRgbF(*self._renderer.GetBackground())

    def VTKWidget(self):
        return self

    def pauseRender(self):
        self._props["renderEnabled"] = False

    def resumeRender(self):
        self._props["renderEnabled"] = True

    def setRenderPaused(self, b):
        self._props["renderEnabled"] = not b

    def grab(self, *a):
        self.forceRender()
        return QPixmap(window_image(self._render_window))

    def resize(self, *a):
        super().resize(*a)
        self._render_window.SetSize(self._props["width"], self._props["height"])
        self._resized()

    def _resized(self):
        pass

    def setFixedSize(self, *a):
        self.resize(*a)


class qMRMLSliceView(qMRMLViewBase):
    """A slice view: the blended image of the slice logic under the displayable managers."""

    def __init__(self, node, logic, size):
        QWidget.__init__(self)
        self._logic = logic
        self._open(slicer.vtkMRMLSliceViewDisplayableManagerFactory, node, size)
        self._renderer.GetActiveCamera().ParallelProjectionOn()
        self._overlay = overlay = vtk.vtkRenderer()
        overlay.SetLayer(1)
        overlay.GetActiveCamera().ParallelProjectionOn()
        # Displayable managers may have asked for three layers: their number must not be lowered.
        self._render_window.SetNumberOfLayers(max(2, self._render_window.GetNumberOfLayers()))
        self._render_window.AddRenderer(overlay)
        mapper = vtk.vtkImageMapper()
        mapper.SetColorWindow(255)
        mapper.SetColorLevel(127.5)
        actor = vtk.vtkActor2D()
        actor.SetMapper(mapper)
        actor.GetProperty().SetDisplayLocationToBackground()
        actor.SetVisibility(False)
        self._renderer.AddViewProp(actor)
        self._actor = actor
        style = slicer.vtkMRMLSliceViewInteractorStyle()
        self._interactor.SetInteractorStyle(vtk.vtkInteractorStyleUser())
        style.SetSliceLogic(logic)
        style.SetDisplayableManagers(self._group)
        style.SetInteractor(self._interactor)
        self._style = style
        logic.SetDisplayableManagerGroup(self._group)
        logic.AddObserver(vtk.vtkCommand.ModifiedEvent, self._show_image)
        self._resized()
        self._show_image()
        self.forceRender()  # as Slicer does: pickers need an OpenGL context

    def _show_image(self, *a):
        c = self._logic.GetImageDataConnection()
        self._actor.GetMapper().SetInputConnection(c)
        self._actor.SetVisibility(c is not None)
        self._want_render()

    def _resized(self):
        self._logic.ResizeSliceNode(self._props["width"], self._props["height"])

    def overlayRenderer(self):
        return self._overlay

    def mrmlSliceNode(self):
        return self._node

    def convertRASToXYZ(self, ras):
        m = vtk.vtkMatrix4x4()
        vtk.vtkMatrix4x4.Invert(self._node.GetXYToRAS(), m)
        return list(m.MultiplyPoint(list(ras) + [1]))[:3]

    def convertXYZToRAS(self, xyz):
        return list(self._node.GetXYToRAS().MultiplyPoint(list(xyz) + [1]))[:3]

    def convertDeviceToXYZ(self, xy):
        return [xy[0], xy[1], 0]


class qMRMLThreeDView(qMRMLViewBase):
    """A 3D view with Slicer's camera."""

    def __init__(self, node, size):
        QWidget.__init__(self)
        self._open(slicer.vtkMRMLThreeDViewDisplayableManagerFactory, node, size)
        self._renderer.SetUseDepthPeeling(True)
        self._renderer.SetGradientBackground(True)
        style = slicer.vtkMRMLThreeDViewInteractorStyle()
        self._interactor.SetInteractorStyle(vtk.vtkInteractorStyle3D())
        style.SetDisplayableManagers(self._group)
        style.SetInteractor(self._interactor)
        self._style = style
        self.forceRender()

    def mrmlViewNode(self):
        return self._node

    def cameraNode(self):
        return self._group.GetDisplayableManagerByClassName("vtkMRMLCameraDisplayableManager").GetCameraNode()

    def activeCamera(self):
        return self._renderer.GetActiveCamera()

    def contentBounds(self):
        """The RAS bounds in mm of what is shown; the box and the axis labels do not count."""
        was = self._node.StartModify()
        box, labels = self._node.GetBoxVisible(), self._node.GetAxisLabelsVisible()
        self._node.SetBoxVisible(0)
        self._node.SetAxisLabelsVisible(0)
        self._node.EndModify(was)
        bounds = [0.0] * 6
        self._renderer.ComputeVisiblePropBounds(bounds)
        self._node.SetBoxVisible(box)
        self._node.SetAxisLabelsVisible(labels)
        return bounds

    def resetFocalPoint(self):
        """Turn the camera to the middle of what is shown."""
        left, right, back, front, low, high = self.contentBounds()
        if left <= right:
            camera = self._renderer.GetActiveCamera()
            camera.SetFocalPoint((left + right) / 2, (back + front) / 2, (low + high) / 2)
            camera.ComputeViewPlaneNormal()
            camera.OrthogonalizeViewUp()
        self._node.InvokeEvent(slicer.vtkMRMLViewNode.ResetFocalPointRequestedEvent)
        self._renderer.ResetCameraClippingRange()
        self._want_render()

    def resetCamera(self, *a):
        self._renderer.ResetCamera()
        self._want_render()

    def rotateToViewAxis(self, axis):
        """Turn the camera to look from an axis (numbers of ctk.ctkAxesWidget); the distance stays."""
        direction = self._direction(axis)
        if direction is not None:
            self.cameraNode().RotateTo(direction)
            self._renderer.ResetCameraClippingRange()
            self._want_render()

    @staticmethod
    def _direction(axis):
        camera = slicer.vtkMRMLCameraNode
        directions = (
            camera.Right,
            camera.Left,
            camera.Superior,
            camera.Inferior,
            camera.Anterior,
            camera.Posterior,
        )
        return directions[int(axis) - 1] if 1 <= int(axis) <= 6 else None

    def lookFromAxis(self, axis, fov=10.0):
        """Look from an axis and fit everything into the view."""
        direction = self._direction(axis)
        if direction is None:
            return
        self.resetFocalPoint()
        self.cameraNode().RotateTo(direction)
        bounds = self.contentBounds()
        if bounds[0] <= bounds[1]:
            self._renderer.ResetCamera(bounds)
        self._want_render()

    lookFromViewAxis = lookFromAxis

    def zoomIn(self):
        self._renderer.GetActiveCamera().Dolly(1.2)

    def zoomOut(self):
        self._renderer.GetActiveCamera().Dolly(1 / 1.2)
