"""Sample data, and what is done with it: segmentation, markups, crop volume, files, colours, terminologies."""

import unittest

from support import PracticeTestCase

LOAD_CHEST = "import SampleData, numpy as np\nv = SampleData.SampleDataLogic().downloadCTChest()\n"
SEGMENT_BONE = (
    LOAD_CHEST + "seg = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLSegmentationNode', 'Bones')\n"
    "seg.CreateDefaultDisplayNodes()\n"
    "seg.SetReferenceImageGeometryParameterFromVolumeNode(v)\n"
    "sid = seg.GetSegmentation().AddEmptySegment('bone', 'bone')\n"
    "mask = (slicer.util.arrayFromVolume(v) >= 180).astype(np.uint8)\n"
    "slicer.util.updateSegmentBinaryLabelmapFromArray(mask, seg, sid, v)\n"
)


class SampleData(PracticeTestCase):
    def test_names_of_nodes_are_slicers(self):
        names = self.run_code(
            "import SampleData\n"
            "samples = ('MRHead CTChest CTACardio CTAAbdomenPanoramix MRBrainTumor1 MRBrainTumor2 CTLiver FA '\n"
            "           'CTMRBrain MRUSProstate').split()\n"
            "__execResult = [n.GetName() for s in samples for n in SampleData.SampleDataLogic().downloadSamples(s)]"
        )
        expected = "MRHead CTChest CTACardio CTAAbdomenPanoramix MRBrainTumor1 MRBrainTumor2 CTLiver FA "
        expected += "CTBrain MRBrainT1 MRBrainT2 MRProstate USProstate"
        self.assertEqual(names, expected.split())
        again = self.run_code("__execResult = SampleData.downloadSample('MRHead').GetName()")
        self.assertEqual(again, "MRHead_1")

    def test_what_cannot_be_had_is_said(self):
        for code, part in (
            ("SampleData.downloadSample('DTIBrain')", "diffusion images"),
            ("SampleData.downloadSample('Nonsense')", "it has: MRHead"),
            ("SampleData.downloadFromURL(uris='http://x')", "no network"),
        ):
            text = self.run_code(
                f"import SampleData\ntry:\n    {code}\nexcept Exception as e:\n    __execResult = str(e)\n"
            )
            self.assertIn(part, text)

    def test_unknown_names_give_an_empty_list_as_in_slicer(self):
        self.assertEqual(self.run_code("import SampleData\n__execResult = SampleData.downloadSamples('Nonsense')"), [])

    def test_sequence_has_a_browser_and_a_proxy_that_changes(self):
        found = self.run_code(
            "import SampleData\ns = SampleData.downloadSample('CTCardioSeq')\n"
            "b = slicer.modules.sequences.logic().GetFirstBrowserNodeForSequenceNode(s)\n"
            "p = b.GetProxyNode(s); means = []\n"
            "for item in (0, 5):\n"
            "    b.SetSelectedItemNumber(item); slicer.modules.sequences.logic().UpdateProxyNodesFromSequences(b)\n"
            "    means.append(float(slicer.util.arrayFromVolume(p).mean()))\n"
            "__execResult = [s.GetName(), s.GetNumberOfDataNodes(), p.GetClassName(), means,\n"
            "    slicer.mrmlScene.GetNumberOfNodesByClass('vtkMRMLScalarVolumeNode')]"
        )
        self.assertEqual(found[:3], ["CTCardioSeq", 10, "vtkMRMLScalarVolumeNode"])
        self.assertGreater(found[3][0], found[3][1])  # less blood in the contracted heart
        self.assertEqual(found[4], 1)

    def test_chest_is_a_chest_in_hounsfield_units(self):
        found = self.run_code(
            LOAD_CHEST + "a = slicer.util.arrayFromVolume(v)\n"
            "m = vtk.vtkMatrix4x4(); v.GetRASToIJKMatrix(m)\n"
            "def hu(*ras):\n"
            "    i, j, k = (int(round(x)) for x in m.MultiplyPoint((*ras, 1))[:3])\n"
            "    return float(np.median(a[k - 1:k + 2, j - 2:j + 3, i - 2:i + 3]))\n"
            "d = v.GetDisplayNode()\n"
            "__execResult = dict(shape=a.shape, type=str(a.dtype), spacing=v.GetSpacing(), air=hu(0, 140, 0),\n"
            "    right_lung=hu(85, 0, -20), left_lung=hu(-90, -10, 20), heart=hu(-38, 14, -52), spine=hu(0, -56, 0),\n"
            "    liver=hu(60, 20, -120), low=float(a.min()), high=float(a.max()), bone=float((a > 180).mean()),\n"
            "    window=d.GetWindow(), level=d.GetLevel(), wl_auto=d.GetAutoWindowLevel())"
        )
        self.assertEqual((found["shape"], found["type"]), ([80, 128, 128], "int16"))
        self.assertEqual(found["spacing"], [2.5, 2.5, 3.5])
        self.assertLess(found["air"], -950)
        for lung in ("right_lung", "left_lung"):
            self.assertTrue(-930 < found[lung] < -700, found)
        self.assertTrue(100 < found["heart"] < 170, found)
        self.assertTrue(60 < found["liver"] < 130, found)
        self.assertTrue(180 < found["spine"] < 500, found)
        self.assertTrue(700 < found["high"] < 1300 and found["low"] >= -1024, found)
        self.assertTrue(0.02 < found["bone"] < 0.12, found)  # ribs, spine and shoulders, no heart and no table
        self.assertEqual((found["window"], found["wl_auto"]), (1500, 0))

    def test_data_are_the_same_each_time(self):
        code = "import hashlib\n__execResult = hashlib.md5(slicer.util.arrayFromVolume(v).tobytes()).hexdigest()"
        self.assertEqual(self.run_code(LOAD_CHEST + code), self.run_code(LOAD_CHEST + code))

    def test_sagittal_head_has_its_nose_in_front(self):
        found = self.run_code(
            "import SampleData\nv = SampleData.downloadSample('MRHead'); a = slicer.util.arrayFromVolume(v)\n"
            "m = vtk.vtkMatrix4x4(); v.GetRASToIJKMatrix(m)\n"
            "def at(*ras):\n"
            "    i, j, k = (int(round(x)) for x in m.MultiplyPoint((*ras, 1))[:3])\n"
            "    return float(a[k, j - 1:j + 2, i - 1:i + 2].mean())\n"
            "d = vtk.vtkMatrix4x4(); v.GetIJKToRASDirectionMatrix(d)\n"
            "__execResult = dict(nose=at(0, 100, -26), behind=at(0, -108, -26), brain=at(30, -4, 30),\n"
            "    i_axis=[d.GetElement(r, 0) for r in range(3)], k_axis=[d.GetElement(r, 2) for r in range(3)])"
        )
        self.assertGreater(found["nose"], 80)
        self.assertLess(found["behind"], 20)
        self.assertGreater(found["brain"], 70)
        self.assertEqual((found["i_axis"], found["k_axis"]), ([0, -1, 0], [1, 0, 0]))

    def test_new_data_are_shown_in_the_slice_views(self):
        shown = self.run_code(
            LOAD_CHEST + "__execResult = [[c.GetBackgroundVolumeID() for c in "
            "slicer.util.getNodesByClass('vtkMRMLSliceCompositeNode')], v.GetID(),\n"
            "slicer.app.applicationLogic().GetSelectionNode().GetActiveVolumeID()]"
        )
        self.assertEqual(shown[0], [shown[1]] * 3)
        self.assertEqual(shown[2], shown[1])


class Work(PracticeTestCase):
    def test_label_map_becomes_a_closed_surface_of_ribs_and_spine(self):
        found = self.run_code(
            SEGMENT_BONE + "ok = seg.CreateClosedSurfaceRepresentation()\n"
            "surface = seg.GetClosedSurfaceInternalRepresentation(sid)\n"
            "back = slicer.util.arrayFromSegmentBinaryLabelmap(seg, sid, v)\n"
            "__execResult = [ok, surface.GetNumberOfPoints(), surface.GetBounds(), int(back.sum()), int(mask.sum())]"
        )
        self.assertTrue(found[0])
        self.assertGreater(found[1], 20000)
        left, right, back, front, low, high = found[2]
        self.assertTrue(right - left > 200 and front - back > 140 and high - low > 250, found[2])
        self.assertEqual(found[3], found[4])

    def test_segment_statistics(self):
        found = self.run_code(
            "import numpy as np, SegmentStatistics\n"
            "v = slicer.util.addVolumeFromArray(np.arange(8000, dtype=np.int16).reshape(20, 20, 20), np.diag([2., 2., 3., 1.]))\n"
            "seg = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLSegmentationNode'); seg.CreateDefaultDisplayNodes()\n"
            "seg.SetReferenceImageGeometryParameterFromVolumeNode(v)\n"
            "sid = seg.GetSegmentation().AddEmptySegment('box', 'Box')\n"
            "mask = np.zeros((20, 20, 20), np.uint8); mask[5:11, 5:10, 4:14] = 1\n"
            "slicer.util.updateSegmentBinaryLabelmapFromArray(mask, seg, sid, v)\n"
            "seg.CreateClosedSurfaceRepresentation()\n"
            "logic = SegmentStatistics.SegmentStatisticsLogic(); p = logic.getParameterNode()\n"
            "p.SetParameter('Segmentation', seg.GetID()); p.SetParameter('ScalarVolume', v.GetID())\n"
            "p.SetParameter('LabelmapSegmentStatisticsPlugin.centroid_ras.enabled', str(True))\n"
            "logic.computeStatistics(); s = logic.getStatistics()\n"
            "table = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTableNode'); logic.exportToTable(table)\n"
            "L = 'LabelmapSegmentStatisticsPlugin.'\n"
            "__execResult = dict(ids=s['SegmentIDs'], name=s['box', 'Segment'], count=s['box', L + 'voxel_count'],\n"
            "    mm3=s['box', L + 'volume_mm3'], centre=s['box', L + 'centroid_ras'],\n"
            "    mean=s['box', 'ScalarVolumeSegmentStatisticsPlugin.mean'],\n"
            "    expected=float(slicer.util.arrayFromVolume(v)[mask > 0].mean()),\n"
            "    surface=s['box', 'ClosedSurfaceSegmentStatisticsPlugin.volume_mm3'], columns=table.GetNumberOfColumns())"
        )
        self.assertEqual((found["ids"], found["name"], found["count"], found["mm3"]), (["box"], "Box", 300, 3600.0))
        self.assertEqual(found["mean"], found["expected"])
        for value, expected in zip(found["centre"], (17.0, 14.0, 22.5)):
            self.assertAlmostEqual(value, expected)
        self.assertAlmostEqual(found["surface"] / 3600, 1, delta=0.25)
        self.assertGreater(found["columns"], 10)

    def test_markups_measure(self):
        found = self.run_code(
            "line = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLMarkupsLineNode')\n"
            "line.AddControlPoint(0, 0, 0); line.AddControlPoint(30, 40, 0)\n"
            "f = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLMarkupsFiducialNode', 'Targets')\n"
            "f.AddControlPoint(1, 2, 3)\n"
            "__execResult = [line.GetMeasurement('length').GetValue(), slicer.util.arrayFromMarkupsControlPoints(f).tolist()]"
        )
        self.assertEqual(found, [50.0, [[1.0, 2.0, 3.0]]])

    def test_crop_volume_in_voxel_mode(self):
        found = self.run_code(
            LOAD_CHEST + "roi = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLMarkupsROINode')\n"
            "roi.SetCenter(0, 0, 0); roi.SetSize(100, 100, 70)\n"
            "p = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLCropVolumeParametersNode')\n"
            "p.SetInputVolumeNodeID(v.GetID()); p.SetROINodeID(roi.GetID()); p.SetVoxelBased(True)\n"
            "slicer.modules.cropvolume.logic().Apply(p)\n"
            "__execResult = slicer.mrmlScene.GetNodeByID(p.GetOutputVolumeNodeID()).GetImageData().GetDimensions()"
        )
        self.assertEqual(found, [40, 40, 20])

    def test_files_are_written_and_read(self):
        found = self.run_code(
            LOAD_CHEST + "d = slicer.app.temporaryPath\n"
            "slicer.util.saveNode(v, os.path.join(d, 'chest.nrrd'))\n"
            "again = slicer.util.loadVolume(os.path.join(d, 'chest.nrrd'))\n"
            "scene = slicer.util.saveScene(os.path.join(d, 'all.mrb'))\n"
            "__execResult = [scene, again.GetName(), bool((slicer.util.arrayFromVolume(again) == slicer.util.arrayFromVolume(v)).all())]"
        )
        self.assertEqual(found, [True, "chest", True])

    def test_colours_and_terminologies_are_ours_and_load(self):
        found = self.run_code(
            "table = slicer.util.getNode('GenericAnatomyColors')\n"
            "entry = slicer.vtkSlicerTerminologyEntry()\n"
            "text = ('Segmentation category and type - 3D Slicer General Anatomy list~SCT^123037004^Anatomical Structure'\n"
            "        '~SCT^39607008^Lung~SCT^7771000^Left~Anatomic codes - DICOM master list~^^~^^')\n"
            "ok = slicer.modules.terminologies.logic().DeserializeTerminologyEntry(text, entry)\n"
            "__execResult = [table.GetColorName(2), table.GetNumberOfColors() > 60, ok, entry.GetTypeObject().GetCodeMeaning(),\n"
            "    [slicer.util.getFirstNodeByName(n) is not None for n in ('Labels', 'Grey', 'Ocean', 'fMRI', 'GenericColors')]]"
        )
        self.assertEqual(found, ["bone", True, True, "Lung", [True] * 5])


if __name__ == "__main__":
    unittest.main()
