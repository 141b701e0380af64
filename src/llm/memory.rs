//! What is remembered of an endpoint: which options it refused, for all clients and later starts, and which blocks it wants
//! back, for the tool loop of one client.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A tool loop has far fewer rounds; older ones are never sent again.
const KEPT_BLOCKS: usize = 128;

/// Which options which models refused: clients that share it do not make a provider refuse the same thing again. It can
/// be kept; an endpoint stands in it as a fingerprint, because an address may hold a secret.
#[derive(Clone, Default)]
pub struct Learnt(Arc<Mutex<HashMap<String, HashSet<String>>>>);

impl Learnt {
    /// What was kept: pairs of an endpoint's fingerprint and an option.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let learnt = Self::default();
        for (endpoint, option) in pairs {
            learnt.learn(&endpoint, &option);
        }
        learnt
    }

    /// What is to be kept, in order.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let known = unpoisoned(&self.0);
        let all = known
            .iter()
            .flat_map(|(endpoint, options)| options.iter().map(|option| (endpoint.clone(), option.clone())));
        let mut pairs: Vec<_> = all.collect();
        pairs.sort();
        pairs
    }

    fn knows(&self, endpoint: &str, option: &str) -> bool {
        unpoisoned(&self.0).get(endpoint).is_some_and(|refused| refused.contains(option))
    }

    /// False when it was known.
    fn learn(&self, endpoint: &str, option: &str) -> bool {
        unpoisoned(&self.0).entry(endpoint.to_owned()).or_default().insert(option.to_owned())
    }
}

/// What was learnt about an endpoint from its answers.
#[derive(Default)]
pub(super) struct Memory {
    learnt: Learnt,
    /// Provider, address and model: what is learnt holds for these together.
    endpoint: String,
    /// Blocks that must go back, with the id of the first tool call that came with them, oldest first.
    blocks: Mutex<VecDeque<(String, Vec<Value>)>>,
}

impl Memory {
    pub fn of(provider: &str, base: &str, model: &str) -> Self {
        Self { endpoint: fingerprint(provider, base, model), ..Self::default() }
    }

    /// Takes what others learnt, and tells them from now on.
    pub fn share(&mut self, learnt: Learnt) {
        self.learnt = learnt;
    }

    /// True when the endpoint refused an option of this name before.
    pub fn refused(&self, name: &str) -> bool {
        self.learnt.knows(&self.endpoint, name)
    }

    /// Remembers a refusal. False when it was known: sending the same again would not help.
    pub fn refuse(&self, name: &str) -> bool {
        self.learnt.learn(&self.endpoint, name)
    }

    pub fn blocks(&self, call: &str) -> Vec<Value> {
        let kept = unpoisoned(&self.blocks);
        kept.iter().find(|(id, _)| id == call).map(|(_, blocks)| blocks.clone()).unwrap_or_default()
    }

    pub fn keep(&self, call: &str, blocks: Vec<Value>) {
        let mut kept = unpoisoned(&self.blocks);
        kept.push_back((call.to_owned(), blocks));
        while kept.len() > KEPT_BLOCKS {
            kept.pop_front();
        }
    }
}

/// A panic elsewhere does not make these plain collections wrong.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Provider, address and model as one word that gives none of them away.
fn fingerprint(provider: &str, base: &str, model: &str) -> String {
    let digest = Sha256::digest(format!("{provider}\n{base}\n{model}"));
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
