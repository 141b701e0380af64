//! The calls that are made to both servers, as data.

use serde_json::{Value, json};

/// Which Slicer is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slicer {
    /// One practice Slicer for all calls and both servers.
    Shared,
    /// One whose "Slicer API exec" box is not ticked.
    ExecOff,
    /// Nothing listens there.
    Absent,
    /// A practice Slicer of this call's own, because the call may end it.
    Own,
}

/// What runs before the call.
#[derive(Debug, Clone, Copy)]
pub enum Before {
    Nothing,
    /// Code through the same server.
    Same(&'static str),
    /// Code through the other server.
    Other(&'static str),
}

/// One call.
#[derive(Debug, Clone)]
pub struct Case {
    /// What is tried; unique.
    pub name: &'static str,
    pub tool: &'static str,
    pub arguments: Value,
    pub slicer: Slicer,
    pub before: Before,
}

const LIST: &str = "list_nodes";
const RUN: &str = "execute_python_code";
const SHOOT: &str = "capture_screenshot";

fn case(name: &'static str, tool: &'static str, arguments: Value) -> Case {
    Case { name, tool, arguments, slicer: Slicer::Shared, before: Before::Nothing }
}

fn run(name: &'static str, code: impl Into<String>) -> Case {
    case(name, RUN, json!({"code": code.into()}))
}

impl Case {
    fn on(mut self, slicer: Slicer) -> Self {
        self.slicer = slicer;
        self
    }

    fn after(mut self, before: Before) -> Self {
        self.before = before;
        self
    }
}

/// What the shared practice Slicer holds before the first call: a volume, nodes with difficult names, a segmentation.
pub const SCENE: &str = r#"
import SampleData
SampleData.downloadSample("MRHead")
for name in ["A & B", "50% + x", 'quote "d" \'s\'', "頭部 🦴", "größe", "a/b?c#d", " edges "]:
    slicer.mrmlScene.AddNewNodeByClass("vtkMRMLModelNode", name)
slicer.mrmlScene.AddNewNodeByClass("vtkMRMLMarkupsFiducialNode", "F").AddControlPoint(1, 2, 3)
"#;

/// All calls.
pub fn all() -> Vec<Case> {
    [listing(), wrong_calls(), results(), dictionaries(), code_forms(), failures(), names(), no_slicer(), pictures()]
        .concat()
}

/// Calls that the older releases are tried with too: what their contracts are made of.
pub fn of_the_contract() -> Vec<&'static str> {
    vec![
        "all names",
        "ids of a class",
        "properties by id",
        "no match, properties",
        "wrong filter_type",
        "no result",
        "a number",
        "a nested dict",
        "non-ASCII text",
        "success false with message",
        "an exception with text",
        "syntax error",
        "a name from the other server",
        "exec off",
        "absent, list_nodes",
        "application",
        "slice red",
        "slice orientation sagittal",
        "slice offset 10 mm",
        "3d",
        "3d from anterior",
        "unknown view_type",
    ]
}

fn listing() -> Vec<Case> {
    let by_name = |name: &'static str, wanted: &str| case(name, LIST, json!({"filter_type": "ids", "name": wanted}));
    vec![
        case("no arguments", LIST, json!({})),
        case("all names", LIST, json!({"filter_type": "names"})),
        case("all ids", LIST, json!({"filter_type": "ids"})),
        case("all properties", LIST, json!({"filter_type": "properties"})),
        case("names of a class", LIST, json!({"class_name": "vtkMRMLScalarVolumeNode"})),
        case("names of a base class", LIST, json!({"class_name": "vtkMRMLDisplayableNode"})),
        case("ids of a class", LIST, json!({"filter_type": "ids", "class_name": "vtkMRMLModelNode"})),
        case("properties of a class", LIST, json!({"filter_type": "properties", "class_name": "vtkMRMLModelNode"})),
        case("properties by id", LIST, json!({"filter_type": "properties", "id": "vtkMRMLSliceNodeRed"})),
        case("names by id", LIST, json!({"id": "vtkMRMLSliceNodeRed"})),
        case(
            "class and name",
            LIST,
            json!({"filter_type": "ids", "class_name": "vtkMRMLScalarVolumeNode", "name": "MRHead"}),
        ),
        case(
            "class and name that do not go together",
            LIST,
            json!({"class_name": "vtkMRMLModelNode", "name": "MRHead"}),
        ),
        case("id beats name", LIST, json!({"id": "vtkMRMLSliceNodeRed", "name": "Green"})),
        by_name("name with &", "A & B"),
        by_name("name with % and +", "50% + x"),
        by_name("name with quotes", "quote \"d\" 's'"),
        by_name("name in Japanese with emoji", "頭部 🦴"),
        by_name("name with umlaut", "größe"),
        by_name("name with slash, question mark, hash", "a/b?c#d"),
        by_name("name with spaces at the ends", " edges "),
        by_name("name with a line break", "a\nb"),
        case("no match, names", LIST, json!({"name": "nobody"})),
        case("no match, ids", LIST, json!({"filter_type": "ids", "name": "nobody"})),
        case("no match, properties", LIST, json!({"filter_type": "properties", "name": "nobody"})),
        case("unknown class", LIST, json!({"class_name": "vtkMRMLNoSuchNode"})),
        case("unknown id", LIST, json!({"filter_type": "ids", "id": "vtkMRMLModelNode999"})),
        case("empty texts", LIST, json!({"class_name": "", "name": "", "id": ""})),
        case("wrong filter_type", LIST, json!({"filter_type": "everything"})),
        case("filter_type in capitals", LIST, json!({"filter_type": "Names"})),
        case("empty filter_type", LIST, json!({"filter_type": ""})),
    ]
}

fn wrong_calls() -> Vec<Case> {
    vec![
        case("unknown tool", "segment_everything", json!({})),
        case("missing argument", RUN, json!({})),
        case("code that is a number", RUN, json!({"code": 5})),
        case("code that is null", RUN, json!({"code": null})),
        case("filter_type that is a number", LIST, json!({"filter_type": 5})),
        case("name that is null", LIST, json!({"filter_type": "ids", "name": null})),
        case("an argument that there is not", LIST, json!({"class_name": "vtkMRMLScalarVolumeNode", "colour": "red"})),
        case("image_size that is text", SHOOT, json!({"image_size": "large"})),
        case("image_size in digits", SHOOT, json!({"view_type": "slice", "view_name": "red", "image_size": "300"})),
    ]
}

fn results() -> Vec<Case> {
    vec![
        run("no result", "quiet = 1"),
        run("None", "__execResult = None"),
        run("true", "__execResult = True"),
        run("false", "__execResult = False"),
        run("a number", "__execResult = 40 + 2"),
        run("a float", "__execResult = 0.1 + 0.2"),
        run("a large integer", "__execResult = 2 ** 80"),
        run("an empty text", "__execResult = ''"),
        run("a text with line breaks and quotes", "__execResult = 'a\\n\"b\"\\t\\\\'"),
        run("a list", "__execResult = [1, 'two', [3.5, None]]"),
        run("an empty list", "__execResult = []"),
        run("a tuple", "__execResult = (1, 2)"),
        run("a nested dict", "__execResult = {'a': {'b': [1, {'c': True}]}, 2: 'two'}"),
        run("non-ASCII text", "__execResult = 'größe 頭部 🦴'"),
        run("half a surrogate pair", "__execResult = 'CT_\\udcf6'"),
        run("NaN", "__execResult = float('nan')"),
        run("Infinity in a list", "__execResult = [1, float('inf'), float('-inf')]"),
        run("numpy.float64", "__execResult = numpy.float64(1.5)"),
        run("numpy.float32", "__execResult = numpy.float32(1.5)"),
        run("numpy.int64", "__execResult = numpy.int64(7)"),
        run("an ndarray", "__execResult = numpy.arange(3)"),
        run("a set", "__execResult = {1}"),
        run("bytes", "__execResult = b'abc'"),
        run("a node", "__execResult = slicer.mrmlScene.GetNodeByID('vtkMRMLSliceNodeRed')"),
        run("a list that holds itself", "__execResult = []; __execResult.append(__execResult)"),
        run("a megabyte of result", "__execResult = 'x' * 1000000"),
    ]
}

fn dictionaries() -> Vec<Case> {
    vec![
        run("success true", "__execResult = {'success': True, 'message': 'fine', 'n': 3}"),
        run("success false with message", "__execResult = {'success': False, 'message': 'too small'}"),
        run("success false without message", "__execResult = {'success': False}"),
        run("success false with more", "__execResult = {'success': False, 'message': 'too small', 'volume': 3.5}"),
        run("success 0", "__execResult = {'success': 0, 'message': 'zero'}"),
        run("success None", "__execResult = {'success': None, 'message': 'none'}"),
        run("success empty text", "__execResult = {'success': '', 'message': 'empty'}"),
        run("success false, message a dict", "__execResult = {'success': False, 'message': {'code': 7}}"),
        run("message without success", "__execResult = {'message': 'only'}"),
        run("the key __execResult", "__execResult = {'__execResult': 5}"),
        run("the key __execResult among others", "__execResult = {'__execResult': 5, 'other': 6}"),
        run("an empty dict", "__execResult = {}"),
    ]
}

fn code_forms() -> Vec<Case> {
    let many = "v = 1\n".repeat(262_144) + "__execResult = v";
    let long = format!("text = '{}'\n__execResult = len(text)", "x".repeat(1 << 20));
    vec![
        run("empty code", ""),
        run("only spaces", "   "),
        run("only a line break", "\n"),
        run("only comments", "# nothing\n# at all"),
        run("CRLF", "v = 1\r\nif v:\r\n    v = 2\r\n__execResult = v\r\n"),
        run("CR", "v = 1\rv = 3\r__execResult = v"),
        run("a BOM", "\u{feff}__execResult = 'bom'"),
        run("tabs", "if True:\n\tv = 1\n\tif v:\n\t\tv = 4\n__execResult = v"),
        run("tabs and spaces mixed", "if True:\n\tv = 1\n        v = 2\n__execResult = v"),
        run("a NUL byte", "v = 'a\0b'\n__execResult = v"),
        run("an encoding cookie utf-8", "# -*- coding: utf-8 -*-\n__execResult = 'größe'"),
        run("an encoding cookie latin-1", "# -*- coding: latin-1 -*-\n__execResult = 'größe'"),
        run("a future import", "from __future__ import annotations\n__execResult = 1"),
        run("indented code", "    __execResult = 1"),
        run("a name in Greek", "µ = 3\n__execResult = µ"),
        run("non-ASCII comment", "# 頭部 🦴\n__execResult = 1"),
        run("a megabyte in one text", long),
        run("a megabyte in lines", many),
        run("long output", "print('x' * 2000000)\n__execResult = 'printed'"),
        run("code that pumps events", "slicer.app.processEvents()\n__execResult = 'pumped'"),
        run(
            "a class and a function",
            "class A:\n    def f(self):\n        return 5\ndef g():\n    return A().f()\n__execResult = g()",
        ),
        run("a comprehension over a global", "base = 3\n__execResult = [base * i for i in range(3)]"),
        run("__name__", "__execResult = __name__"),
        run(
            "modules at hand",
            "__execResult = sorted(n for n in ('slicer', 'vtk', 'qt', 'json', 'os', 'numpy') if n in globals())",
        ),
        run(
            "the lambda way",
            "__execResult = (lambda: slicer.mrmlScene.GetNumberOfNodesByClass('vtkMRMLSliceNode'))()",
        ),
    ]
}

fn failures() -> Vec<Case> {
    vec![
        run("syntax error", "def (:"),
        run("syntax error in line 3", "a = 1\nb = 2\nc = = 3"),
        run("an exception with text", "raise ValueError('bad thing')"),
        run("an exception with non-ASCII text", "raise ValueError('größe 🦴')"),
        run("an exception without text", "raise RuntimeError"),
        run("KeyError", "{}['k']"),
        run("an undefined name", "nope"),
        run("a failed assertion", "assert 1 == 2"),
        run("an exception in a function", "def f():\n    return 1 / 0\nf()"),
        run(
            "an exception from another",
            "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise TypeError('outer') from e",
        ),
        run("a missing module", "import no_such_module"),
        run("an exception after the result was set", "__execResult = 5\nraise ValueError('late')"),
        run("too deep", "def f():\n    f()\nf()"),
        run("the result deleted", "del __execResult"),
        run("sys.exit", "import sys\nsys.exit(3)").on(Slicer::Own),
        run("KeyboardInterrupt", "raise KeyboardInterrupt").on(Slicer::Own),
        run("Slicer dies in the call", "import os\nos._exit(1)").on(Slicer::Own),
    ]
}

fn names() -> Vec<Case> {
    vec![
        run("a name stays", "__execResult = kept_here").after(Before::Same("kept_here = 41")),
        run("an import stays", "__execResult = kept_math.floor(2.5)").after(Before::Same("import math as kept_math")),
        run("a name from the other server", "__execResult = kept_there")
            .after(Before::Other("kept_there = {'by': 'the other'}")),
        run("a function from the other server", "__execResult = twice(21)")
            .after(Before::Other("def twice(n):\n    return factor * n\nfactor = 2")),
        run("the last result does not stay", "quiet = 2").after(Before::Same("__execResult = 'old'")),
        run("a name that was deleted", "gone").after(Before::Same("gone = 1\ndel gone")),
        run("a name set before an exception", "__execResult = half_done")
            .after(Before::Same("half_done = 7\nraise ValueError('stop')")),
    ]
}

fn no_slicer() -> Vec<Case> {
    vec![
        run("exec off", "__execResult = 1").on(Slicer::ExecOff),
        case("exec off, list_nodes", LIST, json!({"filter_type": "ids", "name": "Red"})).on(Slicer::ExecOff),
        case("exec off, slice", SHOOT, json!({"view_type": "slice", "view_name": "red"})).on(Slicer::ExecOff),
        case("exec off, application", SHOOT, json!({})).on(Slicer::ExecOff),
        run("absent", "__execResult = 1").on(Slicer::Absent),
        case("absent, list_nodes", LIST, json!({})).on(Slicer::Absent),
        case("absent, wrong filter_type", LIST, json!({"filter_type": "everything"})).on(Slicer::Absent),
        case("absent, screenshot", SHOOT, json!({})).on(Slicer::Absent),
        case("absent, slice", SHOOT, json!({"view_type": "slice", "view_name": "red"})).on(Slicer::Absent),
    ]
}

fn pictures() -> Vec<Case> {
    let slice = |name: &'static str, more: Value| {
        let mut arguments = json!({"view_type": "slice"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        case(name, SHOOT, arguments)
    };
    vec![
        case("screenshot without arguments", SHOOT, json!({})),
        case("application", SHOOT, json!({"view_type": "application"})),
        case("application with image_size", SHOOT, json!({"view_type": "application", "image_size": 400})),
        slice("slice red", json!({"view_name": "red"})),
        slice("slice Red", json!({"view_name": "Red"})),
        slice("slice YELLOW", json!({"view_name": "YELLOW"})),
        slice("slice with a space after the name", json!({"view_name": "red "})),
        slice("slice without name", json!({})),
        slice("slice that there is not", json!({"view_name": "blue"})),
        slice("slice name with a quote", json!({"view_name": "re'd"})),
        slice("slice at most 200", json!({"view_name": "red", "image_size": 200})),
        slice("slice size 0", json!({"view_name": "red", "image_size": 0})),
        slice("slice larger than it is", json!({"view_name": "red", "image_size": 1000})),
        slice("slice orientation sagittal", json!({"view_name": "red", "slice_orientation": "sagittal"})),
        slice("slice offset 10 mm", json!({"view_name": "red", "slice_offset": 10})),
        case("3d", SHOOT, json!({"view_type": "3d"})),
        case("3d with image_size", SHOOT, json!({"view_type": "3d", "image_size": 200})),
        case("3d from anterior", SHOOT, json!({"view_type": "3d", "camera_axis": "A"})),
        case("3d from left, small letter", SHOOT, json!({"view_type": "3d", "camera_axis": "l"})),
        case("3d from nowhere", SHOOT, json!({"view_type": "3d", "camera_axis": "Q"})),
        case("3d from an empty side", SHOOT, json!({"view_type": "3d", "camera_axis": ""})),
        case("unknown view_type", SHOOT, json!({"view_type": "table"})),
        case("view_type in capitals", SHOOT, json!({"view_type": "3D"})),
    ]
}
