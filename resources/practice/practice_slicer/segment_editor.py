"""The Segment Editor without its panel: the effects that scripts use most, written anew on VTK's image filters.

Scripts drive it as in Slicer: name an effect, set its parameters, call `effect.self().onApply()`.  There are Threshold,
Islands, Smoothing, Margin, Hollow and Logical operators.  Any other effect is refused with a sentence, since a result
that was made up would be worse than none.  Masking by intensity range and the overwrite mode of the editor node count.
"""

import types

import numpy as np
import slicer
import vtk

from . import made_up, voxel_tools
from .modules import qSlicerCoreModule
from .qt_widgets import QWidget


class _Effect:
    """One effect of an editor; its parameters live in the segment editor node, as in Slicer."""

    name = ""
    defaults = {}

    def __init__(self, editor):
        self._editor = editor

    def self(self):
        """The Python side of the effect, which here is the same object."""
        return self

    def parameter(self, name):
        stored = self._editor.node().GetAttribute(f"{self.name}.{name}")
        return stored if stored is not None else str(self.defaults.get(name, ""))

    def setParameter(self, name, value):
        self._editor.node().SetAttribute(f"{self.name}.{name}", str(value))

    def doubleParameter(self, name):
        return float(self.parameter(name))

    def integerParameter(self, name):
        return int(float(self.parameter(name)))

    def setCommonParameter(self, name, value):
        self._editor.node().SetAttribute(name, str(value))

    def onApply(self):
        """Change the selected segment.  Raises RuntimeError when segmentation, volume or segment are missing."""
        self._editor.change(self.changed(self._editor.mask(), self._editor.spacing()))

    def changed(self, mask, spacing):
        """The new mask of the selected segment."""
        raise NotImplementedError

    def choice(self, parameter, functions):
        """The function for the value of a parameter; RuntimeError for a value that is not offered."""
        value = self.parameter(parameter)
        if value not in functions:
            made_up.note(f"SegmentEditor.{self.name}.{parameter}={value}")
            raise RuntimeError(
                f"The practice Slicer's {self.name} effect has no {parameter} '{value}'; "
                f"it has: {', '.join(functions)}."
            )
        return functions[value]


class _Threshold(_Effect):
    name = "Threshold"
    defaults = {"MinimumThreshold": 0, "MaximumThreshold": 0}

    def changed(self, mask, spacing):
        voxels = self._editor.voxels()
        return (voxels >= self.doubleParameter("MinimumThreshold")) & (
            voxels <= self.doubleParameter("MaximumThreshold")
        )

    def onUseForMask(self):
        """Use the range as the editor's intensity mask."""
        node = self._editor.node()
        node.SetSourceVolumeIntensityMask(True)
        node.SetSourceVolumeIntensityMaskRange(
            self.doubleParameter("MinimumThreshold"), self.doubleParameter("MaximumThreshold")
        )


class _Islands(_Effect):
    name = "Islands"
    defaults = {"Operation": "KEEP_LARGEST_ISLAND", "MinimumSize": 1000}

    def changed(self, mask, spacing):
        size = self.integerParameter("MinimumSize")
        operation = self.choice(
            "Operation",
            {
                "KEEP_LARGEST_ISLAND": lambda: voxel_tools.islands(mask) == 1,
                "REMOVE_SMALL_ISLANDS": lambda: voxel_tools.islands(mask, size) > 0,
                "SPLIT_ISLANDS_TO_SEGMENTS": lambda: self._split(mask, size),
            },
        )
        return operation()

    def _split(self, mask, size):
        """Give each island but the largest a segment of its own."""
        parts = voxel_tools.islands(mask, size)
        for number in range(2, int(parts.max(initial=0)) + 1):
            self._editor.addSegment(f"{self._editor.segment().GetName()}_{number}", parts == number)
        return parts == 1


class _Smoothing(_Effect):
    name = "Smoothing"
    defaults = {"SmoothingMethod": "MEDIAN", "KernelSizeMm": 3, "GaussianStandardDeviationMm": 3}

    def changed(self, mask, spacing):
        kernel, deviation = (
            self.doubleParameter("KernelSizeMm"),
            self.doubleParameter("GaussianStandardDeviationMm"),
        )
        method = self.choice(
            "SmoothingMethod",
            {
                "MEDIAN": lambda: voxel_tools.median(mask, spacing, kernel),
                "MORPHOLOGICAL_OPENING": lambda: voxel_tools.opened(mask, spacing, kernel),
                "MORPHOLOGICAL_CLOSING": lambda: voxel_tools.closed(mask, spacing, kernel),
                "GAUSSIAN": lambda: voxel_tools.gaussian(mask, spacing, deviation),
            },
        )
        return method()


class _Margin(_Effect):
    name = "Margin"
    defaults = {"MarginSizeMm": 3}

    def changed(self, mask, spacing):
        return voxel_tools.grown(mask, spacing, self.doubleParameter("MarginSizeMm"))


class _Hollow(_Effect):
    name = "Hollow"
    defaults = {"ShellMode": "INSIDE_SURFACE", "ShellThicknessMm": 3}

    def changed(self, mask, spacing):
        thick = self.doubleParameter("ShellThicknessMm")

        def grown(margin):
            return voxel_tools.grown(mask, spacing, margin)

        mode = self.choice(
            "ShellMode",
            {
                "INSIDE_SURFACE": lambda: grown(thick) & ~mask,  # the segment becomes the inside of the shell
                "MEDIAL_SURFACE": lambda: grown(thick / 2) & ~grown(-thick / 2),
                "OUTSIDE_SURFACE": lambda: mask & ~grown(-thick),
            },
        )
        return mode()


class _LogicalOperators(_Effect):
    name = "Logical operators"
    defaults = {"Operation": "COPY", "ModifierSegmentID": "", "BypassMasking": 1}

    def changed(self, mask, spacing):
        def other():
            return self._editor.mask(self.parameter("ModifierSegmentID"))

        operation = self.choice(
            "Operation",
            {
                "COPY": other,
                "UNION": lambda: mask | other(),
                "SUBTRACT": lambda: mask & ~other(),
                "INTERSECT": lambda: mask & other(),
                "INVERT": lambda: ~mask,
                "CLEAR": lambda: np.zeros_like(mask),
                "FILL": lambda: np.ones_like(mask),
            },
        )
        return operation()

    def onApply(self):
        changed = self.changed(self._editor.mask(), self._editor.spacing())
        self._editor.change(changed, masked=not self.integerParameter("BypassMasking"))


EFFECTS = {cls.name: cls for cls in (_Threshold, _Islands, _Smoothing, _Margin, _Hollow, _LogicalOperators)}


class _Editor:
    """What effects work on: the selected segment of the editor node, on the voxels of its source volume."""

    def __init__(self, widget):
        self._widget = widget

    def node(self):
        node = self._widget.mrmlSegmentEditorNode()
        if node is None:
            raise RuntimeError("The segment editor has no parameter node: call setMRMLSegmentEditorNode first.")
        return node

    def _needed(self):
        """Segmentation node, source volume node, segment id."""
        node = self.node()
        segmentation, volume = node.GetSegmentationNode(), node.GetSourceVolumeNode()
        if segmentation is None or volume is None:
            raise RuntimeError("The segment editor needs a segmentation and a source volume.")
        segment_id = node.GetSelectedSegmentID()
        if not segment_id or segmentation.GetSegmentation().GetSegment(segment_id) is None:
            raise RuntimeError("The segment editor has no segment selected: call setCurrentSegmentID first.")
        return segmentation, volume, segment_id

    def segment(self):
        segmentation, _, segment_id = self._needed()
        return segmentation.GetSegmentation().GetSegment(segment_id)

    def spacing(self):
        return self._needed()[1].GetSpacing()

    def voxels(self):
        return slicer.util.arrayFromVolume(self._needed()[1])

    def mask(self, segment_id=None):
        """The voxels of a segment (the selected one without an id) in the geometry of the source volume."""
        segmentation, volume, selected = self._needed()
        segment_id = segment_id or selected
        if segmentation.GetSegmentation().GetSegment(segment_id) is None:
            raise RuntimeError(f"The segmentation has no segment '{segment_id}'.")
        found = slicer.util.arrayFromSegmentBinaryLabelmap(segmentation, segment_id, volume)
        return found > 0 if found is not None else np.zeros(self.voxels().shape, bool)

    def _write(self, segment_id, mask):
        segmentation, volume, _ = self._needed()
        slicer.util.updateSegmentBinaryLabelmapFromArray(mask.astype(np.uint8), segmentation, segment_id, volume)

    def change(self, mask, masked=True):
        """Make `mask` the selected segment, where masking allows it, and take its voxels from the others."""
        segmentation, _, segment_id = self._needed()
        node, before = self.node(), self.mask()
        if masked and node.GetMaskMode() != segmentation.EditAllowedEverywhere:
            made_up.note("SegmentEditor mask mode")
            raise RuntimeError("The practice Slicer's Segment Editor cannot mask by segments, only by intensity.")
        if masked and node.GetSourceVolumeIntensityMask():
            low, high = node.GetSourceVolumeIntensityMaskRange()
            voxels = self.voxels()
            mask = np.where((voxels >= low) & (voxels <= high), mask, before)
        self._write(segment_id, mask)
        added = mask & ~before
        if not masked or not added.any() or node.GetOverwriteMode() == node.OverwriteNone:
            return
        for other in self._others(segmentation, segment_id, node.GetOverwriteMode() == node.OverwriteVisibleSegments):
            voxels = self.mask(other)
            if (voxels & added).any():
                self._write(other, voxels & ~added)

    @staticmethod
    def _others(segmentation, segment_id, only_visible):
        display = segmentation.GetDisplayNode()
        ids = vtk.vtkStringArray()
        segmentation.GetSegmentation().GetSegmentIDs(ids)
        for other in (ids.GetValue(index) for index in range(ids.GetNumberOfValues())):
            hidden = only_visible and display is not None and not display.GetSegmentVisibility(other)
            if other != segment_id and not hidden:
                yield other

    def addSegment(self, name, mask):
        segmentation = self._needed()[0]
        self._write(segmentation.GetSegmentation().AddEmptySegment("", name), mask)


class qMRMLSegmentEditorWidget(QWidget):
    """The segment editor as scripts use it; draws nothing."""

    def __init__(self, *args):
        super().__init__(*args)
        self._node, self._effect, self._editor = None, None, _Editor(self)

    def mrmlSegmentEditorNode(self):
        return self._node

    def setMRMLSegmentEditorNode(self, node):
        self._node = node

    def segmentationNode(self):
        return self._editor.node().GetSegmentationNode()

    def setSegmentationNode(self, node):
        """Edit a segmentation; its first segment is selected if none is."""
        editor_node = self._editor.node()
        editor_node.SetAndObserveSegmentationNode(node)
        if node is not None:
            node.CreateDefaultDisplayNodes()
            segmentation = node.GetSegmentation()
            if segmentation.GetSegment(editor_node.GetSelectedSegmentID() or "") is None:
                first = segmentation.GetNthSegmentID(0) if segmentation.GetNumberOfSegments() else ""
                editor_node.SetSelectedSegmentID(first)

    def setSegmentationNodeID(self, node_id):
        self.setSegmentationNode(slicer.mrmlScene.GetNodeByID(node_id or ""))

    def sourceVolumeNode(self):
        return self._editor.node().GetSourceVolumeNode()

    def setSourceVolumeNode(self, node):
        """Work on a volume; it gives a segmentation without segments its geometry."""
        self._editor.node().SetAndObserveSourceVolumeNode(node)
        segmentation = self.segmentationNode()
        if node is not None and segmentation is not None:
            segmentation.SetReferenceImageGeometryParameterFromVolumeNode(node)

    def setSourceVolumeNodeID(self, node_id):
        self.setSourceVolumeNode(slicer.mrmlScene.GetNodeByID(node_id or ""))

    masterVolumeNode, setMasterVolumeNode = sourceVolumeNode, setSourceVolumeNode  # older names

    def currentSegmentID(self):
        return self._editor.node().GetSelectedSegmentID()

    def setCurrentSegmentID(self, segment_id):
        self._editor.node().SetSelectedSegmentID(segment_id)

    def availableEffectNames(self):
        return tuple(EFFECTS)

    def effectByName(self, name):
        return EFFECTS[name](self._editor) if name in EFFECTS else None

    def activeEffect(self):
        return self._effect

    def setActiveEffect(self, effect):
        self._effect = effect

    def setActiveEffectByName(self, name):
        """Choose an effect; None or "" chooses none.  Raises RuntimeError for one that is not here."""
        if name and name not in EFFECTS:
            made_up.note(f"SegmentEditor effect {name}")
            known = ", ".join(EFFECTS)
            raise RuntimeError(f"The practice Slicer has no Segment Editor effect '{name}'; it has: {known}.")
        self._effect = self.effectByName(name)
        if self._node is not None:
            self._node.SetActiveEffectName(name or "")


class SegmentEditorModule(qSlicerCoreModule):
    """`slicer.modules.segmenteditor`, whose widget has the editor in `self().editor`."""

    def __init__(self):
        super().__init__("SegmentEditor", None)

    def widgetRepresentation(self):
        if self._widget is None:
            self._widget = _SegmentEditorModuleWidget()
        return self._widget


class _SegmentEditorModuleWidget(QWidget):
    """The module panel: an editor with a parameter node of its own."""

    def __init__(self):
        super().__init__()
        self._editor_widget = qMRMLSegmentEditorWidget(self)

    def self(self):
        if self._editor_widget.mrmlSegmentEditorNode() is None:
            node = slicer.mrmlScene.GetSingletonNode("SegmentEditor", "vtkMRMLSegmentEditorNode")
            if node is None:
                node = slicer.vtkMRMLSegmentEditorNode()
                node.SetSingletonTag("SegmentEditor")
                node = slicer.mrmlScene.AddNode(node)
            self._editor_widget.setMRMLSegmentEditorNode(node)
        return types.SimpleNamespace(
            editor=self._editor_widget, parameterSetNode=self._editor_widget.mrmlSegmentEditorNode()
        )
