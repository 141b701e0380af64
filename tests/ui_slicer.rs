//! Slicer in the window: the launch button and what comes of it, the Slicers of this computer, and their pages. The engine
//! is a pair of channels, as in the other tests of the window.

mod ui_support;

use egui_kittest::kittest::{NodeT, Queryable};
use slicer_ai_agent::engine::{
    Command, Event, FoundSlicers, HeldPort, InstalledSlicer, Problem, RunningSlicer, SlicerOrigin,
};
use ui_support::{Bench, connected, disconnected, failed_without_slicer, settings_event};

fn installed(version: &str) -> InstalledSlicer {
    InstalledSlicer {
        executable: format!("/opt/Slicer-{version}-linux-amd64/Slicer").into(),
        version: Some(version.into()),
        origin: SlicerOrigin::Folder,
    }
}

fn running(port: u16, version: &str, exec: Option<bool>, scene: Option<&str>) -> RunningSlicer {
    RunningSlicer {
        url: format!("http://127.0.0.1:{port}/slicer"),
        port,
        version: version.into(),
        practice: version.ends_with("-practice"),
        exec,
        pid: Some(4000 + u32::from(port)),
        scene: scene.map(str::to_owned),
        loopback: Some(port != 2017),
    }
}

fn found() -> FoundSlicers {
    FoundSlicers {
        running: vec![
            running(2016, "5.8.1", Some(true), Some("Thorax follow-up")),
            running(2017, "5.6.2", Some(false), None),
            running(2019, "5.13.0-practice", Some(true), None),
        ],
        held: vec![HeldPort {
            port: 2018,
            pid: Some(7),
            program: Some("SlicerApp-real".into()),
            maybe_slicer: true,
            detail: "Slicer runs there, but is too busy to answer, or shows a dialog that waits for you.".into(),
        }],
        installed: vec![installed("5.10.0"), installed("5.8.1")],
    }
}

fn only_installed() -> FoundSlicers {
    FoundSlicers { installed: vec![installed("5.10.0"), installed("5.8.1")], ..FoundSlicers::default() }
}

fn progress(detail: &str, done: bool) -> Event {
    Event::Progress { what: "Starting Slicer".into(), detail: detail.into(), done }
}

/// A window without Slicer in which one is installed.
fn without_slicer(width: f32, dark: bool) -> Bench {
    let mut bench = Bench::bare(width, 800.0, dark);
    bench.tell(settings_event(dark, "recipes"));
    bench.tell(Event::Slicer { status: disconnected() });
    bench.open("", Vec::new());
    bench
}

fn open_page(bench: &mut Bench) {
    bench.harness.get_by_label("Settings").click();
    bench.settle();
    bench.harness.get_by_role_and_label(egui::accesskit::Role::Button, "Slicer").click();
    bench.settle();
}

/// From "not running" to connected with one press; the chip, the page and the buttons say where it stands.
#[test]
fn launch_is_one_press_and_shows_its_progress() {
    let mut bench = without_slicer(1000.0, false);
    let commands = bench.take_commands();
    assert!(commands.iter().any(|command| matches!(command, Command::FindSlicers)), "{commands:?}");
    bench.tell(Event::Slicers { found: Box::new(only_installed()) });
    bench.settle();
    bench.harness.get_by_label("Slicer 5.10.0 is installed, but not connected.");
    bench.picture("empty_can_launch");
    bench.harness.get_by_label("Launch Slicer").click();
    bench.settle();
    let commands = bench.take_commands();
    assert!(matches!(commands[..], [Command::LaunchSlicer]), "{commands:?}");
    bench.tell(progress("Slicer is starting (20 s)…", false));
    bench.settle();
    bench.harness.get_by_label("Slicer: Starting Slicer…");
    bench.tell(Event::Slicer { status: connected() });
    bench.tell(progress("http://127.0.0.1:2016/slicer", true));
    bench.settle();
    bench.harness.get_by_label_contains("Slicer: Slicer 5.8.1");
    assert!(bench.harness.query_by_label("Launch Slicer").is_none());
}

/// The chip's menu offers Launch while nothing is connected, and not when something is.
#[test]
fn the_chip_launches_when_nothing_is_connected() {
    let mut bench = without_slicer(1000.0, true);
    bench.tell(Event::Slicers { found: Box::new(only_installed()) });
    bench.settle();
    bench.take_commands();
    bench.harness.get_by_label("Slicer: Slicer not running").click();
    bench.settle();
    bench.picture("chip_launch");
    bench.harness.get_by_label("Launch Slicer 5.10.0").click();
    bench.settle();
    assert!(matches!(bench.take_commands()[..], [Command::LaunchSlicer]));
    bench.harness.get_by_label("Cancel").click();
    bench.settle();
    assert!(matches!(bench.take_commands()[..], [Command::CancelLaunch]));
    bench.tell(progress("", true));
    // One that was started by hand, on another port, is offered too.
    bench.tell(Event::Slicers { found: Box::new(found()) });
    bench.settle();
    bench.harness.get_by_label("Connect to Practice Slicer 5.13.0").click();
    bench.settle();
    let commands = bench.take_commands();
    assert!(matches!(&commands[..], [Command::ConnectSlicer { url }] if url.contains(":2019/")), "{commands:?}");
    bench.tell(Event::Slicer { status: connected() });
    bench.settle();
    assert!(bench.harness.query_by_label_contains("Launch Slicer").is_none());
}

/// A failed launch stays on the page, in words, with what to do, until the next one.
#[test]
fn a_failed_launch_is_told_in_words() {
    let mut bench = without_slicer(1000.0, false);
    bench.tell(Event::Slicers { found: Box::new(only_installed()) });
    open_page(&mut bench);
    bench.take_commands();
    bench.harness.get_by_label("Launch Slicer 5.10.0").click();
    bench.settle();
    assert!(matches!(bench.take_commands()[..], [Command::LaunchSlicer]));
    bench.tell(progress("Slicer is starting (20 s)…", false));
    bench.settle();
    bench.harness.get_by_label("Slicer is starting (20 s)…");
    bench.harness.get_by_label("Cancel");
    bench.picture("settings_slicer_launching");
    bench.tell(progress("", true));
    let problem = Problem {
        kind: "SlicerEnded".into(),
        message: "Slicer ended while it started (exit code 1). The last it said:\nerror: no Qt platform plugin".into(),
        advice: "Start Slicer by itself to see whether it works.".into(),
    };
    bench.tell(Event::LaunchFailed { problem });
    bench.settle();
    bench.harness.get_by_label_contains("Slicer ended while it started (exit code 1).");
    bench.harness.get_by_label_contains("no Qt platform plugin");
    bench.harness.get_by_label("Start Slicer by itself to see whether it works.");
    bench.picture("settings_slicer_failed");
    bench.harness.get_by_label("Launch Slicer 5.10.0").click();
    bench.settle();
    assert!(bench.harness.query_by_label_contains("Slicer ended while it started").is_none());
}

/// Which Slicer is which, and what each of them needs; Connect goes to the one beside it.
#[test]
fn the_page_lists_the_slicers_of_this_computer() {
    for (width, dark, name) in [(1000.0, false, "wide_light"), (420.0, true, "narrow_dark")] {
        let mut bench = Bench::new(width, 1000.0, dark);
        bench.open("", Vec::new());
        open_page(&mut bench);
        let commands = bench.take_commands();
        assert!(matches!(commands.last(), Some(Command::FindSlicers)), "{commands:?}");
        bench.tell(Event::Slicers { found: Box::new(found()) });
        bench.settle();
        bench.picture(&format!("settings_slicer_{name}"));
        bench.harness.get_by_label("Slicer 5.8.1 · Thorax follow-up");
        bench.harness.get_by_label("127.0.0.1:2016 · process 6016");
        bench.harness.get_by_label("Connected");
        bench.harness.get_by_label_contains("It takes no code");
        bench.harness.get_by_label_contains("open to the network");
        bench.harness.get_by_label_contains("too busy to answer");
        let connects: Vec<_> = bench.harness.query_all_by_label("Connect").collect();
        assert_eq!(connects.len(), 2, "one each for those that are not connected");
        connects[0].click();
        bench.settle();
        let commands = bench.take_commands();
        assert!(
            matches!(&commands[..], [Command::ConnectSlicer { url }] if url == "http://127.0.0.1:2017/slicer"),
            "{commands:?}"
        );
        bench.harness.get_by_label("Look for Slicers again").click();
        bench.settle();
        assert!(matches!(bench.take_commands()[..], [Command::FindSlicers]));
    }
}

/// The executable can be chosen among those found, or typed; it is saved before it is launched.
#[test]
fn the_executable_is_chosen_or_typed() {
    let mut bench = Bench::new(1000.0, 800.0, false);
    bench.open("", Vec::new());
    bench.tell(Event::Slicers { found: Box::new(only_installed()) });
    open_page(&mut bench);
    bench.take_commands();
    bench.harness.get_by_label("Choose an installed Slicer").click();
    bench.settle();
    bench.harness.get_by_label("Slicer 5.8.1").click();
    bench.settle();
    let saved = |commands: &[Command]| {
        commands.iter().find_map(|command| match command {
            Command::SaveSettings { settings } => Some(settings.slicer.executable.clone()),
            _ => None,
        })
    };
    assert_eq!(saved(&bench.take_commands()).as_deref(), Some("/opt/Slicer-5.8.1-linux-amd64/Slicer"));
    bench.harness.get_by_label("Launch Slicer 5.8.1");
    bench.tell(Event::Slicers { found: Box::new(only_installed()) });
    bench.settle();
    bench.harness.state_mut().state.draft.slicer.executable = "/data/Slicer".into();
    bench.harness.run_steps(2);
    // Of this one the version is not known; the button must not name another's.
    bench.harness.get_by_role_and_label(egui::accesskit::Role::Button, "Launch Slicer").click();
    bench.settle();
    let commands = bench.take_commands();
    assert_eq!(saved(&commands).as_deref(), Some("/data/Slicer"), "{commands:?}");
    assert!(matches!(commands.last(), Some(Command::LaunchSlicer)), "{commands:?}");
}

/// Where nothing is installed the page says what to do, and does not look like a failure.
#[test]
fn without_an_installed_slicer_the_page_says_what_to_do() {
    let mut bench = without_slicer(1000.0, false);
    bench.tell(Event::Slicers { found: Box::default() });
    open_page(&mut bench);
    bench.tell(Event::Slicers { found: Box::default() });
    bench.settle();
    bench.harness.get_by_label_contains("Install it from download.slicer.org");
    bench.harness.get_by_label("None with its Web Server on.");
    bench.picture("settings_slicer_none");
    let launch = bench.harness.get_by_role_and_label(egui::accesskit::Role::Button, "Launch Slicer");
    assert!(launch.accesskit_node().is_disabled(), "there is nothing to launch");
    bench.take_commands();
    bench.harness.state_mut().state.draft.slicer.executable = "/data/Slicer".into();
    bench.harness.run_steps(2);
    bench.harness.get_by_role_and_label(egui::accesskit::Role::Button, "Launch Slicer").click();
    bench.settle();
    assert!(matches!(bench.take_commands().last(), Some(Command::LaunchSlicer)));
}

/// A request that failed for want of Slicer is sent again once the launched one answers.
#[test]
fn a_request_that_failed_is_sent_again_after_the_launch() {
    let mut bench = without_slicer(1000.0, false);
    bench.tell(Event::Slicers { found: Box::new(only_installed()) });
    bench.open("Load the sample chest CT", failed_without_slicer());
    bench.take_commands();
    bench.harness.get_by_label("Launch Slicer").click();
    bench.settle();
    assert!(matches!(bench.take_commands()[..], [Command::LaunchSlicer]));
    bench.tell(Event::Slicer { status: connected() });
    bench.settle();
    let commands = bench.take_commands();
    assert!(
        matches!(&commands[..], [Command::Send { text, .. }] if text == "Load the sample chest CT"),
        "{commands:?}"
    );
}
