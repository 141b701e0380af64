"""Views, layouts, pictures, volume rendering, and the record of names that only the full Slicer has."""

import unittest

from support import PracticeTestCase, colour_count
from test_data import LOAD_CHEST, SEGMENT_BONE

VIEW = "lm = slicer.app.layoutManager()\nview = lm.threeDWidget(0).threeDView()\n"


class Pictures(PracticeTestCase):
    def test_screenshot_shows_all_four_views(self):
        self.run_code(SEGMENT_BONE + "seg.CreateClosedSurfaceRepresentation()\nslicer.util.resetThreeDViews()")
        picture = self.slicer.picture("/slicer/screenshot")
        self.assertEqual(picture.size, (1280, 960))
        areas = self.run_code(
            "__execResult = [[slicer.mrmlScene.GetNodeByID(w.viewNodeID()).GetLayoutName(), *p] "
            "for w, p in slicer.app.layoutManager().places()]"
        )
        places = {name: (x, y, x + width, y + height) for name, x, y, width, height in areas}
        self.assertEqual(set(places), {"Red", "Green", "Yellow", "1"})
        for name, box in places.items():
            self.assertGreater(colour_count(picture.crop(box)), 100, name)
        # As in Slicer: red above green, 3D to the right of red, yellow below 3D.
        self.assertLess(places["Red"][1], places["Green"][1])
        self.assertLess(places["Red"][0], places["1"][0])
        self.assertEqual(places["Yellow"][:1], places["1"][:1])

    def test_slice_route_moves_and_turns_the_view(self):
        self.run_code(LOAD_CHEST)
        first = self.slicer.picture("/slicer/slice?view=red")
        self.assertGreater(colour_count(first), 100)
        moved = self.slicer.picture("/slicer/slice?view=red&offset=60")
        self.assertNotEqual(first.tobytes(), moved.tobytes())
        self.slicer.get("/slicer/slice?view=green&orientation=sagittal")
        self.assertEqual(self.run_code(VIEW + "__execResult = lm.sliceWidget('Green').sliceOrientation"), "Sagittal")

    def test_3d_route_looks_from_the_axis_asked_for(self):
        self.run_code(SEGMENT_BONE + "seg.CreateClosedSurfaceRepresentation()")
        front = self.slicer.picture("/slicer/threeD?lookFromAxis=A")
        side = self.slicer.picture("/slicer/threeD?lookFromAxis=L")
        self.assertGreater(colour_count(front), 300)
        self.assertNotEqual(front.tobytes(), side.tobytes())
        position = self.run_code(VIEW + "__execResult = view.cameraNode().GetPosition()")
        self.assertLess(position[0], -300)  # left is negative in RAS
        self.assertLess(abs(position[1]), 100)

    def test_pictures_from_code(self):
        sizes = self.run_code(
            LOAD_CHEST
            + VIEW
            + "grabbed = [w.grab() for w in (lm.sliceWidget('Red').sliceView(), view, slicer.util.mainWindow())]\n"
            "window = lm.sliceWidget('Yellow').sliceView().renderWindow()\n"
            "f = vtk.vtkWindowToImageFilter(); f.SetInput(window); f.Update()\n"
            "__execResult = [[g.width(), g.height()] for g in grabbed] + [f.GetOutput().GetDimensions()[:2]]"
        )
        self.assertEqual(sizes[2], [1280, 960])
        for width, height in (sizes[0], sizes[1], sizes[3]):
            self.assertTrue(400 < width < 500 and 400 < height < 500, sizes)

    def test_camera_calls(self):
        found = self.run_code(
            SEGMENT_BONE
            + VIEW
            + "import ctk\nseg.CreateClosedSurfaceRepresentation()\nslicer.util.resetThreeDViews()\n"
            "view.lookFromViewAxis(ctk.ctkAxesWidget.Anterior); front = view.cameraNode().GetPosition()\n"
            "view.rotateToViewAxis(ctk.ctkAxesWidget.Superior); top = view.cameraNode().GetPosition()\n"
            "view.resetFocalPoint(); view.forceRender()\n"
            "lm.threeDWidget(0).threeDController().setBlackBackground()\n"
            "__execResult = [front, top, view.cameraNode().GetFocalPoint(), lm.threeDWidget(0).mrmlViewNode().GetBackgroundColor()]"
        )
        self.assertGreater(found[0][1], 300)
        self.assertGreater(found[1][2], 300)
        self.assertTrue(all(abs(x) < 40 for x in found[2]), found)
        self.assertEqual(found[3], [0, 0, 0])


class Layouts(PracticeTestCase):
    def test_layout_changes_views_and_their_sizes(self):
        found = self.run_code(
            VIEW + "L = slicer.vtkMRMLLayoutNode\nfound = []\n"
            "for layout in (L.SlicerLayoutOneUp3DView, L.SlicerLayoutOneUpRedSliceView, L.SlicerLayoutConventionalView):\n"
            "    lm.setLayout(layout)\n"
            "    found.append([lm.layout == layout] + [[w.viewNodeID().removeprefix('vtkMRML'), *p[2:]] for w, p in lm.places()])\n"
            "__execResult = found"
        )
        one_3d, one_red, conventional = found
        self.assertEqual(len(one_3d), 2)
        self.assertTrue(one_3d[0] and one_3d[1][1] > 900 and one_3d[1][2] > 880, one_3d)
        self.assertEqual(one_red[1][0], "SliceNodeRed")
        self.assertEqual(len(conventional), 5)
        wide = max(conventional[1:], key=lambda view: view[1])
        self.assertTrue(wide[0].startswith("ViewNode"), conventional)

    def test_layout_by_route(self):
        self.assertEqual(self.slicer.request("PUT", "/slicer/gui?viewersLayout=oneup3d", b"")[2], b'{"success": true}')
        self.assertGreater(self.slicer.picture("/slicer/threeD").size[0], 900)

    def test_slice_view_helpers(self):
        found = self.run_code(
            LOAD_CHEST + "head = SampleData.downloadSample('MRHead')\n"
            "slicer.util.setSliceViewerLayers(background=v, foreground=head, foregroundOpacity=0.3, fit=True)\n"
            "slicer.util.resetSliceViews()\n"
            "c = slicer.app.layoutManager().sliceWidget('Red').mrmlSliceCompositeNode()\n"
            "__execResult = [c.GetBackgroundVolumeID() == v.GetID(), c.GetForegroundVolumeID() == head.GetID(), c.GetForegroundOpacity()]"
        )
        self.assertEqual(found, [True, True, 0.3])


class VolumeRendering(PracticeTestCase):
    def test_presets_have_slicers_names(self):
        names = (
            "CT-AAA CT-Bone CT-Bones CT-Cardiac CT-Chest-Contrast-Enhanced CT-Chest-Vessels CT-Coronary-Arteries "
            "CT-Lung CT-Muscle CT-Soft-Tissue MR-Angio MR-Default MR-MIP MR-T2-Brain"
        ).split()
        sizes = self.run_code(
            "logic = slicer.modules.volumerendering.logic()\n"
            f"__execResult = [logic.GetPresetByName(n).GetScalarOpacity().GetSize() for n in {names!r}]"
        )
        self.assertTrue(all(size >= 4 for size in sizes), dict(zip(names, sizes)))

    def test_a_preset_draws_the_volume(self):
        self.run_code(
            LOAD_CHEST + VIEW + "lm.setLayout(slicer.vtkMRMLLayoutNode.SlicerLayoutFourUpView)\nview.resetFocalPoint()"
        )
        before = self.slicer.picture("/slicer/threeD?lookFromAxis=A")
        self.run_code(
            "logic = slicer.modules.volumerendering.logic()\n"
            "d = logic.CreateDefaultVolumeRenderingNodes(v)\n"
            "d.GetVolumePropertyNode().Copy(logic.GetPresetByName('CT-Bones'))\n"
            "d.SetVisibility(True)"
        )
        after = self.slicer.picture("/slicer/threeD?lookFromAxis=A")
        self.assertGreater(colour_count(after), colour_count(before) + 1000)


class MadeUpNames(PracticeTestCase):
    def test_touched_names_are_recorded_and_cleared(self):
        found = self.run_code(
            "import practice_slicer\nw = slicer.qMRMLSegmentsTableView(); w.selectedSegmentIDs()\n"
            "first = slicer.app.practiceTouchedNames(); same = practice_slicer.touched() == first\n"
            "slicer.app.practiceClearTouchedNames()\n"
            "__execResult = [first, same, slicer.app.practiceTouchedNames()]"
        )
        self.assertEqual(
            found,
            [["slicer.qMRMLSegmentsTableView (class)", "qMRMLSegmentsTableView.selectedSegmentIDs"], True, []],
        )

    def test_ordinary_work_touches_nothing(self):
        self.run_code(SEGMENT_BONE + VIEW + "slicer.util.resetThreeDViews(); slicer.util.forceRenderAllViews()")
        self.slicer.get("/slicer/screenshot")
        self.slicer.request("PUT", "/slicer/gui?contents=full", b"")
        self.run_code(
            "slicer.util.selectModule('Data'); slicer.util.infoDisplay('done'); slicer.util.delayDisplay('x', 1)"
        )
        self.assertEqual(self.run_code("__execResult = slicer.app.practiceTouchedNames()"), [])


if __name__ == "__main__":
    unittest.main()
