//! `capture_screenshot` on the practice Slicer: the pictures show what was asked for, and the person's views are afterwards
//! exactly as before, whatever was asked and whatever went wrong.

#[path = "support/mcp_stdio.rs"]
mod mcp_stdio;
#[path = "support/practice.rs"]
mod practice;

use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use image::RgbImage;
use mcp_stdio::Server;
use serde_json::{Value, json};
use slicer_ai_agent::slicer::practice::{PracticeOptions, PracticeProcess};

const SCENE: &str = include_str!("support/screenshot_scene.py");
const DIGEST: &str = include_str!("support/screenshot_digest.py");
const BOUND: Duration = Duration::from_secs(120);

/// A practice Slicer and a bridge to it.
struct Stage {
    bridge: Server,
    slicer: PracticeProcess,
}

/// One picture with what was said of it.
struct Shot {
    image: RgbImage,
    about: Value,
    bytes: Vec<u8>,
}

impl Stage {
    fn new(options: &PracticeOptions) -> Self {
        let slicer = practice::start_with(options);
        let mut command = Command::new(env!("CARGO_BIN_EXE_slicer-ai-agent"));
        let bridge = Server::start(command.args(["bridge", "--slicer-url", &slicer.url]).env_remove("SLICER_URL"));
        Self { bridge, slicer }
    }

    fn with_scene() -> Self {
        let mut stage = Self::new(&PracticeOptions::default());
        stage.run(SCENE);
        // The first drawing of a view settles what is derived from its size.
        stage.shoot(json!({}));
        stage
    }

    fn run(&mut self, code: &str) -> Value {
        let reply = self.bridge.call("execute_python_code", &json!({"code": code}), BOUND).unwrap();
        let reply: Value = serde_json::from_str(reply["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(reply["success"], true, "{reply}");
        reply["message"].clone()
    }

    /// The picture, or the text of the error.
    fn try_shoot(&mut self, arguments: Value) -> Result<Shot, String> {
        let reply = self.bridge.call("capture_screenshot", &arguments, BOUND).unwrap();
        let result = &reply["result"];
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        if result["isError"] == true {
            return Err(text);
        }
        let part = &result["content"][1];
        let bytes = BASE64.decode(part["data"].as_str().unwrap()).unwrap();
        let image = image::load_from_memory(&bytes).unwrap().into_rgb8();
        let about = result["structuredContent"].clone();
        assert_eq!(about["mime_type"], part["mimeType"]);
        assert_eq!((about["width"].as_u64(), about["height"].as_u64()), size(&image));
        Ok(Shot { image, about, bytes })
    }

    fn shoot(&mut self, arguments: Value) -> Shot {
        let asked = arguments.to_string();
        self.try_shoot(arguments).unwrap_or_else(|text| panic!("{asked}: {text}"))
    }

    fn digest(&mut self) -> Vec<String> {
        let lines = self.run(DIGEST);
        lines.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
    }
}

fn size(image: &RgbImage) -> (Option<u64>, Option<u64>) {
    (Some(image.width().into()), Some(image.height().into()))
}

fn assert_unchanged(before: &[String], after: &[String], what: &str) {
    let changed: Vec<_> = before.iter().zip(after).filter(|(one, other)| one != other).take(5).collect();
    assert!(changed.is_empty() && before.len() == after.len(), "{what} changed the person's views: {changed:#?}");
}

/// How many pixels are of this colour; `like` says which.
fn count(image: &RgbImage, like: impl Fn([u8; 3]) -> bool) -> usize {
    image.pixels().filter(|pixel| like(pixel.0)).count()
}

fn is_green([red, green, blue]: [u8; 3]) -> bool {
    u16::from(green) > u16::from(red) + 60 && u16::from(green) > u16::from(blue) + 60
}

fn is_magenta([red, green, blue]: [u8; 3]) -> bool {
    u16::from(red) > u16::from(green) + 80 && u16::from(blue) > u16::from(green) + 80
}

/// PNG, so that pixels can be compared exactly.
fn slice(view: &str, more: Value) -> Value {
    merged(json!({"view_type": "slice", "view_name": view, "format": "png"}), more)
}

fn merged(mut base: Value, more: Value) -> Value {
    base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    base
}

/// A sequence of numbers that is the same in each run, so that a failure can be seen again.
struct Dice(u64);

impl Dice {
    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        choices[(self.0 >> 33) as usize % choices.len()].clone()
    }
}

#[test]
fn whatever_is_asked_the_views_are_as_before() {
    let mut stage = Stage::with_scene();
    let before = stage.digest();
    assert!(before.len() > 500, "the digest is too small to tell anything: {}", before.len());
    let mut dice = Dice(7);
    for _ in 0..40 {
        let arguments = json!({
            "view_type": dice.one_of(&["slice", "slice", "slice", "3d", "application"]),
            "view_name": dice.one_of(&[json!("red"), json!("Green"), json!("yellow "), json!(""), Value::Null]),
            "slice_offset": dice.one_of(&[Value::Null, json!(0), json!(-31.7), json!(12.345_678_901), json!(1e6)]),
            "slice_orientation":
                dice.one_of(&[Value::Null, json!("axial"), json!("Sagittal"), json!("CORONAL")]),
            "camera_axis": dice.one_of(&[Value::Null, json!("L"), json!("a"), json!("Superior"), json!("I")]),
            "image_size": dice.one_of(&[Value::Null, json!(100), json!(5000)]),
            "format": dice.one_of(&[Value::Null, json!("png"), json!("jpeg")]),
        });
        let what = arguments.to_string();
        let named = arguments["view_type"] == "3d" && arguments["view_name"].as_str().is_some_and(|n| !n.is_empty());
        match stage.try_shoot(arguments) {
            Ok(shot) => {
                assert!(!named, "{what}: there is no 3D view of that name");
                assert!(shot.image.width().max(shot.image.height()) <= 1920, "{what}");
            }
            Err(text) => assert!(named, "{what}: {text}"),
        }
        assert_unchanged(&before, &stage.digest(), &what);
    }
}

#[test]
fn an_error_in_the_middle_leaves_the_views_as_before() {
    let mut stage = Stage::with_scene();
    let before = stage.digest();
    for failing in ["vtkWindowToImageFilter", "vtkPNGWriter"] {
        stage.run(&format!(
            "vtk.kept = vtk.{failing}\ndef fails():\n    raise KeyboardInterrupt('stop')\nvtk.{failing} = fails"
        ));
        for arguments in [
            slice("Green", json!({"slice_offset": 20, "slice_orientation": "axial"})),
            json!({"view_type": "3d", "camera_axis": "P"}),
        ] {
            let text = stage.try_shoot(arguments).err().unwrap();
            assert!(text.contains("stop"), "{text}");
        }
        stage.run(&format!("vtk.{failing} = vtk.kept\ndel vtk.kept, fails"));
        assert_unchanged(&before, &stage.digest(), failing);
    }
}

#[test]
fn a_slice_is_shown_as_if_the_person_had_moved_it() {
    let mut stage = Stage::with_scene();
    let plain = stage.shoot(slice("red", json!({})));
    for (arguments, as_by_hand) in [
        (json!({"slice_offset": 21.5}), "node.SetSliceOffset(21.5)"),
        (json!({"slice_orientation": "sagittal"}), "node.SetOrientation('Sagittal'); logic.FitSliceToBackground()"),
        (json!({"slice_orientation": "Coronal"}), "node.SetOrientation('Coronal'); logic.FitSliceToBackground()"),
        (
            json!({"slice_orientation": "sagittal", "slice_offset": 8}),
            "node.SetOrientation('Sagittal'); logic.FitSliceToBackground(); node.SetSliceOffset(8)",
        ),
    ] {
        let asked = stage.shoot(slice("red", arguments.clone()));
        assert!(asked.image != plain.image, "{arguments} shows the same");
        stage.run(&format!(
            "widget = slicer.app.layoutManager().sliceWidget('Red')\nnode, logic = widget.mrmlSliceNode(), \
             widget.sliceLogic()\nkept = slicer.vtkMRMLSliceNode()\nkept.Copy(node)\n{as_by_hand}"
        ));
        let by_hand = stage.shoot(slice("red", json!({})));
        stage.run("node.Copy(kept)\nnode.UpdateMatrices()");
        assert!(asked.image == by_hand.image, "{arguments} is not what {as_by_hand} shows");
    }
    let same = stage.shoot(slice("red", json!({"slice_orientation": "axial"})));
    assert!(same.image == plain.image, "an orientation that it has already changes nothing, not even the zoom");
}

#[test]
fn the_three_d_view_is_shown_from_each_side() {
    let mut stage = Stage::with_scene();
    let mut seen: Vec<RgbImage> = Vec::new();
    for (letter, direction, up) in [
        ("L", "Left", "0, 0, 1"),
        ("R", "Right", "0, 0, 1"),
        ("A", "Anterior", "0, 0, 1"),
        ("P", "Posterior", "0, 0, 1"),
        // Slicer's buttons for a side have anterior up here; `RotateTo` has posterior.
        ("S", "Superior", "0, 1, 0"),
        ("I", "Inferior", "0, 1, 0"),
    ] {
        let asked = stage.shoot(json!({"view_type": "3d", "camera_axis": letter, "format": "png"}));
        assert!(!seen.contains(&asked.image), "{letter} shows what another side shows");
        stage.run(&format!(
            "camera = slicer.util.getNodesByClass('vtkMRMLCameraNode')[0]\nkept = vtk.vtkCamera()\n\
             kept.DeepCopy(camera.GetCamera())\ncamera.RotateTo(camera.{direction})\ncamera.SetViewUp({up})\n\
             slicer.app.layoutManager().threeDWidget(0).threeDView().renderer().ResetCameraClippingRange()"
        ));
        let by_hand = stage.shoot(json!({"view_type": "3d", "format": "png"}));
        stage.run("camera.GetCamera().DeepCopy(kept)");
        assert!(differing(&asked.image, &by_hand.image) < 0.01, "{letter} is not what turning to {direction} shows");
        seen.push(asked.image);
    }
}

/// The share of pixels that differ visibly.
fn differing(one: &RgbImage, other: &RgbImage) -> f64 {
    assert_eq!(one.dimensions(), other.dimensions());
    let differ = |left: &[u8; 3], right: &[u8; 3]| left.iter().zip(right).any(|(a, b)| a.abs_diff(*b) > 32);
    let count = one.pixels().zip(other.pixels()).filter(|(left, right)| differ(&left.0, &right.0)).count();
    count as f64 / f64::from(one.width() * one.height())
}

#[test]
fn what_lies_over_the_volume_is_in_the_picture() {
    let mut stage = Stage::with_scene();
    let with = stage.shoot(slice("red", json!({"slice_offset": -2}))).image;
    let three_d = stage.shoot(json!({"view_type": "3d", "format": "png"})).image;
    stage.run(
        "segmentation.SetDisplayVisibility(False)\nmarks.SetDisplayVisibility(False)\ncrosshair.SetCrosshairMode(0)",
    );
    let without = stage.shoot(slice("red", json!({"slice_offset": -2}))).image;
    let three_d_without = stage.shoot(json!({"view_type": "3d", "format": "png"})).image;
    assert!(count(&with, is_green) > 2000, "the segment covers {} pixels", count(&with, is_green));
    assert!(count(&with, is_magenta) > 10, "the mark covers {} pixels", count(&with, is_magenta));
    assert_eq!((count(&without, is_green), count(&without, is_magenta)), (0, 0));
    // One arm of the orientation marker is green too.
    let covered = count(&three_d, is_green) - count(&three_d_without, is_green);
    assert!(covered > 500, "the segment covers {covered} pixels in 3D");
}

#[test]
fn every_view_keeps_to_its_bounds_and_format() {
    let mut stage = Stage::with_scene();
    stage.run("slicer.util.mainWindow().resize(2400, 1800)");
    let large = stage.shoot(json!({}));
    assert_eq!(large.image.dimensions(), (1920, 1440), "a window above the bound keeps its shape");
    assert!(large.bytes.starts_with(&[0xFF, 0xD8]), "JPEG unless asked otherwise");
    for view in [json!({}), json!({"view_type": "slice"}), json!({"view_type": "3d"})] {
        let own = stage.shoot(view.clone()).image.dimensions();
        for (asked, longest) in [(100, 100), (5000, own.0.max(own.1)), (0, own.0.max(own.1))] {
            let shot = stage.shoot(merged(view.clone(), json!({"image_size": asked, "format": "png"})));
            let (width, height) = shot.image.dimensions();
            assert_eq!(width.max(height), longest, "{view} with image_size {asked}");
            let shape = f64::from(width) / f64::from(height) - f64::from(own.0) / f64::from(own.1);
            assert!(shape.abs() < 0.05, "{view} lost its shape");
            assert!(shot.bytes.starts_with(b"\x89PNG"), "{view}");
        }
    }
}

#[test]
fn views_are_found_by_name_and_said_to_be_hidden() {
    let mut stage = Stage::with_scene();
    let red = stage.shoot(slice("Red", json!({})));
    for name in ["red", "RED", " red ", "vtkMRMLSliceNodeRed"] {
        let shot = stage.shoot(slice(name, json!({})));
        assert!(shot.image == red.image, "{name}");
        assert_eq!(shot.about["views"], json!(["Red"]));
    }
    for name in ["1", "View1", "vtkMRMLViewNode1"] {
        assert_eq!(stage.shoot(json!({"view_type": "3d", "view_name": name})).about["views"], json!(["3D view 1"]));
    }
    let text = stage.try_shoot(slice("blue", json!({}))).err().unwrap();
    assert!(text.contains("Red") && text.contains("Green") && text.contains("Yellow"), "{text}");

    stage.run("slicer.app.layoutManager().setLayout(slicer.vtkMRMLLayoutNode.SlicerLayoutOneUpRedSliceView)");
    let before = stage.digest();
    let hidden = stage.shoot(slice("green", json!({"slice_orientation": "sagittal"})));
    assert!(hidden.about["note"].as_str().unwrap().contains("not shown"), "{}", hidden.about);
    assert_unchanged(&before, &stage.digest(), "a picture of a hidden view");
}

#[test]
fn a_slicer_without_a_window_gives_the_views_it_has() {
    let mut stage = Stage::with_scene();
    stage.run("slicer.util.mainWindow().hide()");
    let before = stage.digest();
    let shot = stage.shoot(json!({}));
    assert_eq!(shot.about["views"].as_array().unwrap().len(), 4, "{}", shot.about);
    assert!(shot.about["note"].as_str().unwrap().contains("no main window"), "{}", shot.about);
    assert!(count(&shot.image, is_green) > 1000, "the segment is in it");
    assert_unchanged(&before, &stage.digest(), "a picture of all views");
    stage.run("slicer.util.mainWindow().show()");
    assert_eq!(stage.shoot(json!({})).about["views"], json!(["main window"]));
}

#[test]
fn a_view_that_somebody_moves_is_left_alone() {
    let mut stage = Stage::with_scene();
    stage.run(
        "red.SetInteracting(True)\nfor n in slicer.util.getNodesByClass('vtkMRMLCameraNode'): n.SetInteracting(True)",
    );
    let before = stage.digest();
    for arguments in [slice("red", json!({"slice_offset": 3})), json!({"view_type": "3d", "camera_axis": "L"})] {
        let text = stage.try_shoot(arguments).err().unwrap();
        assert!(text.contains("at this moment"), "{text}");
    }
    stage.shoot(slice("red", json!({})));
    assert_unchanged(&before, &stage.digest(), "a refused picture");
}

#[test]
fn the_code_in_slicer_is_sent_once_and_again_when_it_is_gone() {
    let mut stage = Stage::new(&PracticeOptions { no_data: true, ..PracticeOptions::default() });
    let modules = "import sys\n__execResult = [n for n in sys.modules if n.startswith('_slicer_ai_agent_capture')]";
    assert_eq!(stage.run(modules), json!([]));
    stage.shoot(json!({"view_type": "3d"}));
    let first = stage.run(modules);
    assert_eq!(first.as_array().unwrap().len(), 1);
    let name = first[0].as_str().unwrap();
    let made = format!("__execResult = id(sys.modules['{name}'])");
    let identity = stage.run(&made);
    stage.shoot(json!({"view_type": "3d"}));
    assert_eq!(stage.run(&made), identity, "the second picture made the module again");
    stage.run(&format!("del sys.modules['{name}']"));
    stage.shoot(json!({"view_type": "3d"}));
    assert_ne!(stage.run(&made), identity);
}

#[test]
fn without_exec_slicers_own_pictures_are_given_and_nothing_is_moved() {
    let mut stage = Stage::new(&PracticeOptions { no_exec: true, ..PracticeOptions::default() });
    assert_eq!(stage.shoot(json!({})).about["views"], json!(["main window"]));
    practice::load_sample(&stage.slicer.url, "MRHead");
    for view in ["red", "yellow", "green", ""] {
        let shot = stage.shoot(json!({"view_type": "slice", "view_name": view}));
        assert!(shot.about["note"].as_str().unwrap().contains("volumes only"), "{}", shot.about);
        assert!(count(&shot.image, |[red, ..]| red > 100) > 5000, "the head is not in the picture of {view:?}");
    }
    assert_eq!(stage.shoot(json!({"view_type": "3d", "image_size": 90})).image.width(), 90);
    for refused in [
        json!({"view_type": "3d", "camera_axis": "A"}),
        json!({"view_type": "slice", "view_name": "red", "slice_offset": 4}),
        json!({"view_type": "slice", "view_name": "blue"}),
    ] {
        let text = stage.try_shoot(refused).err().unwrap();
        assert!(text.contains("Slicer API exec"), "{text}");
    }
}
