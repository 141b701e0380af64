//! Reads a reply that lies there already, without a server: the same intake and decoders as a call, so that what is
//! measured or tried on recorded bytes holds for a call.

use super::catalogue::Wire;
use super::error::LlmError;
use super::http_error::Party;
use super::intake::Intake;
use super::reply::Draft;
use super::types::{ChatReply, ChatRequest, Delta};

/// What came of a recorded reply.
#[derive(Debug)]
pub struct Recorded {
    pub reply: Result<ChatReply, LlmError>,
    /// The pieces in the order in which a caller would have got them.
    pub deltas: Vec<Delta>,
}

/// Reads the pieces of a body with status 200 as a call reads them as they arrive.
pub fn read_recorded<'a>(wire: Wire, pieces: impl IntoIterator<Item = &'a [u8]>) -> Recorded {
    let party = Party { provider: "recorded".into(), model: "recorded".into(), host: "recorded".into(), key: None };
    let (mut intake, mut draft, mut deltas) = (Intake::new(wire), Draft::default(), Vec::new());
    let mut read = Ok(());
    for piece in pieces {
        read = intake.push(piece, &mut draft);
        deltas.append(&mut draft.pending);
        if read.is_err() || draft.ended {
            break;
        }
    }
    if read.is_ok() {
        read = intake.finish(&mut draft);
        deltas.append(&mut draft.pending);
    }
    let arrived = draft.partial();
    let reply = match read {
        Err(fault) => Err(fault.into_error(&party).with_partial(arrived)),
        Ok(()) => draft.into_reply(&ChatRequest::default()).map_err(|(fault, detail)| LlmError::BadReply {
            fault,
            detail,
            partial: Box::new(arrived),
        }),
    };
    Recorded { reply, deltas }
}
