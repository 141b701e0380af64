//! The cards of a run: plan, code, permission, result, picture, repair.

use egui::{Color32, Label, RichText, Sense, StrokeKind, Ui, Vec2, vec2};

use crate::engine::{
    Capability, CheckResult, Decision, Expectation, Finding, Plan, RestoreReport, RunReport, SceneDiff, VerdictKind,
};

use super::cards::{CardView, bullets, card_ui, icon_heading, text_well};
use super::icons::{self, Icon};
use super::markdown::{code_edit_ui, code_ui};
use super::pictures::Picture;
use super::state::Action;
use super::timeline::{Card, CardKind};
use super::tokens::{self, font, palette, radius, size, space};
use super::widgets::{
    Line, card_frame, danger_button, focus_ring, icon_text, inset_ui, line_ui, plain_button, primary_button, small,
    soft, strong,
};
use super::words;

pub fn plan_ui(ui: &mut Ui, card: &Card, plan: &Plan, view: &mut CardView<'_>) {
    let p = palette(ui);
    let steps = plan.steps.len();
    let meta = if steps == 0 { String::new() } else { words::count(steps, "step", "steps") };
    let detail = plan.task_summary.as_str();
    let line = Line { icon: Icon::Plan, colour: p.text_soft, title: "Plan", detail, meta: &meta, open: None };
    if !view.folding(ui, card.id, false, line, 0.0) {
        return;
    }
    inset_ui(ui, |ui| {
        if !plan.task_summary.is_empty() {
            ui.add(Label::new(&plan.task_summary).wrap());
        }
        ui.horizontal_wrapped(|ui| {
            level(ui, "Confidence", &plan.overall_confidence, [p.bad, p.warn, p.ok]);
            level(ui, "Risk", &plan.risk_level, [p.ok, p.warn, p.bad]);
        });
        for (number, step) in plan.steps.iter().enumerate() {
            ui.add_space(space::SMALL);
            strong(ui, &format!("{}. {}", number + 1, step.action));
            if !step.api.is_empty() {
                ui.add(Label::new(RichText::new(&step.api).monospace().size(font::SMALL).color(p.text_soft)).wrap());
            }
            let expected: Vec<_> = step.expected_scene_change.iter().map(expectation).collect();
            bullets(ui, Icon::Eye, p.text_soft, &expected);
            if !step.evidence.is_empty() {
                icon_text(ui, Icon::Book, p.text_soft, &format!("Seen in {}", step.evidence));
            }
            bullets(ui, Icon::Question, p.warn, &step.assumptions);
        }
        if !plan.unverified_assumptions.is_empty() {
            ui.add_space(space::SMALL);
            small(ui, "Assumed, not checked");
            bullets(ui, Icon::Question, p.warn, &plan.unverified_assumptions);
        }
    });
}

/// "Risk: low", with a colour as well as the word. `colours` are for low, medium and high.
fn level(ui: &mut Ui, what: &str, value: &str, colours: [Color32; 3]) {
    let p = palette(ui);
    let colour = match value {
        "low" => colours[0],
        "medium" => colours[1],
        "high" => colours[2],
        _ => p.text_soft,
    };
    let value = if value.is_empty() { "not told" } else { value };
    ui.label(RichText::new(format!("{what}:")).color(p.text_soft));
    ui.label(RichText::new(value).color(colour));
    ui.add_space(space::BASE);
}

/// What a plan expects of the scene, in words.
fn expectation(expected: &Expectation) -> String {
    if let Some(text) = &expected.text {
        return text.clone();
    }
    let class = expected.class.as_deref().unwrap_or("node").trim_start_matches("vtkMRML").trim_end_matches("Node");
    let name = expected.name.as_deref().map(|name| format!(" “{name}”")).unwrap_or_default();
    match expected.kind.as_str() {
        "node_exists" if expected.new => format!("A new {class}{name} is in the scene"),
        "node_exists" => format!("A {class}{name} is in the scene"),
        "node_count_delta" => match expected.delta.unwrap_or_default() {
            delta if delta < 0 => format!("{} {class} fewer than before", -delta),
            delta => format!("{delta} {class} more than before"),
        },
        "node_modified" => format!("{class}{name} is changed"),
        "node_has_display" => format!("{class}{name} can be seen"),
        "node_has_content" => format!("{class}{name} is not empty"),
        "node_name_matches" => format!("A {class} is named like{name}"),
        "layout_changed" => "The layout changes".into(),
        "selection_changed" => "The selected volume changes".into(),
        "module_entered" => format!("The module{name} is open"),
        other => format!("{}{name}", other.replace('_', " ")),
    }
}

pub fn code_card_ui(ui: &mut Ui, card: &Card, view: &mut CardView<'_>) {
    let CardKind::Code { attempt, code, verdict, findings } = &card.kind else { return };
    let p = palette(ui);
    let blocked = *verdict == Some(VerdictKind::Block);
    let lines = words::count(code.trim_end().lines().count(), "line", "lines");
    let attempt = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
    let detail = match verdict {
        Some(VerdictKind::Allow) => format!("Python, {lines}{attempt}, safety check passed"),
        Some(VerdictKind::Ask) => format!("Python, {lines}{attempt}, needed your permission"),
        Some(VerdictKind::Block) => format!("Python, {lines}{attempt}, not allowed"),
        None => format!("Python, {lines}{attempt}"),
    };
    let colour = if blocked { p.bad } else { p.text_soft };
    let line = Line { icon: Icon::Code, colour, title: "Code", detail: &detail, meta: "", open: None };
    if !view.folding(ui, card.id, blocked, line, 0.0) {
        return;
    }
    inset_ui(ui, |ui| {
        for finding in findings {
            finding_ui(ui, finding, true);
        }
        if let Some(mut text) = view.edited.remove(&card.id) {
            code_edit_ui(ui, &mut text, "Code to run");
            let keep = ui.horizontal_wrapped(|ui| {
                let run = ui.add_enabled_ui(!view.running, |ui| primary_button(ui, "Run this code")).inner;
                if run.clicked() {
                    view.actions.push(Action::RunCode(text.clone()));
                    return false;
                }
                !plain_button(ui, "Discard changes").clicked()
            });
            if keep.inner {
                view.edited.insert(card.id, text);
            }
            return;
        }
        code_ui(ui, code, "Python code");
        ui.horizontal_wrapped(|ui| {
            let run = ui.add_enabled_ui(!view.running, |ui| plain_button(ui, "Run again")).inner;
            if run.on_hover_text("Check and run this code once more").clicked() {
                view.actions.push(Action::RunCode(code.clone()));
            }
            if plain_button(ui, "Edit and run").clicked() {
                view.edited.insert(card.id, code.clone());
            }
            if plain_button(ui, "Copy code").clicked() {
                ui.copy_text(code.clone());
                view.actions.push(Action::Copied("Code"));
            }
        });
    });
}

/// A finding of the safety check: what, where and why; `instead` also tells what would do instead, which is meant for
/// whoever writes the code and not for who is asked.
fn finding_ui(ui: &mut Ui, finding: &Finding, instead: bool) {
    let p = palette(ui);
    let colour = if finding.verdict == VerdictKind::Block { p.bad } else { p.warn };
    icon_text(ui, Icon::Shield, colour, &words::without_backticks(&finding.why));
    if finding.line == 0 && finding.text.is_empty() {
        return;
    }
    ui.horizontal_top(|ui| {
        ui.add_space(size::ICON + space::HALF);
        // Line 0 is about the whole of it, and no place that a person could look at.
        let place = if finding.line == 0 { String::new() } else { format!("line {}  ", finding.line) };
        let mut job = egui::text::LayoutJob::default();
        let style =
            |font: egui::FontId, color: Color32| egui::TextFormat { font_id: font, color, ..Default::default() };
        job.append(&place, 0.0, style(egui::FontId::proportional(font::SMALL), p.text_soft));
        job.append(finding.text.trim(), 0.0, style(egui::FontId::monospace(font::SMALL + 0.5), p.text));
        ui.add(Label::new(job).wrap());
    });
    if instead && !finding.instead.is_empty() {
        ui.horizontal_top(|ui| {
            ui.add_space(size::ICON + space::HALF);
            soft(ui, &format!("Instead: {}", words::without_backticks(&finding.instead)));
        });
    }
}

/// The question before code that can do harm; one line once it is answered.
pub fn permission_ui(ui: &mut Ui, card: &Card, view: &mut CardView<'_>) {
    let CardKind::Permission { request, purpose, findings, decision, expired } = &card.kind else { return };
    let p = palette(ui);
    let mut wants: Vec<_> = findings.iter().map(|finding| words::capability(finding.capability)).collect();
    wants.dedup();
    let wants = match wants.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "do something that needs your permission".into(),
    };
    if decision.is_some() || *expired {
        let (title, icon, colour) = match decision {
            Some(Decision::Deny) => (words::decision(Decision::Deny), Icon::Cross, p.bad),
            Some(decision) => (words::decision(*decision), Icon::Shield, p.text_soft),
            None => ("Not answered", Icon::Shield, p.text_soft),
        };
        let line = Line { icon, colour, title, detail: &wants, meta: "", open: None };
        if view.folding(ui, card.id, false, line, 0.0) {
            inset_ui(ui, |ui| findings.iter().for_each(|finding| finding_ui(ui, finding, true)));
        }
        return;
    }
    card_frame(p.warn_ground, p.warn).show(ui, |ui| {
        ui.set_width(ui.available_width());
        // A question about money is about the model and not about code, and cannot be answered once and for all.
        let spends = findings.iter().any(|finding| finding.capability == Capability::Spend);
        let who = if spends { "Going on may" } else { "This code wants to" };
        icon_heading(ui, Icon::Shield, p.warn, &format!("{who} {wants}. Allow it?"));
        if !purpose.is_empty() {
            icon_text(ui, Icon::Plan, p.text_soft, &format!("What for: {purpose}"));
        }
        for finding in findings {
            finding_ui(ui, finding, false);
        }
        ui.add_space(space::SMALL);
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing = Vec2::splat(space::SMALL);
            let mut decide = |response: egui::Response, decision: Decision, hint: &str| {
                if response.on_hover_text(hint).clicked() {
                    view.actions.push(Action::Decide(request.clone(), decision));
                }
            };
            decide(primary_button(ui, "Allow once"), Decision::AllowOnce, "Only this run");
            let conversation = plain_button(ui, "For this conversation");
            decide(conversation, Decision::AllowConversation, "Do not ask for this again in this conversation");
            if !spends {
                let always = plain_button(ui, "Always");
                let hint = "Never ask for this again. You can take it back in Settings, Safety";
                decide(always, Decision::AllowAlways, hint);
            }
            let hint = if spends { "The model is not asked" } else { "The code will not run" };
            decide(danger_button(ui, "Deny"), Decision::Deny, hint);
        });
    });
}

/// Outcome of a run in one line; open when something is wrong.
pub fn result_ui(
    ui: &mut Ui,
    card: &Card,
    report: &RunReport,
    undone: Option<&RestoreReport>,
    view: &mut CardView<'_>,
) {
    let p = palette(ui);
    // What the person stopped did not fail.
    let stopped = report.error.as_ref().is_some_and(|error| error.kind == "Stopped");
    let restored = report.restored.as_ref().is_some_and(|restore| restore.complete);
    let (icon, colour, title) = match undone {
        Some(_) => (Icon::Undo, p.text_soft, "Undone"),
        None if report.ok => (Icon::Check, p.ok, "Done"),
        None if stopped => (Icon::Stop, p.text_soft, "Stopped"),
        None => (Icon::Cross, p.bad, "Did not work"),
    };
    let detail = match undone {
        Some(restore) if restore.complete => "The scene is as it was before this run.".to_owned(),
        Some(restore) => format!("Not everything could be put back: {}", restore.missing.join(", ")),
        None if stopped && restored => "The scene was put back.".to_owned(),
        None => outcome_line(report),
    };
    let meta = words::duration(report.duration_ms);
    let can_undo = undone.is_none() && view.undoable.as_deref() == Some(&report.run);
    let reserve = if can_undo { 64.0 } else { 0.0 };
    let open = ui
        .horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 0.0;
            let line = Line { icon, colour, title, detail: &detail, meta: &meta, open: None };
            let open = view.folding(ui, card.id, !report.ok && !stopped && undone.is_none(), line, reserve);
            if can_undo {
                ui.add_space(space::SMALL);
                let undo = ui.add_enabled_ui(!view.running, |ui| plain_button(ui, "Undo")).inner;
                if undo.on_hover_text("Put the scene back as it was before this run (Ctrl+Z)").clicked() {
                    view.actions.push(Action::Undo(report.run.clone()));
                }
            }
            open
        })
        .inner;
    if open {
        inset_ui(ui, |ui| result_details_ui(ui, report));
    }
}

fn outcome_line(report: &RunReport) -> String {
    if let Some(error) = &report.error {
        return format!("{}: {}", error.kind, error.message);
    }
    let mut parts = vec![words::difference(&report.diff)];
    let checked = report.checks.iter().filter(|check| check.passed.is_some()).count();
    let passed = report.checks.iter().filter(|check| check.passed == Some(true)).count();
    if checked > 0 {
        parts.push(format!("{passed} of {} passed", words::count(checked, "check", "checks")));
    }
    if !report.refused.is_empty() {
        parts.push(format!("{} refused", words::count(report.refused.len(), "thing", "things")));
    }
    if let Some(last) = report.stdout.trim().lines().last() {
        parts.push(last.to_owned());
    }
    parts.join(" · ")
}

fn result_details_ui(ui: &mut Ui, report: &RunReport) {
    let p = palette(ui);
    if let Some(error) = &report.error {
        let line = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        icon_text(ui, Icon::Warning, p.bad, &format!("{}{line}: {}", error.kind, error.message));
        if !error.traceback.trim().is_empty() {
            text_well(ui, &error.traceback, "Traceback");
        }
    }
    for refused in &report.refused {
        icon_text(ui, Icon::Shield, p.bad, &format!("Not allowed here, and stopped: {refused}"));
    }
    for dialog in &report.dialogs {
        icon_text(ui, Icon::Question, p.text_soft, &dialog.in_words());
    }
    for check in &report.checks {
        check_ui(ui, check);
    }
    diff_ui(ui, &report.diff);
    if !report.value.is_null() {
        small(ui, "Value");
        let text = match &report.value {
            serde_json::Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        };
        text_well(ui, &text, "Value");
    }
    for (what, text) in [("Output", &report.stdout), ("Error output", &report.stderr)] {
        if !text.trim().is_empty() {
            small(ui, what);
            text_well(ui, text, what);
        }
    }
    for message in &report.vtk {
        let colour = if message.kind == "error" { p.bad } else { p.warn };
        icon_text(ui, Icon::Warning, colour, &format!("VTK {}: {}", message.kind, message.text.trim()));
    }
    match &report.restored {
        Some(restore) if restore.complete => icon_text(ui, Icon::Undo, p.text_soft, "The scene was put back."),
        Some(restore) => {
            let text = format!("The scene was put back, but not: {}", restore.missing.join(", "));
            icon_text(ui, Icon::Warning, p.warn, &text);
        }
        None => {}
    }
    if !report.touched.is_empty() {
        let text = format!("The practice Slicer only pretends to have: {}", report.touched.join(", "));
        icon_text(ui, Icon::Question, p.warn, &text);
    }
}

fn check_ui(ui: &mut Ui, check: &CheckResult) {
    let p = palette(ui);
    let (icon, colour, word) = match check.passed {
        Some(true) => (Icon::Check, p.ok, "passed"),
        Some(false) => (Icon::Cross, p.bad, "failed"),
        None => (Icon::Question, p.text_soft, "not checked"),
    };
    let seen = if check.seen.is_empty() { String::new() } else { format!(" — {}", check.seen) };
    icon_text(ui, icon, colour, &format!("{} ({word}){seen}", words::capitalised(&check.what)));
}

fn diff_ui(ui: &mut Ui, diff: &SceneDiff) {
    let p = palette(ui);
    for node in &diff.added {
        icon_text(ui, Icon::Plus, p.ok, &format!("{} added ({})", node.name, class_word(&node.class)));
    }
    for node in &diff.changed {
        let what = if node.what.is_empty() { String::new() } else { format!(": {}", node.what.join(", ")) };
        icon_text(ui, Icon::Pencil, p.accent, &format!("{} changed{what}", node.name));
    }
    for node in &diff.removed {
        icon_text(ui, Icon::Minus, p.bad, &format!("{} removed ({})", node.name, class_word(&node.class)));
    }
    for view in &diff.views {
        icon_text(ui, Icon::Eye, p.text_soft, view);
    }
}

fn class_word(class: &str) -> &str {
    class.trim_start_matches("vtkMRML").trim_end_matches("Node")
}

/// A picture, large enough to be judged; a click opens it in the pane.
pub fn screenshot_ui(ui: &mut Ui, title: &str, path: &str, pixels: Vec2, view: &mut CardView<'_>) {
    let p = palette(ui);
    let pixels = if pixels.min_elem() < 1.0 { vec2(4.0, 3.0) * 100.0 } else { pixels };
    let limit = vec2(ui.available_width(), size::THUMBNAIL_HEIGHT);
    let scale = (limit / pixels).min_elem().min(1.0);
    let (rect, response) = ui.allocate_exact_size(pixels * scale, Sense::click());
    let name = format!("Screenshot: {title}");
    let enabled = ui.is_enabled();
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, enabled, &name));
    if ui.is_rect_visible(rect) {
        let picture = view.pictures.get(path);
        picture_ui(ui, &picture, rect);
        let stroke = egui::Stroke::new(1.0, if response.hovered() { p.accent } else { p.line });
        ui.painter().rect_stroke(rect, egui::CornerRadius::same(radius::CARD), stroke, StrokeKind::Outside);
        focus_ring(ui, &response);
    }
    let response = response
        .on_hover_cursor(egui::CursorIcon::PointingHand)
        .on_hover_text(format!("{title}. Click to look at it closely."));
    if response.clicked() {
        view.actions.push(Action::ShowPicture(path.to_owned()));
    }
}

/// Paints a picture, or says why there is none yet.
fn picture_ui(ui: &Ui, picture: &Picture, rect: egui::Rect) {
    let p = palette(ui);
    let corner = egui::CornerRadius::same(radius::CARD);
    match picture {
        Picture::Ready(texture) => {
            egui::Image::new((texture.id(), texture.size_vec2())).corner_radius(corner).paint_at(ui, rect);
        }
        Picture::Loading => {
            ui.painter().rect_filled(rect, corner, p.well);
            icons::paint(ui.painter(), Icon::Camera, rect, 24.0, p.text_soft);
        }
        Picture::Failed(why) => {
            ui.painter().rect_filled(rect, corner, p.well);
            let font = egui::FontId::proportional(font::SMALL);
            let galley = ui.painter().layout(why.clone(), font, p.text_soft, rect.width() - 24.0);
            ui.painter().galley(rect.center() - galley.size() / 2.0, galley, tokens::CLEAR);
        }
    }
}

/// An attempt that did not work and was corrected, folded away.
pub fn repair_ui(ui: &mut Ui, card: &Card, attempt: u32, of: u32, why: &str, inside: &[Card], view: &mut CardView<'_>) {
    let p = palette(ui);
    let title = format!("Correcting (attempt {attempt} of {of})");
    let line = Line { icon: Icon::Repair, colour: p.warn, title: &title, detail: why, meta: "", open: None };
    if inside.is_empty() {
        line_ui(ui, &line, 0.0);
    } else if view.folding(ui, card.id, false, line, 0.0) {
        inset_ui(ui, |ui| {
            for one in inside {
                ui.push_id(one.id, |ui| card_ui(ui, one, view));
            }
        });
    }
}
