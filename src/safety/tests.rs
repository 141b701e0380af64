//! What ring 1 promises, one kind at a time; `tests/safety_sets.rs` has the large sets.

use super::*;

fn kind(code: &str) -> VerdictKind {
    validate(code, &Policy::default()).verdict
}

fn capabilities(code: &str) -> Vec<Capability> {
    validate(code, &Policy::default()).findings.iter().map(|f| f.capability).collect()
}

#[track_caller]
fn each(expected: VerdictKind, cases: &[&str]) {
    for code in cases {
        let verdict = validate(code, &Policy::default());
        assert_eq!(verdict.verdict, expected, "{code}\n{:#?}", verdict.findings);
    }
}

#[test]
fn everyday_scripting_is_allowed() {
    each(
        VerdictKind::Allow,
        &[
            "n = slicer.util.getNode('MRHead')\nprint(n.GetName(), n.GetSpacing())",
            "import numpy as np\na = slicer.util.arrayFromVolume(slicer.util.getNode('V'))\nprint(np.mean(a[a > 0]))",
            "v = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLScalarVolumeNode')\nslicer.util.updateVolumeFromArray(v, 0)",
            "m = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLModelNode')\ns = vtk.vtkSphereSource()\ns.Update()\n\
             m.SetAndObservePolyData(s.GetOutput())\nm.CreateDefaultDisplayNodes()",
            "model = slicer.modules.models.logic().AddModel(vtk.vtkCubeSource().GetOutputPort())",
            "t = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTransformNode')\nslicer.mrmlScene.RemoveNode(t)",
            "slicer.app.layoutManager().threeDWidget(0).threeDView().resetFocalPoint()",
            "slicer.util.setSliceViewerLayers(background=slicer.util.getNode('V'), fit=True)",
            "for n in slicer.util.getNodesByClass('vtkMRMLModelNode'):\n    n.GetDisplayNode().SetOpacity(0.5)",
            "import vtkSegmentationCorePython as core\ncore.vtkSegmentationConverter()",
            "import math, json, re, datetime, collections\nprint(math.pi, json.dumps({}))",
            "class Base:\n    def __init__(self):\n        super().__init__()\n        self.name = type(self).__name__",
            "print('{0:.2f} {name}'.format(1.0, name='a'), f'{1:>{3}}')",
            "for block in iter(lambda: next([1]), 0):\n    print(block)",
            "while True:\n    if slicer.app.layoutManager():\n        break",
            "try:\n    x = 1\nexcept SystemExit:\n    pass",
        ],
    );
}

#[test]
fn what_touches_the_world_asks() {
    each(
        VerdictKind::Ask,
        &[
            "open('/data/a.txt').read()",
            "slicer.util.loadVolume('/data/a.nrrd')",
            "slicer.util.saveNode(getNode('V'), '/data/a.nrrd')",
            "slicer.util.pip_install('x')",
            "slicer.mrmlScene.Clear()",
            "slicer.mrmlScene.RemoveNode(slicer.util.getNode('V'))",
            "slicer.util.arrayFromVolume(slicer.util.getNode('V'))[:] = 0",
            "import SampleData\nSampleData.SampleDataLogic().downloadMRHead()",
            "import some_module_nobody_knows",
            "t = qt.QTimer()\nt.start(100)",
            "w = vtk.vtkSTLWriter()",
            "slicer.app.settings().setValue('Views/Colour', 1)",
        ],
    );
}

/// A dangerous name is found wherever it is named, whatever becomes of it.
#[test]
fn every_way_to_a_dangerous_name_is_seen() {
    each(
        VerdictKind::Block,
        &[
            "e = eval\ne('1')",
            "[eval][0]('1')",
            "(lambda f: f('1'))(eval)",
            "def f(x=eval): pass",
            "[open for open in [open]]",
            "a, (b, c) = 1, (2, eval)",
            "if 0: eval = print\neval('1')",
            "from slicer import util as u\nu.quit()",
            "x = [slicer.util]",
            "def f(m): m.quit()\nf(slicer.util)",
            "class K:\n    @property\n    def o(self): return slicer.util\nK().o.quit()",
            "match slicer:\n    case object(util=u): u.quit()",
            "match [slicer.util]:\n    case [u]: u.quit()",
            "getattr(slicer.util, 'qu' + 'it')()",
            "import os\ngetattr(os, name)('x')",
            "import json\njson.codecs.open('a')",
            "import random\nrandom._os.system('x')",
            "slicer.util.os.system('x')",
            "().__class__.__bases__",
            "'{0.__class__}'.format(1)",
            "fmt = '{0.' + '__class__}'\nfmt.format(1)",
            "slicer.util.getNode = None",
            "import numpy as json",
            "ｅｖａｌ('1')",
            "global_name: eval('1') = 1",
            "type X = eval('1')",
        ],
    );
}

#[test]
fn work_without_an_end_is_blocked() {
    each(
        VerdictKind::Block,
        &[
            "while True: pass",
            "while 1:\n    for i in range(3): break",
            "import itertools\nfor i in itertools.count(): print(i)",
            "def f(): return g()\ndef g(): return f()",
            "f = lambda x: x(x)",
            "x = 'a' * 10**12",
            "import numpy as np\nnp.zeros((10**4,) * 4)",
            "import time\ntime.sleep(10**6)",
        ],
    );
}

/// What Python would see and a reader would not.
#[test]
fn hidden_text_is_blocked() {
    for code in [
        &b"# -*- coding: utf-7 -*-\nn = 1"[..],
        b"#!x\n# vim: set fileencoding=latin-1 :\n",
        b"# a\rimport os",
        b"n = 1\0",
        b"\xff\xfe",
        b"if 0:\n  pass\n\x0c\nn = 1",
        "# \u{202e} a\nn = 1".as_bytes(),
    ] {
        let verdict = validate_bytes(code, &Policy::default());
        assert_eq!(verdict.verdict, VerdictKind::Block, "{code:?}");
        assert_eq!(verdict.findings[0].capability, Capability::Syntax);
    }
    assert_eq!(
        validate_bytes(b"\xef\xbb\xbf# coding: utf-8\r\nn = 1\r\n", &Policy::default()).verdict,
        VerdictKind::Allow
    );
}

#[test]
fn findings_say_where_and_what() {
    let verdict = validate("x = 1\ny = slicer.util.loadVolume('/data/a.nrrd')\nprint eval", &Policy::default());
    assert_eq!(verdict.verdict, VerdictKind::Block, "Python 2 is not Python");
    let verdict = validate("x = 1\ny = slicer.util.loadVolume('/data/a.nrrd')", &Policy::default());
    let finding = &verdict.findings[0];
    assert_eq!((finding.line, finding.column), (2, 5));
    assert_eq!(finding.text, "slicer.util.loadVolume");
    assert_eq!(finding.scope.as_deref(), Some("/data/a.nrrd"));
    assert_eq!(capabilities("x ="), [Capability::Syntax]);
}

#[test]
fn grants_lift_what_can_be_lifted() {
    let mut policy = Policy::default();
    policy.readable_paths.push("/data".into());
    let load = "slicer.util.loadVolume('/data/a.nrrd')";
    assert_eq!(validate(load, &policy).verdict, VerdictKind::Allow);
    assert_eq!(validate("open('/data/../etc/passwd')", &policy).verdict, VerdictKind::Block);
    policy.allow(Capability::ReadFile);
    assert_eq!(validate("open('/home/a/.ssh/id_rsa')", &policy).verdict, VerdictKind::Block);
    policy.allow(Capability::ClearScene);
    assert_eq!(validate("slicer.mrmlScene.Clear()", &policy).verdict, VerdictKind::Allow);
    policy.allow(Capability::Process);
    assert_eq!(validate("import subprocess", &policy).verdict, VerdictKind::Block);
}

#[test]
fn verdicts_read_as_the_command_line_promises() {
    let verdict = validate("slicer.mrmlScene.Clear()", &Policy::default());
    let json = serde_json::to_value(&verdict).expect("plain data");
    assert_eq!(json["verdict"], "ask");
    for key in ["capability", "line", "column", "text", "why", "instead"] {
        assert!(json["findings"][0].get(key).is_some(), "{key}");
    }
    assert_eq!("writefile".parse::<Capability>(), Ok(Capability::WriteFile));
    assert!("fly".parse::<Capability>().is_err());
    assert_eq!(kind(""), VerdictKind::Allow);
}

/// Many harmless findings before a harmful one must not push it out of the verdict, nor out of the list.
#[test]
fn a_harmful_line_is_found_behind_many_harmless_ones() {
    let noise = "    slicer.util.clickAndDrag(None)\n".repeat(400);
    let code = format!("def never():\n{noise}\nimport subprocess\nsubprocess.run(['ls'])\n");
    let verdict = validate(&code, &Policy::default());
    assert_eq!(verdict.verdict, VerdictKind::Block);
    assert!(verdict.findings.iter().any(|finding| finding.capability == Capability::Process));
}

/// What is not judged in time is refused; it is never let through half read.
#[test]
fn long_code_is_judged_whole_or_refused() {
    let line = "n = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLModelNode')\n";
    let harmful = line.repeat(900_000 / line.len()) + "import subprocess\nsubprocess.run(['ls'])\n";
    assert_eq!(validate(&harmful, &Policy::default()).verdict, VerdictKind::Block);
    let harmless = validate(&line.repeat(900_000 / line.len()), &Policy::default());
    assert!(
        harmless.verdict == VerdictKind::Allow || harmless.findings[0].why.contains("too long"),
        "{:?}",
        harmless.findings
    );
    let tree = crate::python::parse("x = 1").unwrap();
    assert!(walk::walk("x = 1", &tree, Some(std::time::Instant::now())).is_none(), "the time is over");
    assert_eq!(validate(&"x".repeat(3 << 20), &Policy::default()).verdict, VerdictKind::Block);
}

/// Every capability can be met, and has its own words and its default.
#[test]
fn every_capability_is_reached_and_has_its_default() {
    use Capability as C;
    use VerdictKind::{Ask, Block};
    let cases = [
        (C::ReadFile, "open('/data/a.txt')", Ask),
        (C::WriteFile, "open('/data/a.txt', 'w')", Ask),
        (C::DeleteFile, "import shutil\nshutil.rmtree('/data')", Block),
        (C::Network, "slicer.util.downloadFile('https://x.invalid/a', '/data/a')", Ask),
        (C::SampleData, "import SampleData\nSampleData.downloadSample('MRHead')", Ask),
        (C::Process, "import subprocess", Block),
        (C::Install, "slicer.util.pip_install('x')", Ask),
        (C::Settings, "slicer.app.settings().setValue('a', 1)", Ask),
        (C::Secrets, "import os\nos.environ", Block),
        (C::Quit, "x.quit()", Ask),
        (C::ClearScene, "slicer.mrmlScene.Clear()", Ask),
        (C::DeleteNodes, "slicer.mrmlScene.RemoveNode(slicer.util.getNode('V'))", Ask),
        (C::OverwriteData, "slicer.util.arrayFromVolume(slicer.util.getNode('V'))[:] = 0", Ask),
        (C::DynamicCode, "eval('1')", Block),
        (C::Reflection, "().__class__", Block),
        (C::UnknownModule, "import some_module_nobody_knows", Ask),
        (C::Timer, "qt.QTimer().start(100)", Ask),
        (C::Gui, "slicer.util.clickAndDrag(None)", VerdictKind::Allow),
        (C::Hang, "import time\ntime.sleep(60)", Ask),
        (C::Memory, "x = 'a' * 10**12", Block),
        (C::Syntax, "x = (", Block),
    ];
    // What a model costs is not in the code.
    assert_eq!(cases.len() + 1, C::ALL.len(), "a capability has no case");
    assert!(cases.iter().all(|(capability, ..)| *capability != C::Spend));
    for (capability, code, expected) in cases {
        let verdict = validate(code, &Policy::default());
        let finding = verdict.findings.iter().find(|f| f.capability == capability);
        let finding = finding.unwrap_or_else(|| panic!("{code} does not need {capability}: {:?}", verdict.findings));
        assert_eq!(finding.verdict, expected, "{code}");
        assert!(finding.why.ends_with('.') && finding.instead.ends_with('.'), "{code}: {finding:?}");
    }
}

/// Lines and columns are those that an editor shows.
#[test]
fn places_are_right_whatever_stands_before() {
    let place = |code: &str| {
        let verdict = validate(code, &Policy::default());
        let finding = verdict.findings.iter().find(|f| f.capability == Capability::DynamicCode).expect("eval is found");
        (finding.line, finding.column)
    };
    assert_eq!(place("if x:\n\teval('1')"), (2, 2));
    assert_eq!(place("x = 1\r\ny = eval('1')"), (2, 5));
    assert_eq!(place("x = '\u{1d482}é'; eval('1')"), (1, 11));
    assert_eq!(place("x = \\\n  eval('1')"), (2, 3));
    assert_eq!(place("x = '''a\nb'''; eval('1')"), (2, 7));
    assert_eq!(place("\x0cx = eval('1')"), (1, 6));
}

/// What Python refuses and the grammar for editors accepts.
#[test]
fn what_python_refuses_is_not_allowed() {
    each(
        VerdictKind::Block,
        &[
            "if x:\ny = 1",
            "def f():\n",
            "x = 1\n  y = 2",
            "if x:\n    a = 1\n  b = 2",
            "return 1",
            "break",
            "def f():\n    for x in y:\n        pass\n    break",
            "yield 1",
            "def f(): await x",
            "f() = 1",
            "1 = x",
            "for f() in x: pass",
            "x = 012",
            "x = 1__0",
            "f(a=1, 2)",
            "def f(a=1, b): pass",
            "def f(a, a): pass",
            "a = 1 b = 2",
            "a =\n1",
            "a.\nb()",
            "x = 'a\nb'",
            "try:\n    pass",
            "nonlocal x",
        ],
    );
}

/// The newest forms of the language are read.
#[test]
fn new_syntax_is_understood() {
    each(
        VerdictKind::Allow,
        &[
            "def f[T: int, *Ts, **P](x: T) -> T:\n    return x",
            "class C[T]:\n    pass",
            "type P[T] = list[T]",
            "x = f'{f'{1 + 1}'!r:>{10}} {'a' 'b'} {1:{2}}'",
            "try:\n    pass\nexcept* (ValueError, TypeError) as e:\n    print(e.exceptions)",
            "match x:\n    case {'a': [1, *_], **rest} if rest:\n        print(rest)\n    case str() | int(real=1):\n        pass",
            "with (open_a() as a, open_b() as b):\n    print(a, b)",
            "print(x := 1, [y := 2, y])",
            "def f(a, /, b, *, c): pass\nf(1, 2, c=3)",
            "match = 1\ntype = 2\nprint(match, type)",
            "async def f():\n    async with a() as b, c():\n        return [x async for x in b]",
            "x = (1\n    + 2\n)\ny = x \\\n    + 1",
        ],
    );
}
