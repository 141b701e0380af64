//! The practice Slicer's own tests (Python, in `resources/practice/tests`), run in the environment that the program makes:
//! that set-up itself is what every other test stands on.

#[path = "support/practice.rs"]
mod practice;

#[test]
fn the_practice_slicer_passes_its_own_tests() {
    let output = practice::home()
        .python()
        .args(["-m", "unittest", "discover", "-s", "tests"])
        .output()
        .expect("the environment's Python runs");
    let text = String::from_utf8_lossy(&output.stderr);
    let ran = text.lines().find(|line| line.starts_with("Ran ")).unwrap_or_default().to_owned();
    println!("{ran}");
    assert!(output.status.success(), "{text}");
    assert!(ran.contains(" tests in "), "no tests were found: {text}");
}
