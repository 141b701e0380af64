//! Short messages at the edge of the window, which go away by themselves.

use crate::engine::Problem;

use super::super::action::{Action, Toast};
use super::State;

/// How long a message at the edge of the window stays, in milliseconds.
const TOAST_MS: i64 = 8_000;

impl State {
    /// Shows a short message; it goes away by itself.
    pub fn toast(&mut self, text: impl Into<String>, button: Option<(&'static str, Action)>) {
        self.push_toast(false, text.into(), String::new(), button, TOAST_MS);
    }

    pub(super) fn toast_problem(&mut self, problem: Problem) {
        self.push_toast(true, problem.message, problem.advice, None, TOAST_MS * 2);
    }

    fn push_toast(
        &mut self,
        bad: bool,
        text: String,
        advice: String,
        button: Option<(&'static str, Action)>,
        stays_ms: i64,
    ) {
        self.toasts.retain(|toast| toast.text != text);
        self.toasts_made += 1;
        let toast = Toast { id: self.toasts_made, bad, text, advice, button, until_ms: self.now_ms + stays_ms };
        self.toasts.push(toast);
        if self.toasts.len() > 4 {
            self.toasts.remove(0);
        }
    }

    /// Removes what has stood long enough; returns the milliseconds until the next one goes.
    pub fn age_toasts(&mut self) -> Option<i64> {
        let now = self.now_ms;
        self.toasts.retain(|toast| toast.until_ms > now);
        self.toasts.iter().map(|toast| toast.until_ms - now).min()
    }
}
