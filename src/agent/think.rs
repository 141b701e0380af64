//! The conversation with the model within a turn: streamed rounds of tool calls until it answers.

use std::time::{Duration, Instant};

use base64::Engine;
use tokio::sync::mpsc;

use super::reply::{Parts, Piece, Splitter};
use super::tools::{self, Tools};
use super::turn::{Brain, Ended, Turn};
use super::{Finish, Problem, Role, Spending, TurnEvent, TurnHost};
use crate::llm::{ChatReply, ChatRequest, Delta, Message, StopReason, ToolCall, Usage};

/// Pieces of text are gathered this long before they are stored and shown: fast enough to read along, few enough rows.
const GATHER: Duration = Duration::from_millis(40);

/// What streams in during one call.
#[derive(Default)]
struct Stream {
    splitter: Splitter,
    text: String,
    reasoning: String,
    /// All text of the answer, and what of it was shown.
    all: String,
    prose: String,
    shown: bool,
}

impl<H: TurnHost> Turn<'_, H> {
    /// Lets the model work until it answers without a tool call. `messages` grows by what was said. Gives the raw answer
    /// and its parts.
    pub(super) async fn think(
        &mut self,
        messages: &mut Vec<Message>,
        rounds: u32,
        role: Role,
    ) -> Result<(String, Parts), Ended> {
        let Brain::Model { temperature, max_output, effort, .. } = self.context.brain else {
            return Ok((String::new(), Parts::default()));
        };
        let mut tools = Tools::new(self.context.knowledge, self.context.slicer);
        for round in 0..=rounds {
            let last = round == rounds;
            if role != Role::Repairer {
                self.stage(role, if rounds == 0 { "writing the answer…" } else { "planning…" }).await?;
            }
            let offered = tools::definitions(self.context.slicer.is_some(), self.context.knowledge.has_library());
            if last && rounds > 0 {
                messages.push(Message::User { text: "No more tool calls are possible: answer now.".into() });
            }
            let request = ChatRequest {
                messages: messages.clone(),
                tools: offered,
                withhold_tools: last,
                temperature,
                max_output,
                effort,
            };
            self.ask_before_spending(&request).await?;
            let (reply, parts) = self.call_model(&request).await?;
            check_stop(&reply)?;
            if reply.tool_calls.is_empty() || last {
                return Ok((reply.text, parts));
            }
            messages.push(Message::Assistant {
                text: reply.text,
                reasoning: Some(reply.reasoning).filter(|text| !text.is_empty()),
                tool_calls: reply.tool_calls.clone(),
            });
            // Pictures follow all results: between a call and its result nothing else may stand.
            let mut pictures = Vec::new();
            for call in &reply.tool_calls {
                let (result, picture) = self.call_tool(&mut tools, call).await?;
                messages.push(result);
                pictures.extend(picture);
            }
            messages.extend(pictures);
        }
        Ok((String::new(), Parts::default()))
    }

    async fn call_tool(&mut self, tools: &mut Tools<'_>, call: &ToolCall) -> Result<(Message, Option<Message>), Ended> {
        let doing = if matches!(call.name.as_str(), "VectorSearch" | "Grep" | "SearchSymbol" | "SearchUiControls") {
            "searching…"
        } else {
            "reading…"
        };
        self.stage(Role::Retriever, doing).await?;
        self.host
            .emit(TurnEvent::ToolCall {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            })
            .await?;
        let outcome = tokio::select! {
            outcome = tools.run(call) => outcome,
            () = self.context.cancel.cancelled() => return Err(Ended::Stopped),
        };
        self.timings.tools_ms += outcome.ms;
        let mut shown = None;
        if let Some((mime, bytes)) = outcome.picture {
            let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
            shown = Some(Message::Picture { about: outcome.summary.clone(), mime: mime.clone(), data });
            let stem = format!("asked_{}", &uuid::Uuid::new_v4().simple().to_string()[..6]);
            self.keep_picture("Picture that the model asked for", &stem, &mime, bytes).await?;
        }
        self.host
            .emit(TurnEvent::ToolResult {
                id: call.id.clone(),
                ok: outcome.ok,
                error: (!outcome.ok).then(|| outcome.summary.clone()),
                summary: outcome.summary,
                text: outcome.text.clone(),
                ms: outcome.ms,
            })
            .await?;
        Ok((Message::Tool { call: call.id.clone(), name: call.name.clone(), text: outcome.text }, shown))
    }

    /// One streamed call: what arrives is shown as it comes, in gathered pieces.
    async fn call_model(&mut self, request: &ChatRequest) -> Result<(ChatReply, Parts), Ended> {
        let Brain::Model { client, .. } = &self.context.brain else {
            return Err(Ended::Problem(Finish::Failed, Problem::default()));
        };
        let started = Instant::now();
        let (sender, mut receiver) = mpsc::channel(256);
        let mut stream = Stream::default();
        let outcome = {
            let call = client.chat(request, &self.context.cancel, &sender);
            tokio::pin!(call);
            let mut gather = tokio::time::interval(GATHER);
            gather.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    biased;
                    Some(delta) = receiver.recv() => self.take(&mut stream, delta).await?,
                    outcome = &mut call => break outcome,
                    _ = gather.tick() => self.flush(&mut stream).await?,
                }
            }
        };
        while let Ok(delta) = receiver.try_recv() {
            self.take(&mut stream, delta).await?;
        }
        self.flush(&mut stream).await?;
        self.timings.model_ms += started.elapsed().as_secs_f64() * 1000.0;
        let (pieces, parts) = std::mem::take(&mut stream.splitter).finish();
        self.show_pieces(&mut stream, pieces).await?;
        self.flush(&mut stream).await?;
        if stream.shown {
            if !self.said.is_empty() {
                self.said.push_str("\n\n");
            }
            self.said.push_str(&stream.prose);
        }
        if outcome.is_err() && !parts.prose.is_empty() {
            self.result.past.answer = parts.prose.clone();
        }
        let reply = outcome?;
        self.count(&reply.usage).await?;
        Ok((reply, parts))
    }

    async fn take(&mut self, stream: &mut Stream, delta: Delta) -> Result<(), Ended> {
        match delta {
            Delta::Text(text) => {
                stream.all.push_str(&text);
                let pieces = stream.splitter.push(&text);
                self.show_pieces(stream, pieces).await
            }
            Delta::Reasoning(text) => {
                stream.reasoning.push_str(&text);
                Ok(())
            }
            Delta::WasThinking => self.was_thinking(stream).await,
            Delta::Spent(usage) => self.count(&usage).await,
            Delta::Retrying { attempt, wait_ms, why } => {
                self.host.emit(TurnEvent::Retrying { attempt, wait_ms, why }).await?;
                Ok(())
            }
        }
    }

    /// The text of this answer so far was thinking: it is taken from the answer and put to the thoughts.
    async fn was_thinking(&mut self, stream: &mut Stream) -> Result<(), Ended> {
        let all = std::mem::take(&mut stream.all);
        stream.splitter = Splitter::default();
        let shown = std::mem::take(&mut stream.shown);
        stream.text.clear();
        stream.prose.clear();
        stream.reasoning.push_str(&all);
        if shown {
            self.host.emit(TurnEvent::TextReplaced { text: self.said.clone() }).await?;
        }
        Ok(())
    }

    async fn show_pieces(&mut self, stream: &mut Stream, pieces: Vec<Piece>) -> Result<(), Ended> {
        for piece in pieces {
            match piece {
                Piece::Prose(text) => stream.text.push_str(&text),
                Piece::PlanOpened => {
                    self.flush(stream).await?;
                    self.stage(Role::Planner, "planning…").await?;
                }
                Piece::CodeOpened => {
                    self.flush(stream).await?;
                    self.stage(Role::Programmer, "writing code…").await?;
                }
            }
        }
        Ok(())
    }

    async fn flush(&mut self, stream: &mut Stream) -> Result<(), Ended> {
        if !stream.reasoning.is_empty() {
            let text = std::mem::take(&mut stream.reasoning);
            self.host.emit(TurnEvent::ReasoningDelta { text }).await?;
        }
        if !stream.text.is_empty() {
            let text = std::mem::take(&mut stream.text);
            stream.shown = true;
            stream.prose.push_str(&text);
            self.host.emit(TurnEvent::TextDelta { text }).await?;
        }
        Ok(())
    }

    async fn count(&mut self, usage: &Usage) -> Result<(), Ended> {
        let Brain::Model { provider, model, .. } = &self.context.brain else { return Ok(()) };
        self.usage.input += usage.input;
        self.usage.cached += usage.cached;
        self.usage.output += usage.output;
        self.usage.reasoning += usage.reasoning;
        self.usage.calls += 1;
        self.usage.estimated |= usage.estimated;
        let cost = self.context.catalogue.cost_usd(provider, model, usage);
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
        self.host
            .spent(Spending { provider: provider.clone(), model: model.clone(), usage: *usage, cost_usd: cost })
            .await?;
        self.host.emit(TurnEvent::Usage { total: self.usage, cost_usd: self.cost }).await?;
        Ok(())
    }
}

/// An answer that was cut off must not be run or taken for whole.
fn check_stop(reply: &ChatReply) -> Result<(), Ended> {
    match reply.stop {
        StopReason::End | StopReason::ToolCalls => Ok(()),
        StopReason::Length => Err(Ended::Finished(Finish::Length)),
        StopReason::ContentFilter => Err(Ended::Finished(Finish::ContentFilter)),
    }
}
