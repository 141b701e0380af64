//! One attempt to run a program: verdict, permission, guarded run, checks, picture.
//!
//! The order is the point. The verdict comes first for every author; a question waits for the person; a run that fails
//! or whose checks fail is taken back before anybody hears of it.

use std::io::Cursor;
use std::time::{Duration, Instant};

use super::grants::grants;
use super::reply::Parts;
use super::turn::{Ended, Turn};
use super::verify::{SceneChange, verify};
use super::{CheckResult, Decision, Finish, Plan, Problem, Role, RunReport, TurnEvent, TurnHost};
use crate::safety::{self, Capability, Finding, Verdict, VerdictKind};
use crate::slicer::{RestoreReport, RunError, RunGrants, RunOutcome, RunRequest, Slicer, SlicerError, ViewRequest};

/// How an attempt ended.
pub(super) enum Attempt {
    Done(Box<RunReport>),
    Failed {
        why: String,
        report: Option<Box<RunReport>>,
        /// Stopped by the safety check, before anything ran.
        blocked: bool,
    },
}

impl<H: TurnHost> Turn<'_, H> {
    /// Shows, checks and runs the program of a draft.
    pub(super) async fn attempt(&mut self, draft: &Parts, number: u32) -> Result<Attempt, Ended> {
        let (Some(Ok(plan)), Some(code)) = (&draft.plan, &draft.code) else {
            return Ok(Attempt::Failed { why: "There is no program to run.".into(), report: None, blocked: false });
        };
        self.host.emit(TurnEvent::Plan { plan: plan.clone() }).await?;
        self.host.emit(TurnEvent::Code { attempt: number, code: code.clone() }).await?;
        self.save_draft(plan, code, number).await;
        let verdict = self.judge(plan, code).await?;
        if verdict.verdict == VerdictKind::Block {
            return Ok(Attempt::Failed { why: blocked_text(&verdict.findings), report: None, blocked: true });
        }
        let grants = grants(&verdict.findings, &self.context.policy);
        if verdict.verdict == VerdictKind::Ask {
            self.ask_person(verdict.findings).await?;
        }
        let report = self.execute(plan, code, number, grants).await?;
        self.said.clear();
        self.result.past.code = Some(code.clone());
        if report.ok {
            self.result.past.outcome = Some(outcome_line(&report));
            return Ok(Attempt::Done(Box::new(report)));
        }
        let why = failure_text(&report);
        self.result.past.outcome = Some(format!("failed: {why}"));
        let kind = report.error.as_ref().map(|error| error.kind.as_str()).unwrap_or_default();
        if kind == "Stopped" || (kind == NO_ANSWER && self.context.cancel.is_cancelled()) {
            return Err(Ended::Stopped);
        }
        if kind == NO_ANSWER {
            let problem = Problem { kind: "SlicerBusy".into(), message: why, advice: String::new() };
            return Err(Ended::Problem(Finish::Failed, problem));
        }
        Ok(Attempt::Failed { why, report: Some(Box::new(report)), blocked: false })
    }

    async fn save_draft(&self, plan: &Plan, code: &str, number: u32) {
        let folder = if number == 1 { String::new() } else { format!("correction_{}/", number - 1) };
        let plan = serde_json::to_vec_pretty(plan).unwrap_or_default();
        self.keep(&format!("{folder}plan.json"), plan).await;
        self.keep(&format!("{folder}code.py"), code.as_bytes().to_vec()).await;
    }

    /// Keeps a file of the turn. The history is what must not be lost; a run folder that cannot be written is said in the
    /// log and does not stop the work.
    pub(super) async fn keep(&self, name: &str, bytes: Vec<u8>) {
        if let Err(error) = self.host.save(name, bytes).await {
            tracing::warn!("{name} could not be kept in the run folder: {}", error.0);
        }
    }

    async fn judge(&mut self, plan: &Plan, code: &str) -> Result<Verdict, Ended> {
        self.stage(Role::SafetyCritic, "checking…").await?;
        let started = Instant::now();
        let mut policy = self.context.policy.clone();
        if asks_for_sample_data(&self.request) {
            policy.allow(Capability::SampleData);
        }
        let mut verdict = safety::validate(code, &policy);
        if plan.requires_confirmation && verdict.verdict == VerdictKind::Allow {
            verdict.verdict = VerdictKind::Ask;
            verdict.findings.push(confirmation(plan));
        }
        self.timings.checks_ms += started.elapsed().as_secs_f64() * 1000.0;
        self.host.emit(TurnEvent::Verdict { verdict: verdict.verdict, findings: verdict.findings.clone() }).await?;
        Ok(verdict)
    }

    async fn ask_person(&mut self, findings: Vec<Finding>) -> Result<(), Ended> {
        let asked: Vec<Finding> =
            findings.into_iter().filter(|finding| finding.verdict != VerdictKind::Allow).collect();
        self.stage(Role::SafetyCritic, "waiting for you").await?;
        let request = format!("turn-{}-{}", self.number, uuid::Uuid::new_v4().simple());
        let decision = tokio::select! {
            decision = self.host.ask(request.clone(), asked) => decision,
            () = self.context.cancel.cancelled() => return Err(Ended::Stopped),
        };
        self.host.emit(TurnEvent::PermissionDecided { request, decision }).await?;
        if decision == Decision::Deny {
            let scene = self.scene_sentence();
            self.say(format!("You did not allow this, so it was not run.{scene}")).await?;
            let problem = Problem {
                kind: "Refused".into(),
                message: "The program was not allowed to run.".into(),
                advice: "Allow it when asked, or ask for it in another way.".into(),
            };
            return Err(Ended::Problem(Finish::Failed, problem));
        }
        Ok(())
    }

    async fn execute(
        &mut self,
        plan: &Plan,
        code: &str,
        number: u32,
        grants: Option<RunGrants>,
    ) -> Result<RunReport, Ended> {
        let Some(slicer) = self.context.slicer else {
            return Err(Ended::Problem(Finish::Failed, Problem { kind: "NoSlicer".into(), ..Problem::default() }));
        };
        let of = self.context.limits.attempts;
        self.stage(Role::Executor, format!("running (attempt {number} of {of})…")).await?;
        let started = Instant::now();
        let request = RunRequest {
            id: format!("t{}a{number}-{}", self.number, &uuid::Uuid::new_v4().simple().to_string()[..8]),
            code: code.to_owned(),
            timeout_ms: self.context.limits.run_timeout_ms,
            restore_on_failure: true,
            grants,
            ..RunRequest::default()
        };
        let run = request.id.clone();
        self.ran += 1;
        let overdue = Duration::from_millis(request.timeout_ms) + PATIENCE;
        let mut running = std::pin::pin!(slicer.run(request, &self.context.cancel));
        let outcome = match tokio::time::timeout(overdue, &mut running).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let words = "the time is over, but Slicer is still busy and cannot be interrupted right now…";
                self.stage(Role::Executor, words).await?;
                running.await
            }
        };
        let report = match outcome {
            Ok(outcome) => self.verified(slicer, plan, outcome, number).await,
            Err(error) => unanswered(run, number, &error),
        };
        self.timings.run_ms += started.elapsed().as_secs_f64() * 1000.0;
        self.not_put_back.extend(left_changed(&report));
        self.host.emit(TurnEvent::RunFinished { report: Box::new(report.clone()) }).await?;
        let bytes = serde_json::to_vec_pretty(&report).unwrap_or_default();
        self.keep(if number == 1 { "result.json" } else { "result_last.json" }, bytes).await;
        if report.ok && !report.diff.is_empty() {
            self.picture(slicer).await?;
        }
        Ok(report)
    }

    /// The report of a run: its checks, and the scene put back when one of them failed.
    async fn verified(&self, slicer: &Slicer, plan: &Plan, outcome: RunOutcome, number: u32) -> RunReport {
        let change = SceneChange { before: &outcome.before, after: &outcome.after, diff: &outcome.diff };
        let checks = if outcome.ok { verify(plan, &change) } else { Vec::new() };
        let held = !checks.iter().any(|check| check.passed == Some(false));
        let mut restored = outcome.restored;
        if outcome.ok && !held && outcome.undoable {
            restored = Some(slicer.undo(&outcome.id).await.unwrap_or_else(|error| RestoreReport {
                complete: false,
                missing: vec![error.to_string()],
                ..RestoreReport::default()
            }));
        }
        RunReport {
            run: outcome.id,
            attempt: number,
            ok: outcome.ok && held,
            value: outcome.value,
            stdout: outcome.stdout,
            stderr: outcome.stderr,
            vtk: outcome.vtk,
            log: outcome.warnings.into_iter().chain(outcome.log).collect(),
            error: outcome.error,
            diff: outcome.diff,
            checks,
            duration_ms: outcome.duration_ms,
            undoable: outcome.undoable && restored.is_none(),
            restored,
            touched: outcome.touched,
            refused: outcome.refused,
            dialogs: outcome.dialogs,
        }
    }

    /// The picture after a run. Without one the turn goes on: the scene is what counts, and the pane can be refreshed.
    async fn picture(&self, slicer: &Slicer) -> Result<(), Ended> {
        match slicer.screenshot(&ViewRequest::application()).await {
            Ok(shot) => self.keep_picture("After this run", "after", &shot.mime, shot.bytes).await,
            Err(error) => {
                tracing::warn!("no picture after the run: {error}");
                Ok(())
            }
        }
    }

    pub(super) async fn keep_picture(&self, title: &str, stem: &str, mime: &str, bytes: Vec<u8>) -> Result<(), Ended> {
        let (width, height) = picture_size(&bytes).unwrap_or((0, 0));
        let ending = match mime {
            "image/png" => "png",
            "image/gif" => "gif",
            "image/webp" => "webp",
            _ => "jpg",
        };
        let path = match self.host.save(&format!("{stem}.{ending}"), bytes).await {
            Ok(path) => path.to_string_lossy().into_owned(),
            Err(error) => {
                tracing::warn!("a picture could not be kept: {}", error.0);
                return Ok(());
            }
        };
        self.host.emit(TurnEvent::Screenshot { title: title.into(), path, width, height }).await?;
        Ok(())
    }
}

/// How long after its time limit a run may take to end before the person is told that it does not.
const PATIENCE: Duration = Duration::from_secs(2);

/// The type that a run without an answer has in its report.
const NO_ANSWER: &str = "NoAnswer";

/// The report of a run that was sent and not answered: nothing is known of the scene, and that is what it says.
fn unanswered(run: String, attempt: u32, error: &SlicerError) -> RunReport {
    let what = format!("{error} Whether the scene changed is not known. {}", error.advice());
    let error = RunError { kind: NO_ANSWER.into(), message: what, ..RunError::default() };
    RunReport { run, attempt, ok: false, error: Some(error), undoable: true, ..RunReport::default() }
}

/// What of the scene may differ from before, after a run that failed.
fn left_changed(report: &RunReport) -> Vec<String> {
    match (&report.restored, report.ok) {
        (_, true) => Vec::new(),
        (Some(restored), false) if restored.complete => Vec::new(),
        (Some(restored), false) => restored.missing.clone(),
        (None, false) if report.error.as_ref().is_some_and(|error| error.kind == NO_ANSWER) => {
            vec!["whether the run changed the scene is not known".into()]
        }
        (None, false) if report.diff.is_empty() => Vec::new(),
        (None, false) => vec!["what the run changed could not be put back by itself".into()],
    }
}

/// Width and height in pixels of an encoded picture.
fn picture_size(bytes: &[u8]) -> Option<(u32, u32)> {
    image::ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?.into_dimensions().ok()
}

/// Whether the person's own words ask for sample data: then a second question whether it may be fetched would only teach
/// people to press Allow. A program that fetches it unasked still asks, and so does a request that says not to.
fn asks_for_sample_data(request: &str) -> bool {
    const NAMES: [&str; 11] = [
        "mrhead",
        "ctchest",
        "ctacardio",
        "ctaabdomen",
        "mrbraintumor",
        "ctliver",
        "mrusprostate",
        "ctmrbrain",
        "cbctdental",
        "ctcardioseq",
        "ctpcardioseq",
    ];
    let lower = request.to_lowercase();
    let words: Vec<&str> =
        lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let negated = words.iter().any(|word| matches!(*word, "not" | "don" | "dont" | "never" | "without" | "no"));
    let sample = words.iter().any(|word| matches!(*word, "sample" | "samples" | "demo"));
    let packed = words.concat();
    let named = NAMES.iter().any(|name| packed.contains(name));
    let loads = words.iter().any(|word| {
        matches!(
            *word,
            "load" | "open" | "download" | "get" | "fetch" | "import" | "show" | "bring" | "use" | "give" | "add"
        )
    });
    // An answer to "Which sample?" is the bare name.
    (sample || named) && !negated && (loads || words.len() <= 4)
}

fn confirmation(plan: &Plan) -> Finding {
    Finding {
        capability: Capability::OverwriteData,
        // About the plan as a whole, not a place in it: never granted beyond this run.
        line: 0,
        column: 0,
        text: plan.task_summary.clone(),
        why: "The plan itself asks for your confirmation before it runs.".into(),
        instead: String::new(),
        verdict: VerdictKind::Ask,
        scope: None,
    }
}

fn blocked_text(findings: &[Finding]) -> String {
    let list: Vec<String> = findings
        .iter()
        .filter(|finding| finding.verdict == VerdictKind::Block)
        .map(|finding| {
            let instead =
                if finding.instead.is_empty() { String::new() } else { format!(" Instead: {}", finding.instead) };
            format!("line {}: {}{instead}", finding.line, finding.why)
        })
        .collect();
    format!("The safety check does not let this program run. {}", list.join(" "))
}

fn outcome_line(report: &RunReport) -> String {
    let value = report.value.to_string();
    let value: String = value.chars().take(400).collect();
    format!(
        "ran in {:.0} ms; {} added, {} removed, {} changed; value {value}",
        report.duration_ms,
        report.diff.added.len(),
        report.diff.removed.len(),
        report.diff.changed.len()
    )
}

/// The failure in one line for people.
fn failure_text(report: &RunReport) -> String {
    if let Some(error) = &report.error {
        let line = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        return match error.kind.as_str() {
            "TimeLimit" => format!("The program was stopped at its time limit{line}."),
            "Stopped" => "The program was stopped.".into(),
            NO_ANSWER => error.message.clone(),
            kind => format!("{kind}{line}: {}", error.message),
        };
    }
    let failed: Vec<String> = report
        .checks
        .iter()
        .filter(|check| check.passed == Some(false))
        .map(|check: &CheckResult| format!("{} ({})", check.what, check.seen))
        .collect();
    if !failed.is_empty() {
        return format!("The scene is not as planned: {}", failed.join("; "));
    }
    match report.vtk.iter().find(|message| message.kind == "error") {
        Some(message) => format!("VTK reported an error: {}", message.text.trim()),
        None => "The run failed and gave no reason.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the person's own words are consent, and only when they ask for it.
    #[test]
    fn sample_data_is_asked_for_in_words() {
        for yes in [
            "Load the sample chest CT",
            "load MRHead please",
            "open MR Head",
            "MRHead",
            "sample CT",
            "Can you get me the CTChest data?",
        ] {
            assert!(asks_for_sample_data(yes), "{yes}");
        }
        for no in [
            "Segment the bone in this volume",
            "Resample the CT to 1 mm",
            "Resample, then load the file",
            "Don't load sample data, use the CT",
            "Compute the mean over every sample point of the curve in the patient scan",
        ] {
            assert!(!asks_for_sample_data(no), "{no}");
        }
    }
}
