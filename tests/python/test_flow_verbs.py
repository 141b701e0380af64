"""The verbs of guided workflows, tested inside a Slicer on a scripted module with a panel of its own.

Set SLICER_URL as for test_slicer_helper.py. `cargo test --test workflow_run` runs this file. What is protected: a verb
does what a person could do and no more, sees an exception that Qt would swallow, and says what is wrong in a sentence.
"""
import json
import pathlib
import tempfile
import unittest

import test_slicer_helper as helper

MODULE = '''
import qt
import slicer


class PanelOfTests:
    def __init__(self, parent):
        parent.title = "Panel of tests"


class PanelOfTestsWidget:
    def __init__(self, parent):
        self.parent, self.layout = parent, parent.layout()

    def setup(self):
        self.logic = PanelOfTestsLogic()
        self.pressed = []
        self.add = self.named(qt.QPushButton(), "addButton", "&Add cut plane")
        self.add.connect("clicked(bool)", self.onAdd)
        self.fail = self.named(qt.QPushButton(), "failButton", "Fail")
        self.off = self.named(qt.QPushButton(), "offButton", "Update")
        self.off.setEnabled(False)
        for number in (1, 2):
            self.named(qt.QPushButton(), "twin%d" % number, "Twin %d" % number)
        self.right = self.named(qt.QCheckBox(), "rightSideLegCheckBox", "Right side leg")
        self.selector = slicer.qMRMLNodeComboBox()
        self.selector.nodeTypes = ["vtkMRMLSegmentationNode"]
        self.selector.setMRMLScene(slicer.mrmlScene)
        self.selector.objectName = "segmentationSelector"
        self.layout.addWidget(self.selector)
        self.method = qt.QComboBox()
        self.method.objectName = "methodBox"
        self.method.addItems(["Fast", "Exact"])
        self.layout.addWidget(self.method)
        self.count = qt.QSpinBox()
        self.count.objectName = "countBox"
        self.layout.addWidget(self.count)

    def named(self, widget, name, text):
        widget.objectName, widget.text = name, text
        self.layout.addWidget(widget)
        return widget

    def onAdd(self, *ignored):
        self.pressed.append("add")
        slicer.mrmlScene.AddNewNodeByClass("vtkMRMLMarkupsPlaneNode", "Cut plane")

    def onFail(self, *ignored):
        raise RuntimeError("no bone was found")


class PanelOfTestsLogic:
    def getParameterNode(self):
        node = slicer.mrmlScene.GetSingletonNode("PanelOfTests", "vtkMRMLScriptedModuleNode")
        if node is None:
            node = slicer.vtkMRMLScriptedModuleNode()
            node.SetSingletonTag("PanelOfTests")
            node = slicer.mrmlScene.AddNode(node)
        return node

    def length(self, name, twice=False):
        return len(name) * (2 if twice else 1)
'''

LOAD = """
slicer.app.moduleManager().factoryManager().loadModule(%s)
__execResult = 1
"""


class Verbs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not helper.URL:
            raise unittest.SkipTest("SLICER_URL is not set: there is no Slicer to test in")
        assert helper.install()["helper"] == "ready"
        cls.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(cls.folder.name) / "PanelOfTests.py"
        path.write_text(MODULE, "utf-8")
        loaded = helper.post(LOAD % json.dumps(str(path)))
        assert loaded == 1, loaded

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        helper.post("slicer.mrmlScene.Clear()\n__execResult = 1")

    def step(self, code, **values):
        """A template that must work; gives what it kept."""
        outcome = helper.run(code, flow={"values": values}, grants={})
        self.assertIsNone(outcome["error"])
        return outcome["flow"]

    def refused(self, code, **values):
        """A template that must fail; gives the sentence."""
        outcome = helper.run(code, flow={"values": values}, grants={})
        self.assertFalse(outcome["ok"])
        self.assertTrue(outcome["restored"]["complete"])
        return outcome["error"]["message"]

    def test_a_button_is_found_by_label_by_name_and_by_the_beginning_of_its_label(self):
        for name in ("Add cut plane", "addButton", "Add cut"):
            self.step("press(%r, module='PanelOfTests')" % name)
        nodes = helper.run("len(slicer.util.getNodesByClass('vtkMRMLMarkupsPlaneNode'))")["value"]
        self.assertEqual(nodes, 3)

    def test_what_a_person_could_not_click_is_an_error(self):
        self.assertIn("greyed out", self.refused("press('Update', module='PanelOfTests')"))
        self.assertIn("2 controls", self.refused("press('Twin', module='PanelOfTests')"))
        self.assertIn("Add cut plane", self.refused("press('Nothing', module='PanelOfTests')"))
        self.assertIn("no module", self.refused("press('Nothing', module='NotInstalled')"))

    def test_an_exception_of_a_handler_is_seen_and_the_scene_is_put_back(self):
        message = self.refused("press('Add cut', module='PanelOfTests')\npress('Fail', module='PanelOfTests', handler='onFail')")
        self.assertIn("no bone was found", message)

    def test_check_boxes_items_and_numbers(self):
        self.step("check('Right side leg', module='PanelOfTests', on=True)")
        self.step("choose_item('methodBox', module='PanelOfTests', text='Exact')")
        self.step("set_value('countBox', module='PanelOfTests', value=values['n'])", n=4)
        code = "p = slicer.modules.paneloftests.widgetRepresentation().self()\n(p.right.checked, p.method.currentText, p.count.value)"
        self.assertEqual(helper.run(code)["value"], [True, "Exact", 4])
        self.assertIn("Fast", self.refused("choose_item('methodBox', module='PanelOfTests', text='Slow')"))

    def test_what_is_missing_is_named(self):
        kept = self.step(
            "keep(modules=missing_modules(['PanelOfTests', 'Other']),"
            " controls=probe('PanelOfTests', ['Right side leg', 'addButton', 'Gone']))"
        )
        self.assertEqual((kept["modules"], kept["controls"]), (["Other"], ["Gone"]))

    def test_a_node_goes_to_its_selector_and_another_class_does_not(self):
        made = self.step(
            "keep(s=slicer.mrmlScene.AddNewNodeByClass('vtkMRMLSegmentationNode', 'Mandible'),"
            " m=slicer.mrmlScene.AddNewNodeByClass('vtkMRMLModelNode', 'Bone'))"
        )
        code = "choose_node('segmentationSelector', module='PanelOfTests', value=values['node'])"
        self.step(code, node=made["s"])
        self.assertIn("Bone is a vtkMRMLModelNode", self.refused(code, node=made["m"]))
        self.assertIn("no node", self.refused(code, node="vtkMRMLModelNode99"))

    def test_logic_methods_and_parameter_nodes(self):
        kept = self.step("keep(n=call('PanelOfTests', 'length', 'four', twice=True))")
        self.assertEqual(kept["n"], 8)
        self.assertIn("no method", self.refused("call('PanelOfTests', 'nothing')"))
        made = self.step("keep(s=slicer.mrmlScene.AddNewNodeByClass('vtkMRMLModelNode', 'M'))")
        kept = self.step(
            "param_set('PanelOfTests', 'planes', 3)\nparam_set('PanelOfTests', 'model', values['s'])\n"
            "keep(planes=param_get('PanelOfTests', 'planes'), model=param_get('PanelOfTests', 'model'))",
            s=made["s"],
        )
        self.assertEqual((kept["planes"], kept["model"]), ("3", made["s"]))

    def test_markups_are_placed_and_shown_where_they_belong(self):
        kept = self.step(
            "curve = markup_new('curve', 'Mandibular curve')\nmarkup_place(curve)\n"
            "mode = slicer.app.applicationLogic().GetInteractionNode().GetCurrentInteractionMode()\n"
            "markup_points(curve, values['points'])\nmarkup_views(curve, ['Red'])\nmarkup_handles(curve)\nmarkup_stop()\n"
            "after = slicer.app.applicationLogic().GetInteractionNode().GetCurrentInteractionMode()\n"
            "node = slicer.mrmlScene.GetNodeByID(curve)\n"
            "keep(n=node.GetNumberOfControlPoints(), modes=[mode, after],"
            " views=node.GetDisplayNode().GetViewNodeIDs(), place=slicer.vtkMRMLInteractionNode.Place)",
            points=[[0, 0, 0], [10, 0, 5]],
        )
        self.assertEqual((kept["n"], kept["views"]), (2, ["vtkMRMLSliceNodeRed"]))
        self.assertEqual(kept["modes"][0], kept["place"])
        self.assertNotEqual(kept["modes"][1], kept["place"])
        self.assertIn("no view Purple", self.refused("markup_views(markup_new('point', 'p'), ['Purple'])"))

    def test_views(self):
        kept = self.step(
            "layout('FourUpView')\nslice_show3d('Red')\nslice_fov_match('Red')\nslice_intersections()\n"
            "red = slicer.app.layoutManager().sliceWidget('Red').mrmlSliceNode()\n"
            "logic = slicer.app.applicationLogic()\n"
            "keep(shown=red.GetSliceVisible(), mode=red.GetSliceResolutionMode() == red.SliceResolutionMatch2DView,"
            " lines=logic.GetIntersectingSlicesEnabled(slicer.vtkMRMLApplicationLogic.IntersectingSlicesVisibility))"
        )
        self.assertTrue(kept["shown"] and kept["mode"] and kept["lines"], kept)

    def test_tables(self):
        kept = self.step(
            "t = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTableNode', 'T')\n"
            "c = t.AddColumn()\nc.SetName('Side')\nt.AddEmptyRow()\n"
            "table_set(t.GetID(), 0, 'Side', 'left')\nkeep(rows=table_get(t.GetID()))"
        )
        self.assertEqual(kept["rows"], [{"Side": "left"}])

    def test_values_are_data_and_the_console_is_left_alone(self):
        hostile = '"); raise SystemExit #\n\\u2028'
        kept = self.step("own = values['text']\nkeep(text=own)", text=hostile)
        self.assertEqual(kept["text"], hostile)
        self.assertEqual(helper.run("[name in globals() for name in ('own', 'keep', 'press', 'values')]")["value"], [False] * 4)


if __name__ == "__main__":
    unittest.main()
