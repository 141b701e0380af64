//! One turn: from a person's message to an answer, with or without code that ran.
//!
//! [`run_turn`] is the pipeline; [`event`](TurnEvent) what it tells; `attempt` the rings around a run; `think` the talk
//! with a model; [`recipes`] the provider that needs none; `verify` the judgement of the scene.

mod attempt;
mod budget;
mod event;
mod grants;
mod help;
mod host;
mod plan;
mod prompt;
pub mod recipes;
mod reply;
mod think;
mod tools;
mod turn;
mod verify;

pub use budget::{Allowance, Budget, Spending};
pub use event::*;
pub use grants::grants;
pub use host::{HostError, TurnHost};
pub use plan::*;
pub use prompt::{PastTurn, estimate_tokens};
pub use turn::{Brain, Limits, SentPicture, TurnContext, TurnResult, run_turn};
