"""The layout manager: Slicer's own layout logic says which views there are, this makes the widgets for them.

Views get the size that they would have in the main window, so a picture of the only view of a layout is larger than
one of four.
"""

import slicer
import vtk

from . import layout_geometry
from .qt_widgets import QWidget
from .view_widgets import qMRMLSliceWidget, qMRMLTableOrPlotWidget, qMRMLThreeDWidget

BAR_HEIGHT = 20  # pixels of the coloured bar above each view
GAP = 4  # pixels between views


class qSlicerLayoutManager(QWidget):
    """What `slicer.app.layoutManager()` gives."""

    def start(self):
        self._widgets = {}  # id of the view node -> widget
        self._logic = logic = slicer.vtkMRMLLayoutLogic()
        logic.SetMRMLApplicationLogic(slicer.app.applicationLogic())
        logic.SetMRMLScene(slicer.mrmlScene)
        self._slice_logics = vtk.vtkCollection()
        self._view_logics = vtk.vtkCollection()
        slicer.app.applicationLogic().SetSliceLogics(self._slice_logics)
        slicer.app.applicationLogic().SetViewLogics(self._view_logics)
        node = logic.GetLayoutNode()
        node.SetViewArrangement(slicer.vtkMRMLLayoutNode.SlicerLayoutFourUpView)
        node.AddObserver(vtk.vtkCommand.ModifiedEvent, lambda *a: self._follow_layout_node())
        self._follow_layout_node()

    def _follow_layout_node(self):
        """Make the widgets of the present layout, show them and no others, and give them their sizes."""
        shown = {widget.viewNodeID(): widget for widget in self.shown()}
        for key, widget in self._widgets.items():
            node = slicer.mrmlScene.GetNodeByID(key)
            if node is not None:
                node.SetMappedInLayout(key in shown)
            widget.setVisible(key in shown)
        self.fitViews()

    def fitViews(self):
        """Give each shown view its size in the main window."""
        for widget, (_, _, width, height) in self.places():
            if (widget.width, widget.height) != (width, height):
                widget.resize(width, height)

    def places(self):
        """The shown widgets with (x, y, width, height) in pixels of their pictures in the main window."""
        area = slicer.app.mainWindow().viewArea()
        boxes = layout_geometry.places(self._logic.GetLayoutNode().GetLayoutRootElement(), area)
        found = []
        for widget, (x, y, width, height) in zip(self.shown(), self._boxes_in_order(boxes, area)):
            size = (max(32, width - GAP), max(32, height - BAR_HEIGHT))
            found.append((widget, (x + GAP // 2, y + BAR_HEIGHT) + size))
        return found

    def _boxes_in_order(self, boxes, area):
        """The boxes of shown(): found by the names of the views in the layout description."""
        for widget in self.shown():
            node = slicer.mrmlScene.GetNodeByID(widget.viewNodeID())
            yield boxes.get((node.GetClassName(), node.GetSingletonTag()), area)

    def _widget(self, node):
        key = node.GetID()
        if key in self._widgets:
            return self._widgets[key]
        if node.IsA("vtkMRMLSliceNode"):
            widget = qMRMLSliceWidget(node)
            self._slice_logics.AddItem(widget.sliceLogic())
        elif node.IsA("vtkMRMLViewNode"):
            widget = qMRMLThreeDWidget(node)
            self._view_logics.AddItem(widget.viewLogic())
        else:
            widget = qMRMLTableOrPlotWidget(node)
        self._widgets[key] = widget
        widget.setParent(self)
        return widget

    def shown(self):
        """The widgets of the present layout, in its order."""
        views = self._logic.GetViewNodes()
        return [self._widget(views.GetItemAsObject(i)) for i in range(views.GetNumberOfItems())]

    def _of(self, cls):
        return [w for w in self._widgets.values() if isinstance(w, cls)]

    def layoutLogic(self):
        return self._logic

    @property
    def layout(self):
        return self._logic.GetLayoutNode().GetViewArrangement()

    def setLayout(self, layout):
        node = self._logic.GetLayoutNode()
        if not node.IsLayoutDescription(layout):
            layout = slicer.vtkMRMLLayoutNode.SlicerLayoutConventionalView
        node.SetViewArrangement(layout)
        self._follow_layout_node()
        self._emit("layoutChanged", layout)

    def sliceViewNames(self):
        return tuple(w.mrmlSliceNode().GetLayoutName() for w in self._of(qMRMLSliceWidget))

    def sliceWidget(self, name):
        for w in self._of(qMRMLSliceWidget):
            if w.mrmlSliceNode().GetLayoutName() == name:
                return w
        return None

    def mrmlSliceLogics(self):
        return self._slice_logics

    def threeDWidget(self, i=0):
        ws = self._of(qMRMLThreeDWidget)
        if isinstance(i, str):
            return next(
                (w for w in ws if w.mrmlViewNode().GetLayoutName() == i or w.mrmlViewNode().GetName() == i),
                None,
            )
        return ws[i] if 0 <= i < len(ws) else None

    @property
    def threeDViewCount(self):
        return len(self._of(qMRMLThreeDWidget))

    def _kind(self, cls):
        return [w for w in self._of(qMRMLTableOrPlotWidget) if w._node.IsA(cls)]

    @property
    def tableViewCount(self):
        return len(self._kind("vtkMRMLTableViewNode"))

    @property
    def plotViewCount(self):
        return len(self._kind("vtkMRMLPlotViewNode"))

    def tableWidget(self, i):
        widgets = self._kind("vtkMRMLTableViewNode")
        return widgets[i] if i < len(widgets) else None

    def plotWidget(self, i):
        widgets = self._kind("vtkMRMLPlotViewNode")
        return widgets[i] if i < len(widgets) else None

    def viewWidget(self, node):
        return self._widgets.get(node.GetID())

    def activeMRMLThreeDViewNode(self):
        return self.threeDWidget(0).mrmlViewNode()

    def activeThreeDRenderer(self):
        return self.threeDWidget(0).threeDView().renderer()

    def viewport(self):
        return self

    def resetSliceViews(self):
        for w in self._of(qMRMLSliceWidget):
            w.sliceLogic().FitSliceToBackground()

    def resetThreeDViews(self):
        for w in self._of(qMRMLThreeDWidget):
            v = w.threeDView()
            v.resetFocalPoint()
            b = v.contentBounds()
            if b[0] <= b[1]:
                v.renderer().ResetCamera(b)

    def addMaximizedViewNode(self, n):
        self._logic.GetLayoutNode().AddMaximizedViewNode(n)

    def setRenderPaused(self, b):
        for w in self._widgets.values():
            if w.renderView() is not None:
                w.renderView().setRenderPaused(b)
