"""Slicer's own Qt classes that scripts use beyond views: node selector, picture conversion, subject hierarchy."""

import slicer

from .pictures import pil_to_vtk, vtk_to_pil
from .qt_core import QObject
from .qt_widgets import QToolButton, QWidget


class qMRMLNodeComboBox(QWidget):
    """Enough of the node selector for scripted module widgets."""

    _defaults = {
        "nodeTypes": (),
        "noneEnabled": False,
        "addEnabled": True,
        "removeEnabled": True,
        "currentNodeID": "",
        "showHidden": False,
    }

    def currentNode(self):
        return slicer.mrmlScene.GetNodeByID(self._props["currentNodeID"]) if self._props["currentNodeID"] else None

    def setCurrentNode(self, node):
        self.setCurrentNodeID(node.GetID() if node else "")

    def setCurrentNodeID(self, i):
        if i is None:
            i = ""
        if self._props["currentNodeID"] == i:
            return
        self._props["currentNodeID"] = i
        self._emit("currentNodeChanged", self.currentNode())
        self._emit("currentNodeIDChanged", i)

    def addNode(self, cls=None):
        n = slicer.mrmlScene.AddNewNodeByClass(cls or (self._props["nodeTypes"] or ["vtkMRMLNode"])[0])
        self.setCurrentNode(n)
        return n

    def nodeCount(self):
        return sum(slicer.mrmlScene.GetNumberOfNodesByClass(t) for t in self._props["nodeTypes"])


class qMRMLUtils:
    """Conversions between Qt and VTK pictures and matrices."""

    @staticmethod
    def qImageToVtkImageData(im, out):
        pil_to_vtk(im.im, out)
        return True

    @staticmethod
    def vtkImageDataToQImage(im, out):
        out.im = vtk_to_pil(im)
        return True

    @staticmethod
    def vtkMatrixToQVector(m, v):
        v[:] = [m.GetElement(i, j) for i in range(4) for j in range(4)]


class qSlicerMarkupsPlaceWidget(QWidget):
    """Keeps the markups node to place; places nothing."""

    _defaults = {"placeModeEnabled": False}
    (
        ShowPlaceMultipleMarkupsOption,
        HidePlaceMultipleMarkupsOption,
        ForcePlaceSingleMarkup,
        ForcePlaceMultipleMarkups,
    ) = 0, 1, 2, 3

    def setCurrentNode(self, n):
        self._props["_n"] = n

    def currentNode(self):
        return self._props.get("_n")

    def placeButton(self):
        return self._button("place")

    def deleteButton(self):
        return self._button("delete")

    def colorButton(self):
        return self._button("color")

    def moreButton(self):
        return self._button("more")

    def _button(self, n):
        if "_buttons" not in self.__dict__:
            self._buttons = {}
        return self._buttons.setdefault(n, QToolButton())


class _SHPlugin(QObject):
    """A subject hierarchy plugin: shows and hides items."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def setDisplayVisibility(self, item, visible):
        sh = slicer.app.subjectHierarchyNode()
        node = sh.GetItemDataNode(item)
        if node is not None and hasattr(node, "SetDisplayVisibility"):
            node.SetDisplayVisibility(visible)
        else:
            sh.SetDisplayVisibilityForBranch(item, visible)

    def getDisplayVisibility(self, item):
        sh = slicer.app.subjectHierarchyNode()
        node = sh.GetItemDataNode(item)
        if node is not None and hasattr(node, "GetDisplayVisibility"):
            return node.GetDisplayVisibility()
        return sh.GetDisplayVisibilityForBranch(item)

    def isDisplayVisibilityShown(self, item):
        return True

    def editProperties(self, item):
        pass


class qSlicerSubjectHierarchyPluginHandler(QObject):
    """Knows the subject hierarchy plugins by name."""

    _one = None

    @classmethod
    def instance(cls):
        if cls.__dict__.get("_one") is None:
            cls._one = cls()
            cls._one._plugins = {}
        return cls._one

    def pluginByName(self, name):
        return self._plugins.setdefault(name, _SHPlugin(name))

    def registerPlugin(self, p):
        self._plugins[getattr(p, "name", str(p))] = p
        return True

    def getOwnerPluginForSubjectHierarchyItem(self, item):
        return self.pluginByName(slicer.app.subjectHierarchyNode().GetItemOwnerPluginName(item) or "Default")

    def subjectHierarchyNode(self):
        return slicer.app.subjectHierarchyNode()

    def pluginLogic(self):
        if "_logic" not in self.__dict__:
            self._logic = QWidget()
            self._logic._props.update(registeredViewContextMenuActionNames=(), allowedViewContextMenuActionNames=())
        return self._logic
