//! A window without a native window around it, the far ends of its channels, and realistic event sequences.

// Each test file uses its own part of this module.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use egui_kittest::Harness;
use slicer_ai_agent::engine::{
    Capability, CheckResult, Command, ConversationSummary, Event, Expectation, Finding, Finish, KeyOrigin, NodeChange,
    NodeReference, NodeSummary, Plan, PlanStep, Problem, ProviderChoice, Role, RunError, RunReport, SceneDiff,
    SceneSnapshot, SegmentSummary, Settings, SlicerStatus, StoredTurnEvent, Timings, TurnEvent, UsageTotal,
    VerdictKind,
};
use slicer_ai_agent::ui::{EngineLink, Window};
use tokio::sync::mpsc::{Receiver, Sender, channel};

pub const CONVERSATION: &str = "5e0c4a5e-0000-4000-8000-000000000001";

/// The moment at which every test takes place: a fixed one, so that times in pictures do not change.
pub fn clock() -> i64 {
    1_780_000_000_000
}

/// A window in a harness, with the engine's ends of its channels.
pub struct Bench {
    pub harness: Harness<'static, Window>,
    pub events: Sender<Event>,
    pub commands: Receiver<Command>,
}

impl Bench {
    /// A window of `width` × `height` points that knows the usual settings and a connected Slicer.
    pub fn new(width: f32, height: f32, dark: bool) -> Self {
        let bench = Self::bare(width, height, dark);
        bench.tell(settings_event(dark, "openai"));
        bench.tell(Event::Slicer { status: connected() });
        bench.tell(Event::Conversations { list: conversations() });
        bench
    }

    /// A window that the engine has told nothing yet.
    pub fn bare(width: f32, height: f32, dark: bool) -> Self {
        Self::with_message(width, height, dark, None)
    }

    /// The same, started with a first message.
    pub fn with_message(width: f32, height: f32, dark: bool, message: Option<String>) -> Self {
        let (events, received) = channel(1024);
        let (sent, commands) = channel(256);
        let link = EngineLink { commands: sent, events: received };
        let theme = if dark { egui::Theme::Dark } else { egui::Theme::Light };
        let harness = Harness::builder()
            .with_size([width, height])
            .with_theme(theme)
            .with_max_steps(40)
            .with_render_cursor(false)
            .build_eframe(move |creation| {
                Window::new(&creation.egui_ctx, link, message.into_iter().collect()).with_clock(clock)
            });
        Self { harness, events, commands }
    }

    /// The engine tells something.
    pub fn tell(&self, event: Event) {
        self.events.try_send(event).expect("the channel has room");
    }

    /// Opens a conversation with these facts.
    pub fn open(&mut self, title: &str, facts: Vec<TurnEvent>) {
        let running = !matches!(facts.last(), None | Some(TurnEvent::Finished { .. }));
        let events = stored(facts);
        let conversation = CONVERSATION.to_owned();
        self.tell(Event::Opened { conversation, title: title.into(), events, queued: Vec::new(), running });
        self.settle();
    }

    /// Some frames, with time for pictures to be read.
    pub fn settle(&mut self) {
        for _ in 0..3 {
            self.harness.run_steps(4);
            std::thread::sleep(std::time::Duration::from_millis(60));
        }
        self.harness.run_steps(4);
    }

    /// The commands that came since the last call.
    pub fn take_commands(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        while let Ok(command) = self.commands.try_recv() {
            commands.push(command);
        }
        commands
    }

    /// Saves what is shown as `tests/snapshots/<name>.png`, when `UI_PICTURES` is set.
    ///
    /// Pixels differ between drivers and font rasterisers, so the tests compare names and texts; the pictures are for
    /// people, who look at them when the window changes.
    pub fn picture(&mut self, name: &str) {
        if std::env::var_os("UI_PICTURES").is_none() {
            return;
        }
        let image = self.harness.render().expect("a renderer");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
        std::fs::create_dir_all(&folder).expect("the folder of the pictures");
        image.save(folder.join(format!("{name}.png"))).expect("the picture");
    }
}

/// Gives facts their numbers and moments, a few seconds before now.
pub fn stored(facts: Vec<TurnEvent>) -> Vec<StoredTurnEvent> {
    let count = facts.len() as i64;
    let place = |index: usize| index as i64;
    facts
        .into_iter()
        .enumerate()
        .map(|(index, event)| StoredTurnEvent {
            sequence: place(index) + 1,
            at_ms: clock() - (count - place(index)) * 400,
            event,
        })
        .collect()
}

pub fn connected() -> SlicerStatus {
    SlicerStatus {
        connected: true,
        url: "http://127.0.0.1:2016/slicer".into(),
        version: "5.8.1".into(),
        practice: false,
        nodes: 4,
        problem: None,
    }
}

pub fn disconnected() -> SlicerStatus {
    SlicerStatus {
        problem: Some("Slicer does not answer at 127.0.0.1:2016. Start Slicer, or use the practice Slicer.".into()),
        url: "http://127.0.0.1:2016/slicer".into(),
        ..SlicerStatus::default()
    }
}

pub fn conversations() -> Vec<ConversationSummary> {
    let one = |id: &str, title: &str, minutes: i64, pinned: bool, turns: u64| ConversationSummary {
        id: id.into(),
        title: title.into(),
        created_ms: clock() - minutes * 60_000,
        updated_ms: clock() - minutes * 60_000,
        pinned,
        deleted: false,
        turns,
    };
    vec![
        one(CONVERSATION, "Bone segmentation of the chest CT", 0, false, 3),
        one("b", "Liver volumetry protocol", 4_000, true, 12),
        one("c", "Register follow-up MR to baseline and resample", 190, false, 5),
        one("d", "Fiducials for the pedicle screws", 1_600, false, 8),
        one("e", "Volume rendering presets", 12_000, false, 2),
    ]
}

pub fn providers() -> Vec<ProviderChoice> {
    let one = |id: &str, name: &str, url: &str, variable: Option<&str>, models: &[&str]| ProviderChoice {
        id: id.into(),
        name: name.into(),
        base_url: url.into(),
        key_variable: variable.map(str::to_owned),
        needs_key: variable.is_some(),
        models: models.iter().map(|model| (*model).to_owned()).collect(),
    };
    vec![
        one("recipes", "Built-in recipes", "", None, &[]),
        one("openai", "OpenAI", "https://api.openai.com/v1", Some("OPENAI_API_KEY"), &["gpt-4.1", "gpt-4.1-mini"]),
        one("ollama", "Ollama", "http://127.0.0.1:11434/v1", None, &["qwen3:8b"]),
    ]
}

pub fn settings_event(dark: bool, provider: &str) -> Event {
    let mut settings = Settings::default();
    settings.appearance.theme = if dark { "dark" } else { "light" }.into();
    settings.model.provider = provider.into();
    if provider == "openai" {
        settings.model.model = "gpt-4.1".into();
        settings.model.base_url = "https://api.openai.com/v1".into();
    }
    settings.safety.always_allow = vec!["SampleData".into()];
    let key = if provider == "recipes" { KeyOrigin::NotNeeded } else { KeyOrigin::Keyring };
    Event::Settings { settings: Box::new(settings), providers: providers(), key }
}

/// A made-up picture that looks like a four-up layout: three slices and a surface.
pub fn four_up(folder: &Path, name: &str, bone: bool) -> PathBuf {
    let path = folder.join(format!("{name}.png"));
    let (width, height) = (1200u32, 860u32);
    let picture = image::RgbImage::from_fn(width, height, |x, y| {
        let (column, row) = (x * 2 / width, y * 2 / height);
        let half = (width as f32 / 4.0, height as f32 / 4.0);
        let dx = (x % (width / 2)) as f32 / half.0 - 1.0;
        let dy = (y % (height / 2)) as f32 / half.1 - 1.0;
        if x.abs_diff(width / 2) < 2 || y.abs_diff(height / 2) < 2 {
            return image::Rgb([38, 42, 48]);
        }
        if (column, row) == (1, 0) {
            return surface(dx, dy, bone);
        }
        slice(dx, dy, bone)
    });
    picture.save(&path).expect("the picture");
    path
}

fn slice(x: f32, y: f32, bone: bool) -> image::Rgb<u8> {
    let oval = |cx: f32, cy: f32, rx: f32, ry: f32| ((x - cx) / rx).powi(2) + ((y - cy) / ry).powi(2);
    let grain = ((x * 91.0).sin() * (y * 73.0).cos() * 9.0) as i16;
    let grey = |value: i16| {
        let value = (value + grain).clamp(0, 255) as u8;
        image::Rgb([value, value, value])
    };
    let rib = (0.86..1.0).contains(&oval(0.0, 0.0, 0.72, 0.76)) && ((y.atan2(x) * 11.0).sin() > 0.25);
    let spine = oval(0.0, 0.52, 0.14, 0.14) < 1.0;
    if rib || spine {
        return if bone { image::Rgb([226, 196, 120]) } else { grey(225) };
    }
    if oval(-0.33, -0.05, 0.27, 0.48) < 1.0 || oval(0.36, -0.05, 0.24, 0.48) < 1.0 {
        return grey(28);
    }
    if oval(0.05, -0.05, 0.2, 0.3) < 1.0 {
        return grey(150);
    }
    if oval(0.0, 0.0, 0.84, 0.88) < 1.0 { grey(112) } else { image::Rgb([0, 0, 0]) }
}

fn surface(x: f32, y: f32, bone: bool) -> image::Rgb<u8> {
    let sky = image::Rgb([(140.0 + y * 25.0) as u8, (143.0 + y * 25.0) as u8, (196.0 + y * 25.0) as u8]);
    if !bone {
        return sky;
    }
    let spine = x.abs() < 0.09 && y.abs() < 0.85;
    let rib =
        ((y * 17.0 + (x * 2.1).powi(2)).sin() > 0.35) && x.abs() < 0.62 * (1.1 - (y * 0.8).powi(2)) && y.abs() < 0.7;
    if spine || rib {
        let light = (1.0 - x * x * 1.2).clamp(0.25, 1.0);
        image::Rgb([(236.0 * light) as u8, (206.0 * light) as u8, (140.0 * light) as u8])
    } else {
        sky
    }
}

pub const LOAD_CODE: &str = "import SampleData\n\nvolume = SampleData.SampleDataLogic().downloadCTChest()\nslicer.util.setSliceViewerLayers(background=volume, fit=True)\n";

pub const BONE_CODE: &str = r#"volume = slicer.util.getNode("CTChest")
segmentation = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLSegmentationNode", "Bone segmentation")
segmentation.CreateDefaultDisplayNodes()
segmentation.SetReferenceImageGeometryParameterFromVolumeNode(volume)
bone = segmentation.GetSegmentation().AddEmptySegment("bone", "Bone", [0.89, 0.77, 0.47])

# Everything denser than soft tissue; 200 HU keeps cortical bone and drops contrast-free vessels.
array = slicer.util.arrayFromVolume(volume)
slicer.util.updateSegmentBinaryLabelmapFromArray((array > 200).astype("uint8"), segmentation, bone, volume)

segmentation.CreateClosedSurfaceRepresentation()
slicer.util.resetThreeDViews()
"#;

fn user(turn: u64, text: &str) -> TurnEvent {
    TurnEvent::UserMessage { turn, text: text.into() }
}

fn stage(role: Role, detail: &str) -> TurnEvent {
    TurnEvent::Stage { role, detail: detail.into() }
}

fn node(id: &str, name: &str, class: &str) -> NodeReference {
    NodeReference { id: id.into(), name: name.into(), class: class.into() }
}

fn check(what: &str, passed: Option<bool>, seen: &str) -> CheckResult {
    CheckResult { what: what.into(), passed, seen: seen.into() }
}

pub fn finding() -> Finding {
    Finding {
        capability: Capability::SampleData,
        line: 3,
        column: 9,
        text: "SampleData.SampleDataLogic().downloadCTChest()".into(),
        why: "It downloads sample data (about 160 MB) from a server named in Slicer.".into(),
        instead: "load a volume that is already on this computer.".into(),
        verdict: VerdictKind::Ask,
        scope: None,
    }
}

pub fn load_report() -> RunReport {
    RunReport {
        run: "run-1".into(),
        attempt: 1,
        ok: true,
        diff: SceneDiff {
            added: vec![node("vtkMRMLScalarVolumeNode1", "CTChest", "vtkMRMLScalarVolumeNode")],
            views: vec!["Red, Yellow and Green show CTChest".into()],
            ..SceneDiff::default()
        },
        checks: vec![check("a new ScalarVolume is in the scene", Some(true), "CTChest, 512 × 512 × 139")],
        duration_ms: 4_230.0,
        undoable: true,
        ..RunReport::default()
    }
}

pub fn bone_report() -> RunReport {
    RunReport {
        run: "run-3".into(),
        attempt: 2,
        ok: true,
        stdout: "Bone: 1 284 503 voxels\n".into(),
        diff: SceneDiff {
            added: vec![node("vtkMRMLSegmentationNode1", "Bone segmentation", "vtkMRMLSegmentationNode")],
            changed: vec![NodeChange {
                id: "vtkMRMLScalarVolumeNode1".into(),
                name: "CTChest".into(),
                class: "vtkMRMLScalarVolumeNode".into(),
                what: vec!["display".into()],
            }],
            views: vec!["3D view 1: camera".into()],
            ..SceneDiff::default()
        },
        checks: vec![
            check("a new Segmentation is in the scene", Some(true), "Bone segmentation"),
            check("it has at least 1 segment that is not empty", Some(true), "Bone, 1 284 503 voxels"),
            check("it can be seen in 3D", Some(true), "closed surface, visible"),
            check("the threshold suits this scanner", None, ""),
        ],
        duration_ms: 1_840.0,
        undoable: true,
        ..RunReport::default()
    }
}

pub fn failed_report() -> RunReport {
    RunReport {
        run: "run-2".into(),
        attempt: 1,
        ok: false,
        error: Some(RunError {
            kind: "AttributeError".into(),
            message: "'vtkSegmentation' object has no attribute 'AddEmptySegmentation'".into(),
            line: Some(5),
            traceback: "Traceback (most recent call last):\n  File \"<code>\", line 5, in <module>\nAttributeError: \
                        'vtkSegmentation' object has no attribute 'AddEmptySegmentation'"
                .into(),
        }),
        duration_ms: 96.0,
        ..RunReport::default()
    }
}

pub fn bone_plan() -> Plan {
    let step = |action: &str, api: &str, evidence: &str, expected: &str| PlanStep {
        action: action.into(),
        api: api.into(),
        confidence: "high".into(),
        evidence: evidence.into(),
        assumptions: Vec::new(),
        expected_scene_change: vec![Expectation {
            kind: "node_exists".into(),
            class: Some("vtkMRMLSegmentationNode".into()),
            new: true,
            text: Some(expected.into()),
            ..Expectation::default()
        }],
    };
    Plan {
        task_summary: "Threshold CTChest at 200 HU into a bone segment and show its surface in 3D".into(),
        overall_confidence: "high".into(),
        risk_level: "low".into(),
        requires_confirmation: false,
        unverified_assumptions: vec!["200 HU separates bone from soft tissue in this CT".into()],
        steps: vec![
            step(
                "Make a segmentation with the geometry of CTChest",
                "vtkMRMLSegmentationNode.SetReferenceImageGeometryParameterFromVolumeNode",
                "recipes/segment-threshold.md:12",
                "A new segmentation is in the scene",
            ),
            step(
                "Fill the segment where the CT is above 200 HU",
                "slicer.util.updateSegmentBinaryLabelmapFromArray",
                "recipes/segment-threshold.md:27",
                "The segment is not empty",
            ),
            step(
                "Make the closed surface and look at it",
                "vtkMRMLSegmentationNode.CreateClosedSurfaceRepresentation",
                "recipes/segment-threshold.md:41",
                "The segment can be seen in 3D",
            ),
        ],
    }
}

fn usage(input: u64, cached: u64, output: u64, cost: f64) -> TurnEvent {
    let total = UsageTotal { input, cached, output, reasoning: 0, calls: 2, estimated: false };
    TurnEvent::Usage { total, cost_usd: Some(cost) }
}

fn finished(finish: Finish, total_ms: f64, error: Option<Problem>) -> TurnEvent {
    let timings =
        Timings { retrieval_ms: 41.0, model_ms: 5_200.0, checks_ms: 3.0, run_ms: 1_900.0, total_ms, tools_ms: 0.0 };
    TurnEvent::Finished { finish, error, timings, run_folder: None }
}

pub const ANSWER: &str = "\
The bones of **CTChest** are segmented and shown in 3D.

| Segment | Volume | Voxels |
|---|---:|---:|
| Bone | 687.3 ml | 1 284 503 |

- The threshold is **200 HU**; lower it to about 150 HU if thin ribs have gaps.
- Contrast in vessels would be inside the segment, but this CT has none.

To change the threshold later, run `segment(volume, threshold=150)` or ask me.";

/// The load and the segmentation, as a person sees them an hour later.
pub fn realistic(folder: &Path) -> Vec<TurnEvent> {
    let loaded = four_up(folder, "loaded", false);
    let bones = four_up(folder, "bones", true);
    let picture = |title: &str, path: &Path| TurnEvent::Screenshot {
        title: title.into(),
        path: path.display().to_string(),
        width: 1200,
        height: 860,
    };
    vec![
        user(1, "Load the sample chest CT"),
        stage(Role::Retriever, "searching…"),
        TurnEvent::Retrieved { hits: vec!["recipes/load-sample-data.md:1-30".into()], ms: 24.0 },
        TurnEvent::Code { attempt: 1, code: LOAD_CODE.into() },
        TurnEvent::Verdict { verdict: VerdictKind::Ask, findings: vec![finding()] },
        TurnEvent::PermissionAsked { request: "p1".into(), findings: vec![finding()] },
        TurnEvent::PermissionDecided { request: "p1".into(), decision: slicer_ai_agent::engine::Decision::AllowOnce },
        TurnEvent::RunFinished { report: Box::new(load_report()) },
        picture("Slicer after the run", &loaded),
        TurnEvent::TextDelta {
            text: "The sample chest CT is loaded as **CTChest** (512 × 512 × 139 voxels, 0.76 × 0.76 × 2.5 mm).".into(),
        },
        finished(Finish::Ran, 6_100.0, None),
        user(2, "Segment the bone and show it in 3D. Use a threshold that fits a CT without contrast."),
        stage(Role::Planner, "writing the plan…"),
        TurnEvent::Retrieved {
            hits: vec!["recipes/segment-threshold.md:1-60".into(), "script_repository/segmentations.md:210-248".into()],
            ms: 41.0,
        },
        TurnEvent::ReasoningDelta {
            text: "Bone in CT is above about 200 HU.\nThe segmentation needs the geometry of the volume.".into(),
        },
        TurnEvent::ToolCall {
            id: "t1".into(),
            name: "list_nodes".into(),
            arguments: serde_json::json!({"class": "vtkMRMLScalarVolumeNode"}),
        },
        TurnEvent::ToolResult {
            id: "t1".into(),
            ok: true,
            summary: "1 volume: CTChest".into(),
            text: "CTChest  vtkMRMLScalarVolumeNode1  512 × 512 × 139".into(),
            ms: 12.0,
            error: None,
        },
        TurnEvent::Plan { plan: bone_plan() },
        TurnEvent::Code { attempt: 1, code: BONE_CODE.replace("AddEmptySegment", "AddEmptySegmentation") },
        TurnEvent::Verdict { verdict: VerdictKind::Allow, findings: Vec::new() },
        TurnEvent::RunFinished { report: Box::new(failed_report()) },
        TurnEvent::Repair {
            attempt: 2,
            of: 5,
            why: "AttributeError: no attribute 'AddEmptySegmentation' (line 5)".into(),
        },
        TurnEvent::Code { attempt: 2, code: BONE_CODE.into() },
        TurnEvent::Verdict { verdict: VerdictKind::Allow, findings: Vec::new() },
        TurnEvent::RunFinished { report: Box::new(bone_report()) },
        picture("Slicer after the run: bone in 3D", &bones),
        TurnEvent::TextDelta { text: ANSWER.into() },
        usage(3_120, 1_100, 642, 0.0127),
        finished(Finish::Ran, 9_340.0, None),
    ]
}

/// A turn that waits for permission.
pub fn waiting_for_permission() -> Vec<TurnEvent> {
    vec![
        user(1, "Load the sample chest CT"),
        stage(Role::Retriever, "searching…"),
        TurnEvent::Retrieved { hits: vec!["recipes/load-sample-data.md:1-30".into()], ms: 24.0 },
        TurnEvent::Plan {
            plan: Plan { task_summary: "Load the sample data set CTChest and show it.".into(), ..Plan::default() },
        },
        TurnEvent::Code { attempt: 1, code: LOAD_CODE.into() },
        TurnEvent::Verdict { verdict: VerdictKind::Ask, findings: vec![finding()] },
        stage(Role::SafetyCritic, "waiting for you…"),
        TurnEvent::PermissionAsked { request: "p1".into(), findings: vec![finding()] },
    ]
}

/// A turn that runs code.
pub fn running() -> Vec<TurnEvent> {
    vec![
        user(1, "Segment the bone and show it in 3D"),
        TurnEvent::Retrieved { hits: vec!["recipes/segment-threshold.md:1-60".into()], ms: 41.0 },
        TurnEvent::Plan { plan: bone_plan() },
        TurnEvent::Code { attempt: 1, code: BONE_CODE.into() },
        TurnEvent::Verdict { verdict: VerdictKind::Allow, findings: Vec::new() },
        usage(2_010, 0, 410, 0.008),
        stage(Role::Executor, "running (attempt 1 of 5)…"),
    ]
}

/// A turn that failed because there is no Slicer.
pub fn failed_without_slicer() -> Vec<TurnEvent> {
    let problem = Problem {
        kind: "NoSlicer".into(),
        message: "Slicer does not answer at 127.0.0.1:2016.".into(),
        advice:
            "Start Slicer and switch on its Web Server module, or start the practice Slicer here. Then press Retry."
                .into(),
    };
    vec![user(1, "Load the sample chest CT"), finished(Finish::Failed, 310.0, Some(problem))]
}

/// A turn whose code failed for good.
pub fn failed_run() -> Vec<TurnEvent> {
    vec![
        user(1, "Segment the bone and show it in 3D"),
        TurnEvent::Code { attempt: 1, code: BONE_CODE.into() },
        TurnEvent::RunFinished { report: Box::new(failed_report()) },
        finished(
            Finish::Failed,
            4_010.0,
            Some(Problem {
                kind: "RunFailed".into(),
                message: "The request could not be carried out in 5 attempts.".into(),
                advice: "Say it in smaller steps, or open the last result to see what Slicer answered.".into(),
            }),
        ),
    ]
}

pub fn scene() -> SceneSnapshot {
    let one = |id: &str, name: &str, class: &str, fact: &str, visible: Option<bool>| NodeSummary {
        id: id.into(),
        name: name.into(),
        class: class.into(),
        fact: fact.into(),
        visible,
        ..NodeSummary::default()
    };
    let mut segmentation =
        one("vtkMRMLSegmentationNode1", "Bone segmentation", "vtkMRMLSegmentationNode", "1 segment", Some(true));
    segmentation.content.segments = Some(vec![SegmentSummary {
        id: "bone".into(),
        name: "Bone".into(),
        voxels: Some(1_284_503),
        closed_surface: true,
    }]);
    SceneSnapshot {
        version: "5.8.1".into(),
        selected_volume: Some("vtkMRMLScalarVolumeNode1".into()),
        nodes: vec![
            one(
                "vtkMRMLScalarVolumeNode1",
                "CTChest",
                "vtkMRMLScalarVolumeNode",
                "512 × 512 × 139, 0.76 × 0.76 × 2.5 mm",
                Some(true),
            ),
            segmentation,
            one(
                "vtkMRMLMarkupsFiducialNode1",
                "Landmarks",
                "vtkMRMLMarkupsFiducialNode",
                "3 control points",
                Some(false),
            ),
            one(
                "vtkMRMLLinearTransformNode1",
                "Patient to table",
                "vtkMRMLLinearTransformNode",
                "not the identity",
                None,
            ),
        ],
        ..SceneSnapshot::default()
    }
}
