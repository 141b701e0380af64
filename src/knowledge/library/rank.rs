//! The lexical ranking: BM25 over weighted fields, held in memory.
//!
//! In memory and not in SQLite's full-text table, because fields have weights and length norms of their own here, words
//! that stand in for others weigh less, and a question of twenty common words must still be answered in a few
//! milliseconds. The words come from the index file, so opening it costs no reading of text.

use std::collections::HashMap;

use serde::Deserialize;

/// Fields of a passage, in the order of the index file.
pub const FIELDS: [&str; 5] = ["title", "context", "prose", "code", "ui"];
/// The field of words that controls lend.
pub const UI_FIELD: usize = 4;

/// The figures of `resources/knowledge/ranking.toml`.
#[derive(Debug, Clone, Deserialize)]
pub struct Ranking {
    pub k1: f64,
    pub coverage: f64,
    pub synonym: f64,
    pub joined: f64,
    pub quoted: f64,
    pub per_name: usize,
    /// Places kept for declarations, and the kinds that declare.
    pub declarations: usize,
    pub declaring_kinds: Vec<String>,
    pub places: usize,
    pub use_ui: bool,
    pub use_synonyms: bool,
    pub split_identifiers: bool,
    pub use_weights: bool,
    /// Field → weight, length norm.
    pub fields: HashMap<String, (f64, f64)>,
}

/// One passage as the ranking sees it: per field the number of words, and each word with its count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bag {
    pub fields: Vec<(u32, Vec<(u32, u32)>)>,
}

/// A word of a query with its weight: 1 as said, less when it stands in for another. `group` tells which word of the
/// query it serves: a passage that has a word and its stand-in counts the better of both.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTerm {
    pub text: String,
    pub weight: f64,
    pub group: usize,
}

struct Posting {
    document: u32,
    frequency: f32,
}

/// The index in memory.
#[derive(Default)]
pub struct Lexical {
    terms: HashMap<String, u32>,
    postings: Vec<Vec<Posting>>,
    /// Weight of each document's kind.
    weights: Vec<f64>,
    k1: f64,
    coverage: f64,
}

impl Lexical {
    /// Builds the index of documents, each with its words and the weight of its kind. `terms` gives each word's number.
    pub fn new(terms: HashMap<String, u32>, documents: &[(Bag, f64)], ranking: &Ranking) -> Self {
        let parameters: Vec<(f64, f64)> =
            FIELDS.iter().map(|name| ranking.fields.get(*name).copied().unwrap_or((1.0, 0.75))).collect();
        let mut totals = [(0u64, 0u64); FIELDS.len()];
        for (bag, _) in documents {
            for (total, (length, _)) in totals.iter_mut().zip(&bag.fields).filter(|(_, (length, _))| *length > 0) {
                total.0 += u64::from(*length);
                total.1 += 1;
            }
        }
        let averages = totals.map(|(sum, count)| sum as f64 / (count.max(1)) as f64);
        let most = terms.values().max().map_or(0, |most| *most as usize + 1);
        let mut postings: Vec<Vec<Posting>> = (0..most).map(|_| Vec::new()).collect();
        for (number, (bag, _)) in documents.iter().enumerate() {
            let document = u32::try_from(number).unwrap_or(u32::MAX);
            for (field, (length, words)) in bag.fields.iter().enumerate().take(FIELDS.len()) {
                let (weight, norm) = parameters[field];
                if weight == 0.0 || (field == UI_FIELD && !ranking.use_ui) {
                    continue;
                }
                let scale = weight / (1.0 - norm + norm * f64::from(*length) / averages[field].max(1.0));
                for (term, count) in words {
                    let Some(list) = postings.get_mut(*term as usize) else { continue };
                    let frequency = (f64::from(*count) * scale) as f32;
                    match list.last_mut() {
                        Some(last) if last.document == document => last.frequency += frequency,
                        _ => list.push(Posting { document, frequency }),
                    }
                }
            }
        }
        let weights = documents.iter().map(|(_, weight)| if ranking.use_weights { *weight } else { 1.0 }).collect();
        Self { terms, postings, weights, k1: ranking.k1, coverage: ranking.coverage }
    }

    /// The `top` best documents for a query that `keep` lets through, best first.
    pub fn rank(&self, query: &[QueryTerm], top: usize, keep: impl Fn(u32) -> bool) -> Vec<(u32, f64)> {
        let groups = query.iter().map(|term| term.group + 1).max().unwrap_or(0);
        let mut scores = vec![0.0f64; self.weights.len()];
        let mut shared = vec![0.0f64; self.weights.len()];
        let mut best = vec![0.0f64; self.weights.len()];
        let mut all = 0.0;
        let mut touched: Vec<u32> = Vec::new();
        for group in 0..groups {
            touched.clear();
            let mut rarity = 0.0f64;
            for term in query.iter().filter(|term| term.group == group) {
                let Some(list) = self.terms.get(&term.text).and_then(|number| self.postings.get(*number as usize))
                else {
                    continue;
                };
                let idf = self.idf(list.len());
                if term.weight >= 1.0 || rarity == 0.0 {
                    rarity = rarity.max(idf * term.weight);
                }
                for posting in list {
                    let frequency = f64::from(posting.frequency);
                    let value = term.weight * idf * frequency * (self.k1 + 1.0) / (self.k1 + frequency);
                    let slot = &mut best[posting.document as usize];
                    if *slot == 0.0 {
                        touched.push(posting.document);
                    }
                    *slot = slot.max(value);
                }
            }
            // A word that nothing knows says nothing about who answers better.
            all += rarity;
            for document in &touched {
                let at = *document as usize;
                scores[at] += best[at];
                shared[at] += rarity;
                best[at] = 0.0;
            }
        }
        let mut ranked: Vec<(u32, f64)> = Vec::new();
        for (number, score) in scores.iter().enumerate().filter(|(_, score)| **score > 0.0) {
            let document = u32::try_from(number).unwrap_or(u32::MAX);
            if keep(document) {
                let covered = (shared[number] / f64::max(all, 1e-9)).min(1.0);
                ranked.push((document, score * self.weights[number] * covered.powf(self.coverage)));
            }
        }
        let order = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if ranked.len() > top && top > 0 {
            ranked.select_nth_unstable_by(top - 1, order);
            ranked.truncate(top);
        }
        ranked.sort_by(order);
        ranked.truncate(top);
        ranked
    }

    /// Weight of a document's kind.
    pub fn weight(&self, document: u32) -> f64 {
        self.weights.get(document as usize).copied().unwrap_or(1.0)
    }

    fn idf(&self, documents: usize) -> f64 {
        let (all, with) = (self.weights.len() as f64, documents as f64);
        ((all - with + 0.5) / (with + 0.5) + 1.0).ln()
    }
}

/// A bag as bytes, small numbers in one byte.
pub fn encode(bag: &Bag) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (length, words) in &bag.fields {
        varint(*length, &mut bytes);
        varint(u32::try_from(words.len()).unwrap_or(u32::MAX), &mut bytes);
        for (term, count) in words {
            varint(*term, &mut bytes);
            varint(*count, &mut bytes);
        }
    }
    bytes
}

/// The bag of some bytes; what is damaged is left out.
pub fn decode(bytes: &[u8]) -> Bag {
    let mut bag = Bag::default();
    let mut at = 0;
    while at < bytes.len() {
        let (Some(length), Some(count)) = (read(bytes, &mut at), read(bytes, &mut at)) else { break };
        let mut words = Vec::with_capacity((count as usize).min(bytes.len()));
        for _ in 0..count {
            let (Some(term), Some(times)) = (read(bytes, &mut at), read(bytes, &mut at)) else { return bag };
            words.push((term, times));
        }
        bag.fields.push((length, words));
    }
    bag
}

fn varint(mut value: u32, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let mut value = 0u32;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(text: &str, weight: f64, group: usize) -> QueryTerm {
        QueryTerm { text: text.into(), weight, group }
    }

    fn ranking() -> Ranking {
        toml::from_str(crate::resources::text("knowledge/ranking.toml").unwrap_or_default()).expect("figures")
    }

    fn bag(title: &[u32], prose: &[u32]) -> Bag {
        let field = |words: &[u32]| (words.len() as u32, words.iter().map(|word| (*word, 1)).collect());
        Bag { fields: vec![field(title), field(&[]), field(prose), field(&[]), field(&[])] }
    }

    /// Protects the weight of titles, of kinds, and that stand-ins count less than the word itself.
    #[test]
    fn titles_kinds_and_stand_ins_weigh_as_told() {
        let terms: HashMap<String, u32> = [("a", 0), ("b", 1), ("c", 2)].map(|(t, n)| (t.to_owned(), n)).into();
        let documents = [
            (bag(&[0], &[2, 2]), 1.0),
            (bag(&[2], &[0, 2]), 1.0),
            (bag(&[0], &[2, 2]), 1.3),
            (bag(&[1], &[2, 2]), 1.0),
        ];
        let index = Lexical::new(terms, &documents, &ranking());
        let order = |query: &[QueryTerm]| index.rank(query, 9, |_| true).iter().map(|(d, _)| *d).collect::<Vec<_>>();
        assert_eq!(order(&[term("a", 1.0, 0)]), [2, 0, 1]);
        assert_eq!(order(&[term("b", 1.0, 0), term("a", 0.3, 0)])[0], 3);
        assert_eq!(order(&[term("unknown", 1.0, 0)]), [] as [u32; 0]);
        assert_eq!(index.rank(&[term("a", 1.0, 0)], 1, |document| document != 2)[0].0, 0);
    }

    /// Protects the stored words, also large numbers, and the reader against damage.
    #[test]
    fn bags_survive_storage() {
        let bag = bag(&[1, 200, 70_000, u32::MAX], &[5]);
        let bytes = encode(&bag);
        assert_eq!(decode(&bytes), bag);
        for cut in 0..bytes.len() {
            decode(&bytes[..cut]);
        }
    }
}
