//! The built-in runtime: `rten`, in Rust alone.

use std::path::Path;

use rten::{Model, ModelOptions, NodeId, RunOptions, Value, ValueOrView};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::{Batch, EmbedError, Output, Runtime};

/// What an input of the model is to be fed with.
#[derive(Clone, Copy)]
pub(super) enum Feed {
    Ids,
    Mask,
    /// Zeros: all tokens belong to the first text.
    Types,
    /// 0, 1, 2 … in each row.
    Positions,
}

impl Feed {
    /// By the name that the model gives the input.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "input_ids" => Some(Self::Ids),
            "attention_mask" => Some(Self::Mask),
            "token_type_ids" => Some(Self::Types),
            "position_ids" => Some(Self::Positions),
            _ => None,
        }
    }

    pub(super) fn values(self, batch: &Batch) -> Vec<i32> {
        match self {
            Self::Ids => batch.ids.clone(),
            Self::Mask => batch.mask.clone(),
            Self::Types => vec![0; batch.ids.len()],
            Self::Positions => {
                (0..batch.rows).flat_map(|_| (0..batch.width).map(|at| i32::try_from(at).unwrap_or(0))).collect()
            }
        }
    }
}

/// What each input is fed with; an error that names the inputs when they are not those of a text encoder.
pub(super) fn feeds(names: &[String]) -> Result<Vec<Feed>, EmbedError> {
    let feeds: Option<Vec<Feed>> = names.iter().map(|name| Feed::of(name)).collect();
    match feeds {
        Some(feeds) if feeds.iter().any(|feed| matches!(feed, Feed::Ids)) => Ok(feeds),
        _ => Err(EmbedError::NotAnEncoder {
            why: format!(
                "its inputs are {}; a text encoder takes input_ids and at most attention_mask, token_type_ids and position_ids",
                names.join(", ")
            ),
        }),
    }
}

/// Which output to read: a pooled one if the model has one under a name of its own, else the first.
pub(super) fn output_index(names: &[String]) -> usize {
    let pooled = names.iter().position(|name| name == "sentence_embedding");
    let tokens = || names.iter().position(|name| matches!(name.as_str(), "last_hidden_state" | "token_embeddings"));
    pooled.or_else(tokens).unwrap_or(0)
}

pub(super) struct RtenRuntime {
    model: Model,
    inputs: Vec<(NodeId, Feed)>,
    output: NodeId,
}

impl RtenRuntime {
    pub(super) fn open(file: &Path) -> Result<Self, EmbedError> {
        let mut options = ModelOptions::with_all_ops();
        // Costs a little memory and halves the time of a query.
        options.prepack_weights(true);
        let model = options
            .load_file(file)
            .map_err(|error| EmbedError::Damaged { file: file.to_owned(), why: error.to_string() })?;
        let name =
            |id: &NodeId| model.node_info(*id).and_then(|info| info.name().map(str::to_owned)).unwrap_or_default();
        let names: Vec<String> = model.input_ids().iter().map(name).collect();
        let inputs = model.input_ids().iter().copied().zip(feeds(&names)?).collect();
        let outputs: Vec<String> = model.output_ids().iter().map(name).collect();
        let output = *model
            .output_ids()
            .get(output_index(&outputs))
            .ok_or_else(|| EmbedError::NotAnEncoder { why: "it has no output".into() })?;
        Ok(Self { model, inputs, output })
    }
}

impl Runtime for RtenRuntime {
    fn run(&self, batch: &Batch) -> Result<Output, EmbedError> {
        let failed = |why: String| EmbedError::Run { runtime: "rten", why };
        let inputs: Vec<(NodeId, ValueOrView)> = self
            .inputs
            .iter()
            .map(|(id, feed)| {
                let tensor = NdTensor::from_data([batch.rows, batch.width], feed.values(batch));
                (*id, Value::from(tensor.into_dyn()).into())
            })
            .collect();
        let mut values = self
            .model
            .run(inputs, &[self.output], Some(RunOptions::default()))
            .map_err(|error| failed(error.to_string()))?;
        let value = values.pop().ok_or_else(|| failed("no output".into()))?;
        let tensor = value
            .into_tensor::<f32>()
            .ok_or_else(|| EmbedError::NotAnEncoder { why: "its output is not f32".into() })?;
        Ok(Output { shape: tensor.shape().to_vec(), values: tensor.to_vec() })
    }

    fn label(&self) -> String {
        "rten, built in".into()
    }
}
