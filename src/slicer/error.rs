//! What can go wrong between the program and Slicer, in words for the person.
//!
//! A bridge answers failures as text, and every bridge words them in its own way. So the text is read for signs of the
//! few causes that a person can do something about; what it said is kept, because a wrong guess must not hide it.

/// Why a request to Slicer failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlicerError {
    /// Nothing that is a Slicer answers.
    #[error("No Slicer answers: {said}")]
    NoSlicer { said: String },
    /// The Web Server runs, but does not take code.
    #[error("Slicer's Web Server does not accept Python code.")]
    ExecOff,
    /// Slicer is working on something, or hangs.
    #[error("Slicer is busy: {what}")]
    Busy { what: String },
    /// The connection to Slicer ended in the middle of a request.
    #[error("Slicer ended without an answer: {said}")]
    Ended { said: String },
    /// The bridge could not be started.
    #[error("The bridge to Slicer ({program}) could not be started: {why}")]
    BridgeStart { program: String, why: String },
    /// The bridge ended, or does not speak MCP.
    #[error("The bridge to Slicer failed: {why}")]
    Bridge { why: String },
    /// The bridge does not allow this.
    #[error("The bridge to Slicer refuses this: {said}")]
    Refused { said: String },
    /// Slicer answered, but not with what was asked for.
    #[error("Slicer's answer cannot be used: {said}")]
    Answer { said: String },
}

impl SlicerError {
    /// The name of the cause, as machine output gives it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoSlicer { .. } => "NoSlicer",
            Self::ExecOff => "ExecOff",
            Self::Busy { .. } => "SlicerBusy",
            Self::Ended { .. } => "SlicerEnded",
            Self::BridgeStart { .. } | Self::Bridge { .. } => "BridgeFailed",
            Self::Refused { .. } => "Refused",
            Self::Answer { .. } => "SlicerAnswer",
        }
    }

    /// What the person can do about it.
    pub fn advice(&self) -> String {
        match self {
            Self::NoSlicer { .. } => {
                "Start 3D Slicer, open Modules > Servers > Web Server, tick \"Slicer API exec\" and press Start; or start \
                 the practice Slicer."
            }
            Self::ExecOff => {
                "In Slicer, open Modules > Servers > Web Server, tick \"Slicer API exec\", then press Stop and Start."
            }
            Self::Busy { .. } => {
                "Wait until Slicer is idle, close a dialog that it may show, or restart it if it hangs."
            }
            Self::Ended { .. } => "Look whether Slicer is still there; start it again if it is gone.",
            Self::BridgeStart { .. } => "Check the bridge command in the settings.",
            Self::Bridge { .. } => "Connect again; if it fails again, check the bridge command in the settings.",
            Self::Refused { .. } => "Start the bridge without its read-only option to run code.",
            Self::Answer { .. } => "Try again. If it comes again, restart Slicer and connect once more.",
        }
        .to_owned()
    }

    /// The cause of a failure that a bridge reported as text.
    pub(super) fn from_text(text: &str) -> Self {
        let said = shorten(text);
        let lower = text.to_lowercase();
        let has = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
        if has(&["refused: this bridge", "read-only"]) {
            return Self::Refused { said };
        }
        if has(&["does not accept python code"]) || (has(&["unknown command"]) && has(&["/exec"])) {
            return Self::ExecOff;
        }
        if has(&["server error:"]) {
            return Self::Answer { said };
        }
        if has(&["connection aborted", "remotedisconnected", "without answering", "connection reset", "reset by peer"])
        {
            return Self::Ended { said };
        }
        if has(&["did not answer", "timed out", "timeout", "another request"]) {
            return Self::Busy { what: said };
        }
        if has(&["connection error", "refused", "not running", "http error 404", "invalid json", "cannot be reached"]) {
            return Self::NoSlicer { said: without_advice(&said) };
        }
        Self::Answer { said }
    }
}

/// What happened, without the label and the advice that our own bridge gives with it: the advice is ours to give.
fn without_advice(said: &str) -> String {
    let said = said.strip_prefix("Connection error: ").unwrap_or(said);
    said.split(" Start 3D Slicer").next().unwrap_or(said).trim().to_owned()
}

/// The first 400 characters, in one line.
pub(super) fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The person reads once what to do, not twice.
    #[test]
    fn advice_is_given_once() {
        let text = "Connection error: Slicer's Web Server is not running at http://127.0.0.1:2016/slicer. Start 3D Slicer, open it.";
        let error = SlicerError::from_text(text);
        assert_eq!(error.kind(), "NoSlicer");
        let shown = format!("{error} {}", error.advice());
        assert_eq!(shown.matches("Start 3D Slicer").count(), 1, "{shown}");
        assert!(shown.starts_with("No Slicer answers: Slicer's Web Server is not running at"), "{shown}");
    }

    /// Each bridge words a cause in its own way; the person gets the same advice. The texts are what bridges were seen to
    /// say.
    #[test]
    fn causes_are_recognised_in_the_words_of_different_bridges() {
        let cases = [
            ("Connection error: Slicer's Web Server is not running at http://127.0.0.1:2016/slicer.", "NoSlicer"),
            (
                "Connection error: HTTPConnectionPool(host='localhost', port=2016): Max retries exceeded with url: \
                 /slicer/exec (Caused by NewConnectionError(\"Failed to establish a new connection: [Errno 111] \
                 Connection refused\"))",
                "NoSlicer",
            ),
            ("Invalid JSON response: <html>hello</html>", "NoSlicer"),
            ("Server error: unknown command \"b'/exec'\"", "ExecOff"),
            ("Server error: Slicer's Web Server does not accept Python code. In Slicer, open …", "ExecOff"),
            ("Server error: name 'nope' is not defined", "SlicerAnswer"),
            (
                "Connection error: ('Connection aborted.', RemoteDisconnected('Remote end closed connection without \
                 response'))",
                "SlicerEnded",
            ),
            ("Connection error: Slicer closed the connection without answering: it has probably ended", "SlicerEnded"),
            ("Connection error: Slicer did not answer within 600 s.", "SlicerBusy"),
            ("Refused: this bridge was started with --read-only and runs no code.", "Refused"),
        ];
        for (text, kind) in cases {
            let error = SlicerError::from_text(text);
            assert_eq!(error.kind(), kind, "{text}");
            assert!(!error.advice().is_empty());
        }
    }

    #[test]
    fn long_answers_are_cut_between_characters() {
        let cut = shorten(&"頭 ".repeat(1000));
        assert!(cut.chars().count() == 401 && cut.ends_with('…'));
    }
}
