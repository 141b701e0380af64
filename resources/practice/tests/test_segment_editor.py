"""The Segment Editor's effects change segments as their names promise: checked on boxes whose result can be counted."""

import unittest

from support import PracticeTestCase

# A volume of 1 x 1 x 2 mm voxels with a bright box of 10 x 10 x 10 voxels and a bright block of 2 x 2 x 2.
START = """
import numpy as np
a = np.zeros((30, 40, 40), np.int16); a[5:15, 10:20, 10:20] = 500; a[20:22, 30:32, 30:32] = 500
v = slicer.util.addVolumeFromArray(a, np.diag([1.0, 1.0, 2.0, 1.0]))
seg = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLSegmentationNode', 'Parts')
seg.CreateDefaultDisplayNodes(); seg.SetReferenceImageGeometryParameterFromVolumeNode(v)
one = seg.GetSegmentation().AddEmptySegment('one', 'one'); two = seg.GetSegmentation().AddEmptySegment('two', 'two')
w = slicer.qMRMLSegmentEditorWidget(); w.setMRMLScene(slicer.mrmlScene)
n = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLSegmentEditorNode'); w.setMRMLSegmentEditorNode(n)
w.setSegmentationNode(seg); w.setSourceVolumeNode(v); w.setCurrentSegmentID(one)
def apply(effect, **parameters):
    w.setActiveEffectByName(effect); e = w.activeEffect()
    for name, value in parameters.items(): e.setParameter(name, value)
    e.self().onApply()
def count(segment):
    found = slicer.util.arrayFromSegmentBinaryLabelmap(seg, segment, v)
    return int(found.sum()) if found is not None else 0
apply('Threshold', MinimumThreshold='100', MaximumThreshold='1000')
"""


class Effects(PracticeTestCase):
    def result(self, code):
        return self.run_code(START + code)

    def test_threshold_takes_the_voxels_in_the_range(self):
        self.assertEqual(self.result("__execResult = [count(one), count(two)]"), [1008, 0])

    def test_islands(self):
        self.assertEqual(
            self.result("apply('Islands', Operation='KEEP_LARGEST_ISLAND'); __execResult = count(one)"), 1000
        )
        code = "apply('Islands', Operation='REMOVE_SMALL_ISLANDS', MinimumSize=%d); __execResult = count(one)"
        self.assertEqual(self.result(code % 8), 1008)
        self.assertEqual(self.result(code % 9), 1000)
        split = self.result(
            "apply('Islands', Operation='SPLIT_ISLANDS_TO_SEGMENTS', MinimumSize=1)\n"
            "ids = seg.GetSegmentation().GetSegmentIDs(); __execResult = [len(ids), count(one), count(ids[-1])]"
        )
        self.assertEqual(split, [3, 1000, 8])

    def test_margin_is_in_millimetres(self):
        keep = "apply('Islands'); "
        # 2 mm are two voxels in the plane but one across; corners are rounded.
        grown = self.result(keep + "apply('Margin', MarginSizeMm=2); __execResult = count(one)")
        self.assertTrue(1000 + 2 * 100 + 4 * 200 <= grown < 12 * 14 * 14, grown)
        shrunk = self.result(keep + "apply('Margin', MarginSizeMm=-2); __execResult = count(one)")
        self.assertEqual(shrunk, 8 * 6 * 6)

    def test_smoothing(self):
        opening = (
            "apply('Smoothing', SmoothingMethod='MORPHOLOGICAL_OPENING', KernelSizeMm=6); __execResult = count(one)"
        )
        self.assertTrue(700 < self.result(opening) <= 1000)  # the small block is thinner than the kernel
        for method in ("MEDIAN", "GAUSSIAN", "MORPHOLOGICAL_CLOSING"):
            code = f"apply('Smoothing', SmoothingMethod='{method}', KernelSizeMm=3, GaussianStandardDeviationMm=1)\n"
            self.assertTrue(800 < self.result(code + "__execResult = count(one)") <= 1100, method)

    def test_hollow_leaves_a_shell(self):
        shell = "apply('Islands'); apply('Hollow', ShellMode='OUTSIDE_SURFACE', ShellThicknessMm=2); __execResult = count(one)"
        self.assertEqual(self.result(shell), 1000 - 8 * 6 * 6)

    def test_logical_operators_and_overwriting(self):
        found = self.result(
            "w.setCurrentSegmentID(two); apply('Logical operators', Operation='COPY', ModifierSegmentID=one)\n"
            "first = [count(one), count(two)]\n"
            "apply('Logical operators', Operation='CLEAR'); apply('Threshold')\n"
            "__execResult = [first, [count(one), count(two)]]"
        )
        self.assertEqual(found, [[1008, 1008], [0, 1008]])  # masking off: shared voxels; on: taken from the other

    def test_intensity_mask_limits_what_changes(self):
        found = self.result(
            "w.setActiveEffectByName('Threshold'); w.activeEffect().self().onUseForMask()\n"
            "apply('Margin', MarginSizeMm=3); __execResult = count(one)"
        )
        self.assertEqual(found, 1008)

    def test_other_effects_are_refused_in_words(self):
        text = self.result("try:\n    apply('Paint')\nexcept RuntimeError as e:\n    __execResult = str(e)\n")
        self.assertIn("no Segment Editor effect 'Paint'", text)
        self.assertIn("Threshold", text)

    def test_the_modules_own_editor(self):
        found = self.run_code(
            "editor = slicer.modules.segmenteditor.widgetRepresentation().self().editor\n"
            "__execResult = [editor.className(), editor.mrmlSegmentEditorNode().GetSingletonTag()]"
        )
        self.assertEqual(found, ["qMRMLSegmentEditorWidget", "SegmentEditor"])

    def test_nothing_is_made_up(self):
        self.assertEqual(self.result("__execResult = slicer.app.practiceTouchedNames()"), [])


if __name__ == "__main__":
    unittest.main()
