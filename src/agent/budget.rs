//! The budget: before a model is asked, what the call may cost is held against what the person wants to spend. Going over
//! is a question and never a surprise.

use super::turn::{Brain, Ended, Turn};
use super::{Decision, Finish, Problem, Role, TurnEvent, TurnHost};
use crate::llm::{ChatRequest, Usage};
use crate::safety::{Capability, Finding, VerdictKind};

/// An answer of a call is taken to be this long (tokens) when its cost is guessed beforehand.
const USUAL_ANSWER: u64 = 1_500;

/// How much may be spent, and how much was spent before this turn. US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Allowance {
    pub limit: f64,
    pub spent: f64,
}

/// The limits that a person set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Budget {
    pub conversation: Option<Allowance>,
    pub month: Option<Allowance>,
    /// True when the provider asks for money (it wants a key), so that an unknown price matters.
    pub paid: bool,
}

/// A model call as it is booked.
#[derive(Debug, Clone, PartialEq)]
pub struct Spending {
    pub provider: String,
    pub model: String,
    pub usage: Usage,
    /// `None`: the price is not known.
    pub cost_usd: Option<f64>,
}

impl Budget {
    /// Why a call needs the person's word, in one sentence; `None` when it stays within the budget. `turn` is what this
    /// turn has cost so far, `next` what the call may cost; `None` for a price that is not known.
    fn objection(&self, turn: Option<f64>, next: Option<f64>) -> Option<String> {
        let limits = [("conversation", self.conversation), ("month", self.month)];
        for (what, allowance) in limits {
            let Some(Allowance { limit, spent }) = allowance else { continue };
            let (Some(turn), Some(next)) = (turn, next) else {
                let words = format!(
                    "The price of this model is not known, so the budget of ${limit:.2} for this {what} cannot be kept."
                );
                return self.paid.then_some(words);
            };
            if spent + turn + next > limit {
                return Some(format!(
                    "The next call may cost about ${next:.4}; with the ${:.4} spent so far this goes over the budget of \
                     ${limit:.2} for this {what}.",
                    spent + turn
                ));
            }
        }
        None
    }
}

impl<H: TurnHost> Turn<'_, H> {
    /// Asks the person before a call that may go over the budget, once a turn.
    pub(super) async fn ask_before_spending(&mut self, request: &ChatRequest) -> Result<(), Ended> {
        let Brain::Model { client, provider, model, max_output, budget, .. } = &self.context.brain else {
            return Ok(());
        };
        if self.over_budget || self.context.policy.granted.contains(&Capability::Spend) {
            return Ok(());
        }
        let answer = max_output.map_or(USUAL_ANSWER, u64::from).min(USUAL_ANSWER);
        let usage = Usage { output: answer, ..client.estimate_input(request) };
        let next = self.context.catalogue.cost_usd(provider, model, &usage);
        let Some(why) = budget.objection(self.cost, next) else { return Ok(()) };
        self.stage(Role::SafetyCritic, "waiting for you").await?;
        let id = format!("turn-{}-{}", self.number, uuid::Uuid::new_v4().simple());
        let decision = tokio::select! {
            decision = self.host.ask(id.clone(), vec![question(&why)]) => decision,
            () = self.context.cancel.cancelled() => return Err(Ended::Stopped),
        };
        self.host.emit(TurnEvent::PermissionDecided { request: id, decision }).await?;
        if decision == Decision::Deny {
            let problem = Problem {
                kind: "Refused".into(),
                message: format!("Stopped before the budget was exceeded. {why}"),
                advice: "Allow it when asked, raise the budget in Settings → Model, or choose a cheaper model.".into(),
            };
            return Err(Ended::Problem(Finish::Failed, problem));
        }
        self.over_budget = true;
        Ok(())
    }
}

fn question(why: &str) -> Finding {
    Finding {
        capability: Capability::Spend,
        // No place in a program.
        line: 0,
        column: 0,
        text: String::new(),
        why: why.to_owned(),
        instead: String::new(),
        verdict: VerdictKind::Ask,
        scope: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asked before the limit is passed and not after; a price that nobody knows is said where money is at stake.
    #[test]
    fn a_call_that_goes_over_is_asked_for() {
        let budget = |spent| Budget { conversation: Some(Allowance { limit: 1.0, spent }), month: None, paid: true };
        assert_eq!(budget(0.5).objection(Some(0.4), Some(0.1)), None);
        assert!(budget(0.5).objection(Some(0.4), Some(0.11)).unwrap().contains("$1.00 for this conversation"));
        assert!(budget(0.0).objection(Some(0.0), None).unwrap().contains("not known"));
        assert!(budget(0.0).objection(None, Some(0.1)).unwrap().contains("not known"));
        let local = Budget { paid: false, ..budget(0.0) };
        assert_eq!(local.objection(Some(0.0), None), None);
        assert_eq!(Budget::default().objection(None, None), None);
        let month = Budget { month: Some(Allowance { limit: 5.0, spent: 5.0 }), ..Budget::default() };
        assert!(month.objection(Some(0.0), Some(0.001)).unwrap().contains("month"));
    }
}
