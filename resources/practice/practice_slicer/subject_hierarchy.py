"""Fills the subject hierarchy, which in Slicer is done by plugins of the Qt program."""

import slicer
import vtk


class SubjectHierarchyFiller:
    """Slicer's Qt plugins put data nodes in the subject hierarchy; here this does."""

    kinds = (
        ("vtkMRMLSegmentationNode", "Segmentations"),
        ("vtkMRMLMarkupsNode", "Markups"),
        ("vtkMRMLLabelMapVolumeNode", "LabelMaps"),
        ("vtkMRMLVolumeNode", "Volumes"),
        ("vtkMRMLModelNode", "Models"),
        ("vtkMRMLTransformNode", "Transforms"),
        ("vtkMRMLTableNode", "Tables"),
        ("vtkMRMLPlotChartNode", "Plots"),
        ("vtkMRMLPlotSeriesNode", "Plots"),
        ("vtkMRMLTextNode", "Texts"),
        ("vtkMRMLSequenceBrowserNode", "Sequences"),
        ("vtkMRMLSequenceNode", "Sequences"),
        ("vtkMRMLCameraNode", "Cameras"),
    )

    def __init__(self, scene):
        self.scene = scene
        scene.AddObserver(scene.NodeAddedEvent, self._added)
        scene.AddObserver(scene.NodeRemovedEvent, self._removed)
        scene.AddObserver(scene.EndImportEvent, self._fill)
        scene.AddObserver(scene.EndRestoreEvent, self._fill)

    def sh(self):
        return slicer.vtkMRMLSubjectHierarchyNode.GetSubjectHierarchyNode(self.scene)

    @vtk.calldata_type(vtk.VTK_OBJECT)
    def _added(self, caller, event, node):
        if node is None or self.scene.IsImporting() or self.scene.IsRestoring() or self.scene.IsClosing():
            return
        self._put(node)

    def _put(self, node):
        if node.GetHideFromEditors():
            return
        plugin = next((p for c, p in self.kinds if node.IsA(c)), None)
        if plugin is None:
            return
        sh = self.sh()
        if sh is None or sh.GetItemByDataNode(node):
            return
        item = sh.CreateItem(sh.GetSceneItemID(), node)
        if item:
            sh.SetItemOwnerPluginName(item, plugin)

    def _fill(self, *a):
        for n in slicer.util.getNodesByClass("vtkMRMLNode"):
            self._put(n)

    @vtk.calldata_type(vtk.VTK_OBJECT)
    def _removed(self, caller, event, node):
        sh = self.sh()
        if sh is None or node is None or node is sh:
            return
        item = sh.GetItemByDataNode(node)
        if item:
            sh.RemoveItem(item, False, False)
