"""The widgets around the views: slice widget, 3D widget, their controllers, table and plot widget."""

import slicer

from .qt_widgets import QToolButton, QVBoxLayout, QWidget
from .views import qMRMLSliceView, qMRMLThreeDView

# What a view's tool bar is made of: such a member of a controller gives a widget.
BAR_PARTS = ("Button", "Label", "Slider", "ComboBox", "Widget", "barLayout", "Bar")


class _Controller(QWidget):
    """The tool bar above a view."""

    def __init__(self, parent):
        super().__init__(parent)
        self._parts = {}

    def fitSliceToBackground(self):
        self.parent().sliceLogic().FitSliceToBackground()

    def setSliceOffsetValue(self, v):
        self.parent().sliceLogic().SetSliceOffset(v)

    def setSliceVisible(self, v):
        self.parent().mrmlSliceNode().SetSliceVisible(v)

    def setSliceLink(self, v):
        for n in slicer.util.getNodesByClass("vtkMRMLSliceCompositeNode"):
            n.SetLinkedControl(v)

    def set3DAxisVisible(self, v):
        self.parent().mrmlViewNode().SetBoxVisible(v)

    def set3DAxisLabelVisible(self, v):
        self.parent().mrmlViewNode().SetAxisLabelsVisible(v)

    def setOrthographicModeEnabled(self, v):
        node = self.parent().mrmlViewNode()
        node.SetRenderMode(node.Orthographic if v else node.Perspective)

    def setBlackBackground(self):
        n = self.parent().mrmlViewNode()
        n.SetBackgroundColor(0, 0, 0)
        n.SetBackgroundColor2(0, 0, 0)

    def setWhiteBackground(self):
        n = self.parent().mrmlViewNode()
        n.SetBackgroundColor(1, 1, 1)
        n.SetBackgroundColor2(1, 1, 1)

    def resetFocalPoint(self):
        self.parent().threeDView().resetFocalPoint()

    def rotateToViewAxis(self, a):
        self.parent().threeDView().rotateToViewAxis(a)

    def lookFromAxis(self, a):
        self.parent().threeDView().lookFromAxis(a)

    def __getattr__(self, name):
        if name[0].islower() and name.endswith(BAR_PARTS):
            made = QVBoxLayout() if name.endswith("Layout") else QToolButton()
            return lambda: self._parts.setdefault(name, made)
        return QWidget.__getattr__(self, name)


class _ViewWidget(QWidget):
    """What slice and 3D widgets share: one view that fills the widget."""

    def renderView(self):
        return self._view

    def viewNodeID(self):
        return self._view.viewNode().GetID()

    def interactorStyle(self):
        return self._view.interactorStyle()

    def setVisible(self, visible):
        super().setVisible(visible)
        self._view.setVisible(visible)

    def grab(self, *rectangle):
        return self._view.grab()

    def resize(self, *size):
        super().resize(*size)
        self._view.resize(*size)


class qMRMLSliceWidget(_ViewWidget):
    """A slice view with its slice logic and controller."""

    def __init__(self, node=None, size=(470, 450)):
        super().__init__()
        if node is not None:
            self._open(node, size)

    def setMRMLSliceNode(self, node):
        self._open(node, (470, 450))

    def _open(self, node, size):
        logic = slicer.vtkMRMLSliceLogic()
        logic.SetMRMLApplicationLogic(slicer.app.applicationLogic())
        logic.SetMRMLScene(slicer.mrmlScene)
        logic.SetSliceNode(node)
        self._logic = logic
        self._view = qMRMLSliceView(node, logic, size)
        self._view.setParent(self)
        self._controller = _Controller(self)
        self._props["sliceViewName"] = node.GetLayoutName()
        self.objectName = "qMRMLSliceWidget" + node.GetLayoutName()

    def sliceLogic(self):
        return self._logic

    def sliceView(self):
        return self._view

    def mrmlSliceNode(self):
        return self._view.mrmlSliceNode()

    def mrmlSliceCompositeNode(self):
        return self._logic.GetSliceCompositeNode()

    def sliceController(self):
        return self._controller

    @property
    def sliceOrientation(self):
        return self.mrmlSliceNode().GetOrientation()

    def setSliceOrientation(self, o):
        self.mrmlSliceNode().SetOrientation(o)

    def fitSliceToBackground(self):
        self._logic.FitSliceToBackground()


class qMRMLThreeDWidget(_ViewWidget):
    """A 3D view with its view logic and controller."""

    def __init__(self, node=None, size=(470, 450)):
        super().__init__()
        if node is not None:
            self._open(node, size)

    def setMRMLViewNode(self, node):
        self._open(node, (470, 450))

    def _open(self, node, size):
        logic = slicer.vtkMRMLViewLogic()
        logic.SetMRMLApplicationLogic(slicer.app.applicationLogic())
        logic.SetMRMLScene(slicer.mrmlScene)
        logic.SetName(node.GetLayoutName())
        self._logic = logic
        self._view = qMRMLThreeDView(node, size)
        self._view.setParent(self)
        self._controller = _Controller(self)
        logic.SetDisplayableManagerGroup(self._view.displayableManagerGroup())

    def threeDView(self):
        return self._view

    def mrmlViewNode(self):
        return self._view.mrmlViewNode()

    def threeDController(self):
        return self._controller

    def viewLogic(self):
        return self._logic


class qMRMLTableOrPlotWidget(QWidget):
    """A table or plot view: it knows its node and draws nothing."""

    def __init__(self, node):
        super().__init__()
        self._node = node

    def renderView(self):
        return None

    def viewNodeID(self):
        return self._node.GetID()

    def _self(self):
        return self

    tableView = plotView = tableController = plotController = _self

    def mrmlTableViewNode(self):
        return self._node

    mrmlPlotViewNode = mrmlTableViewNode
