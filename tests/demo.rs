//! The main job as the README's first command does it, judged by a Slicer of the test's own that counts for itself.

#[path = "support/practice.rs"]
mod practice;
#[path = "support/program.rs"]
mod program;

use slicer_ai_agent::bridge::WebServer;

/// The volume of the bone in the sample chest CT, counted without any of the program's recipes: voxels of at least
/// 250 HU, times the volume of one voxel.
async fn bone_ml() -> f64 {
    let process = practice::start();
    let server = WebServer::new(&process.url, None).unwrap();
    let code = "import SampleData, numpy, slicer\n\
                volume = SampleData.SampleDataLogic().downloadCTChest()\n\
                spacing = volume.GetSpacing()\n\
                voxels = int((slicer.util.arrayFromVolume(volume) >= 250).sum())\n\
                __execResult = voxels * spacing[0] * spacing[1] * spacing[2] / 1000.0";
    server.exec(code, None).await.unwrap().as_f64().unwrap()
}

/// How much of the picture is bone-coloured, and how much of it is background blue: a rendering, not a blank.
fn bone_share(path: &str) -> f64 {
    let picture = image::open(path).unwrap().to_rgb8();
    // The 3D view is the upper right quarter of the four-up layout.
    let (width, height) = picture.dimensions();
    let view =
        image::imageops::crop_imm(&picture, width * 6 / 10, height / 10, width * 4 / 10, height * 4 / 10).to_image();
    let bone = view.pixels().filter(|pixel| {
        let [red, green, blue] = pixel.0.map(i32::from);
        red > 60 && red > blue + 25 && green > blue + 10 && red >= green
    });
    bone.count() as f64 / f64::from(view.width() * view.height())
}

#[tokio::test]
async fn the_demonstration_does_the_main_job() {
    practice::home();
    let mut command = program::program(&practice::shared_data());
    let (code, report) = program::json(command.args(["demo", "--headless", "--json"]));
    assert_eq!(code, 0, "{report:#}");
    let turns = report["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 3);
    for turn in turns {
        assert_eq!(turn["finish"], "ran", "{turn:#}");
        assert_eq!(turn["cost_usd"], 0.0);
        assert_eq!(turn["verdict"], "allow");
    }
    assert!(report["slicer"]["version"].as_str().unwrap().contains("practice"));

    let added = |turn: usize, class: &str| {
        let nodes = turns[turn]["runs"][0]["diff"]["added"].as_array().unwrap();
        nodes.iter().any(|node| node["class"] == class)
    };
    assert!(added(0, "vtkMRMLScalarVolumeNode"), "{:#}", turns[0]);
    assert!(added(1, "vtkMRMLSegmentationNode"), "{:#}", turns[1]);

    let expected = format!("{:.1} ml", bone_ml().await);
    let answer = turns[2]["answer"].as_str().unwrap();
    assert!(answer.contains(&expected), "expected {expected} in: {answer}");

    let picture = report["screenshot"].as_str().unwrap();
    let share = bone_share(picture);
    assert!(share > 0.05, "only {:.1} % of the 3D view looks like bone: {picture}", share * 100.0);
}
