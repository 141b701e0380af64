//! How programs end that would not end well: what the person sees of each, and how long it takes.
//!
//! What is protected: nothing that code does by mistake ends Slicer or keeps the window waiting without a word, the scene
//! is put back, and the next run works. Everything goes through the engine, as in the window.

#[path = "support/driver.rs"]
mod driver;
#[path = "support/practice.rs"]
mod practice;

use std::time::{Duration, Instant};

use slicer_ai_agent::engine::{Decision, Finish, Settings, TurnEvent};

struct Case {
    name: &'static str,
    code: &'static str,
    /// Kind of the error that the result card shows.
    kind: &'static str,
    /// A part of what the person reads.
    words: &'static str,
    /// Longest time to the end of the turn, with a limit of 2 s for the run.
    within: Duration,
}

const CASES: [Case; 8] = [
    Case {
        name: "an endless loop",
        code: "slicer.mrmlScene.AddNewNodeByClass('vtkMRMLTextNode', 'half')\nn = 1\nwhile n:\n    n = n + 1",
        kind: "TimeLimit",
        words: "time limit",
        within: Duration::from_secs(5),
    },
    Case {
        name: "an endless loop that swallows everything",
        code: "n = 1\nwhile n:\n    try:\n        n = n + 1\n    except BaseException:\n        n = 1",
        kind: "TimeLimit",
        words: "time limit",
        within: Duration::from_secs(5),
    },
    Case {
        name: "a sleep",
        code: "import time\ntime.sleep(60)",
        kind: "TimeLimit",
        words: "time limit",
        within: Duration::from_secs(5),
    },
    Case {
        name: "a huge allocation",
        code: "import numpy as np\nkept = []\nfor n in range(100000):\n    kept.append(np.empty(4 << 30, 'uint8'))",
        kind: "MemoryError",
        words: "Unable to allocate",
        within: Duration::from_secs(5),
    },
    Case {
        name: "one absurd allocation",
        code: "import numpy as np\nn = 10 ** 6\na = np.zeros((n, n, 8))",
        kind: "MemoryError",
        words: "Unable to allocate",
        within: Duration::from_secs(5),
    },
    Case {
        name: "deep recursion",
        code: "def f(n):\n    return f(n + 1)\nf(0)",
        kind: "RecursionError",
        words: "recursion",
        within: Duration::from_secs(5),
    },
    Case {
        name: "exit() (blocked before it runs)",
        code: "exit()",
        kind: "",
        words: "close or restart Slicer",
        within: Duration::from_secs(5),
    },
    Case {
        name: "sys.exit() (blocked before it runs)",
        code: "import sys\nsys.exit(3)",
        kind: "",
        words: "close or restart Slicer",
        within: Duration::from_secs(5),
    },
];

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.slicer.time_limit_s = 2;
    // The check blocks or asks about most of these; here it is the guard that is looked at.
    settings.safety.always_allow = ["Hang", "Memory", "UnknownModule"].map(str::to_owned).to_vec();
    settings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_ends_slicer_or_keeps_the_person_waiting() {
    let process = practice::start();
    let data = tempfile::tempdir().unwrap();
    let mut driver = driver::Driver::start(data.path(), &process.url, settings()).await;
    let mut wrong = Vec::new();
    for case in &CASES {
        let started = Instant::now();
        let turn = driver.program(case.code).await;
        let took = started.elapsed();
        let report = turn.record.runs.last();
        let error = report.and_then(|report| report.error.clone()).unwrap_or_default();
        let shown = format!("{}: {} | {}", error.kind, error.message, turn.record.answer);
        println!("| {} | {:.1} s | {} |", case.name, took.as_secs_f64(), shown.replace('\n', " "));
        let restored = report.and_then(|report| report.restored.as_ref()).is_some_and(|report| report.complete);
        let right = error.kind == case.kind
            && shown.contains(case.words)
            && took < case.within
            && (restored || case.kind.is_empty());
        if !right || turn.record.finish != Some(Finish::Failed) {
            wrong.push(format!("{}: {took:?} {shown} restored {restored} {:?}", case.name, turn.record.error));
        }
        let next = driver.program("1 + 1").await;
        if next.record.runs.last().is_none_or(|report| report.value != 2) {
            wrong.push(format!("{}: the next run fails", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A wait inside C code cannot be interrupted: the person is told so 2 s after the limit, and Slicer comes back by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_cannot_be_interrupted_is_said() {
    let process = practice::start();
    let data = tempfile::tempdir().unwrap();
    let mut driver = driver::Driver::start(data.path(), &process.url, settings()).await;
    let started = Instant::now();
    let turn = driver.program("import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire(True, 6)").await;
    let told = turn
        .events
        .iter()
        .any(|event| matches!(event, TurnEvent::Stage { detail, .. } if detail.contains("still busy")));
    println!("| a wait inside C (6 s) | {:.1} s | told while it lasted: {told} |", started.elapsed().as_secs_f64());
    assert!(told, "{:?}", turn.events);
    assert_eq!(turn.record.runs.last().unwrap().error.as_ref().unwrap().kind, "TimeLimit");
    assert_eq!(driver.program("1 + 1").await.record.runs.last().unwrap().value, 2);
}

/// Nobody sits at a dialog of a program: it is answered with "no", and the person reads what it asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dialogs_are_answered_and_told() {
    let process = practice::start();
    let data = tempfile::tempdir().unwrap();
    let mut driver = driver::Driver::start(data.path(), &process.url, settings()).await;
    driver.decision = Decision::AllowOnce;
    let code = "agreed = slicer.util.confirmYesNoDisplay('Remove everything?', windowTitle='Sure')\n\
                slicer.util.errorDisplay('It did not work')\nconfirmOkCancelDisplay('Again?')\nagreed";
    let started = Instant::now();
    let turn = driver.program(code).await;
    let report = turn.record.runs.last().unwrap();
    println!("| three dialogs | {:.1} s | {:?} |", started.elapsed().as_secs_f64(), report.dialogs);
    assert_eq!((report.ok, &report.value), (true, &false.into()), "{:?}", report.error);
    let told: Vec<String> = report.dialogs.iter().map(|dialog| dialog.in_words()).collect();
    assert_eq!(told[0], "Question of the code: Sure: Remove everything? (answered for you: no)");
    assert_eq!((told.len(), report.dialogs[2].text.as_str()), (3, "Again?"));
}
