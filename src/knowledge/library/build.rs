//! Brings the index up to date with the folders of its sources: only files that changed are read and cut again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Instant, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use sha2::{Digest, Sha256};

use super::rank::{Bag, encode};
use super::store::{Terms, forget_files};
use super::terms::{plain_roots, roots};
use crate::knowledge::controls::{Control, Facts, code_facts, form_facts, join};
use crate::knowledge::cut::{self, Passage};
use crate::knowledge::index::KnowledgeError;
use crate::knowledge::source::{READ_ONLY, SourceRules};

/// Larger files are data, not knowledge.
const MOST_BYTES: u64 = 2_000_000;
/// Folders deeper than this are not looked into.
const MOST_DEPTH: usize = 24;
/// A name that more controls use tells nothing of any of them.
const MOST_USERS: usize = 6;
/// A name that more passages declare is not one control's business.
const MOST_DECLARATIONS: usize = 8;

/// What a refresh did.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct IndexReport {
    /// Files of all sources now in the index.
    pub files: usize,
    /// Passages now in the index.
    pub chunks: usize,
    /// Passages that have a vector.
    pub embedded: usize,
    /// Files that vanished.
    pub removed: usize,
    /// Files that were read and cut.
    pub changed: usize,
    /// Controls: all, those with a label, those linked to an API.
    pub controls: [usize; 3],
    pub seconds: f64,
}

/// How a refresh works.
pub struct BuildOptions<'a> {
    pub rules: &'a SourceRules,
    /// Reads every file again.
    pub rebuild: bool,
    /// Whether identifiers are also cut into words. Off only to measure what that is worth.
    pub split: bool,
}

/// A folder that knowledge comes from.
#[derive(Debug, Clone)]
pub struct NewSource {
    pub root: PathBuf,
    /// Kind of all its files, instead of the rules'.
    pub kind: Option<String>,
}

/// Adds `sources` and refreshes all sources of the index; all of it, or after an error nothing. `progress` gets the
/// number of files read and to be read.
///
/// # Errors
/// When a folder cannot be read, or SQLite fails.
pub fn refresh(
    connection: &mut Connection,
    sources: &[NewSource],
    options: &BuildOptions<'_>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<IndexReport, KnowledgeError> {
    let started = Instant::now();
    let transaction = connection.transaction()?;
    if options.rebuild {
        forget_files(&transaction)?;
    }
    for source in sources {
        add_source(&transaction, source)?;
    }
    let mut report = IndexReport::default();
    let mut terms = Terms::read(&transaction)?;
    let mut build = Build { transaction: &transaction, options, terms: &mut terms };
    build.all_sources(&mut report, progress)?;
    if report.changed > 0 || report.removed > 0 {
        build.link_controls()?;
    }
    terms.write(&transaction)?;
    count(&transaction, &mut report)?;
    transaction.commit()?;
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

fn count(connection: &Connection, report: &mut IndexReport) -> Result<(), KnowledgeError> {
    let number =
        |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map(|n| usize::try_from(n).unwrap_or(0));
    report.files = number("SELECT count(*) FROM file")?;
    report.chunks = number("SELECT count(*) FROM chunk")?;
    report.controls = [
        number("SELECT count(*) FROM control")?,
        number("SELECT count(*) FROM control WHERE label <> ''")?,
        number("SELECT count(*) FROM control WHERE calls <> '[]'")?,
    ];
    Ok(())
}

fn add_source(connection: &Connection, source: &NewSource) -> Result<(), KnowledgeError> {
    let unreadable =
        |error: std::io::Error| KnowledgeError::Folder { path: source.root.clone(), why: error.to_string() };
    let root = source.root.canonicalize().map_err(unreadable)?;
    std::fs::read_dir(&root).map_err(unreadable)?;
    let shown_root = root.to_string_lossy().into_owned();
    let known: Option<i64> =
        connection.query_row("SELECT id FROM source WHERE root = ?1", [&shown_root], |row| row.get(0)).optional()?;
    if let Some(id) = known {
        if source.kind.is_some() {
            connection.execute("UPDATE source SET kind = ?1 WHERE id = ?2", params![source.kind, id])?;
            connection.execute("UPDATE file SET hash = x'' , mtime = 0 WHERE source = ?1", [id])?;
        }
        return Ok(());
    }
    let name = root.file_name().map_or_else(|| "source".into(), |name| name.to_string_lossy().into_owned());
    // The Slicer source tree is the ground: its paths are told as its people tell them.
    let prefix = if root.join("Libs/MRML").is_dir() && root.join("Base/Python").is_dir() {
        String::new()
    } else if source.kind.as_deref() == Some("extension") {
        format!("ext:{name}/")
    } else {
        format!("{name}/")
    };
    let taken = |prefix: &str| {
        connection.query_row("SELECT count(*) FROM source WHERE prefix = ?1", [prefix], |row| row.get::<_, i64>(0))
    };
    let mut free = prefix.clone();
    let mut number = 1;
    while taken(&free)? > 0 {
        number += 1;
        free = if prefix.is_empty() {
            format!("{name}-{number}/")
        } else {
            format!("{}-{number}/", prefix.trim_end_matches('/'))
        };
    }
    connection.execute(
        "INSERT INTO source (root, prefix, kind) VALUES (?1, ?2, ?3)",
        params![shown_root, free, source.kind],
    )?;
    Ok(())
}

struct Build<'a> {
    transaction: &'a Transaction<'a>,
    options: &'a BuildOptions<'a>,
    terms: &'a mut Terms,
}

/// A file on disk with its fingerprint.
struct Found {
    path: String,
    kind: String,
    size: i64,
    mtime: i64,
}

/// What the index knows of a file.
struct Known {
    id: i64,
    kind: String,
    size: i64,
    mtime: i64,
    hash: Vec<u8>,
}

impl Build<'_> {
    fn all_sources(
        &mut self,
        report: &mut IndexReport,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(), KnowledgeError> {
        let mut statement = self.transaction.prepare("SELECT id, root, prefix, kind FROM source ORDER BY id")?;
        let sources = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
            .collect::<Result<Vec<(i64, String, String, Option<String>)>, _>>()?;
        for (id, root, prefix, kind) in sources {
            let mut found = Vec::new();
            walk(Path::new(&root), "", self.options.rules, kind.as_deref(), &mut found, 0)?;
            let mut known = self.known_files(id)?;
            let total = found.len();
            for (number, file) in found.iter().enumerate() {
                let before = known.remove(&file.path);
                if self.file(id, Path::new(&root), &prefix, file, before)? {
                    report.changed += 1;
                    progress(number + 1, total);
                }
            }
            for gone in known.values() {
                self.remove(gone.id)?;
                report.removed += 1;
            }
        }
        Ok(())
    }

    fn known_files(&self, source: i64) -> Result<HashMap<String, Known>, KnowledgeError> {
        let mut statement =
            self.transaction.prepare("SELECT path, id, kind, size, mtime, hash FROM file WHERE source = ?1")?;
        let rows = statement.query_map([source], |row| {
            let known =
                Known { id: row.get(1)?, kind: row.get(2)?, size: row.get(3)?, mtime: row.get(4)?, hash: row.get(5)? };
            Ok((row.get(0)?, known))
        })?;
        Ok(rows.collect::<Result<HashMap<_, _>, _>>()?)
    }

    /// Takes a file in when it changed; tells whether it did.
    fn file(
        &mut self,
        source: i64,
        root: &Path,
        prefix: &str,
        file: &Found,
        before: Option<Known>,
    ) -> Result<bool, KnowledgeError> {
        let same_kind = before.as_ref().is_some_and(|known| known.kind == file.kind);
        if let Some(known) =
            before.as_ref().filter(|known| same_kind && known.size == file.size && known.mtime == file.mtime)
        {
            tracing::trace!(id = known.id, "unchanged");
            return Ok(false);
        }
        let Some(text) = read_text(&root.join(&file.path)) else {
            if let Some(known) = before {
                self.remove(known.id)?;
            }
            return Ok(false);
        };
        let hash = Sha256::digest(text.as_bytes()).to_vec();
        if let Some(known) = before.as_ref().filter(|known| same_kind && known.hash == hash) {
            self.transaction.execute(
                "UPDATE file SET size = ?1, mtime = ?2 WHERE id = ?3",
                params![file.size, file.mtime, known.id],
            )?;
            return Ok(false);
        }
        if let Some(known) = before {
            self.remove(known.id)?;
        }
        let facts = facts_of(&file.path, &text);
        let facts = (!facts.is_empty() || !facts.forms.is_empty()).then(|| serde_json::to_string(&facts)).transpose();
        let facts = facts.map_err(|error| KnowledgeError::Data { file: "facts", why: error.to_string() })?;
        let shown = format!("{prefix}{}", file.path);
        self.transaction.prepare_cached(
            "INSERT INTO file (source, path, shown, kind, size, mtime, hash, facts) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?.execute(params![source, file.path, shown, file.kind, file.size, file.mtime, hash, facts])?;
        let id = self.transaction.last_insert_rowid();
        if file.kind != READ_ONLY {
            for passage in cut::passages(&file.path, &text)? {
                self.passage(id, &file.kind, &passage)?;
            }
        }
        Ok(true)
    }

    fn passage(&mut self, file: i64, kind: &str, passage: &Passage) -> Result<(), KnowledgeError> {
        let words = &passage.words;
        let fields = [&words.title, &words.context, &words.prose, &words.code].map(|text| self.count_words(text));
        let bag = Bag { fields: fields.into() };
        let hash = Sha256::digest(passage.text.as_bytes()).to_vec();
        let lines = (i64::try_from(passage.start_line).unwrap_or(0), i64::try_from(passage.end_line).unwrap_or(0));
        self.transaction
            .prepare_cached(
                "INSERT INTO chunk (file, kind, language, name, start_line, end_line, text, declares, hash, words)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                file,
                kind,
                passage.language,
                passage.name,
                lines.0,
                lines.1,
                passage.text,
                passage.declares.join(" "),
                hash,
                encode(&bag)
            ])?;
        Ok(())
    }

    fn count_words(&mut self, text: &str) -> (u32, Vec<(u32, u32)>) {
        let words = if self.options.split { roots(text) } else { plain_roots(text) };
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for word in &words {
            *counts.entry(self.terms.number(word)).or_default() += 1;
        }
        (u32::try_from(words.len()).unwrap_or(u32::MAX), counts.into_iter().collect())
    }

    fn remove(&self, file: i64) -> Result<(), KnowledgeError> {
        self.transaction.prepare_cached("DELETE FROM chunk WHERE file = ?1")?.execute([file])?;
        self.transaction.prepare_cached("DELETE FROM file WHERE id = ?1")?.execute([file])?;
        Ok(())
    }

    /// Joins the facts of all files, and lends the words of controls to the passages that declare what they call.
    fn link_controls(&mut self) -> Result<(), KnowledgeError> {
        let controls = self.controls()?;
        self.transaction.execute("DELETE FROM control", [])?;
        self.transaction.execute("DELETE FROM lent", [])?;
        let mut users: HashMap<&str, Vec<&Control>> = HashMap::new();
        {
            let mut row = self.transaction.prepare(
                "INSERT INTO control (shown, line, object, class, label, tooltip, grouped, signal, handler, calls)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?;
            for control in &controls {
                let calls = serde_json::to_string(&control.calls).unwrap_or_else(|_| "[]".into());
                let line = i64::try_from(control.line).unwrap_or(0);
                row.execute(params![
                    control.path,
                    line,
                    control.object,
                    control.class,
                    control.label,
                    control.tooltip,
                    control.group,
                    control.signal,
                    control.handler,
                    calls
                ])?;
                if !control.label.is_empty() || !control.tooltip.is_empty() {
                    for call in &control.calls {
                        users.entry(call).or_default().push(control);
                    }
                }
            }
        }
        let mut lent: BTreeMap<i64, String> = BTreeMap::new();
        let mut declared: HashMap<String, Vec<i64>> = HashMap::new();
        {
            let mut statement =
                self.transaction.prepare("SELECT id, declares FROM chunk WHERE language IN ('cpp', 'python')")?;
            let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
            for row in rows {
                let (id, names) = row?;
                for name in names.split(' ').filter(|name| users.contains_key(name)) {
                    declared.entry(name.to_owned()).or_default().push(id);
                }
            }
        }
        for (name, users) in users.iter().filter(|(_, users)| users.len() <= MOST_USERS) {
            let Some(places) = declared.get(*name).filter(|places| places.len() <= MOST_DECLARATIONS) else { continue };
            for place in places {
                let words = lent.entry(*place).or_default();
                for control in users {
                    words.push_str(&format!("{} {} {} ", control.label, control.tooltip, control.group));
                }
            }
        }
        let mut seen = HashSet::new();
        for (chunk, words) in lent {
            seen.clear();
            // A word that many controls say counts once: the field tells what is there, not how often.
            let unique: Vec<&str> = words.split_whitespace().filter(|word| seen.insert(word.to_lowercase())).collect();
            let bag = Bag { fields: vec![self.count_words(&unique.join(" "))] };
            self.transaction
                .prepare_cached("INSERT INTO lent (chunk, words) VALUES (?1, ?2)")?
                .execute(params![chunk, encode(&bag)])?;
        }
        Ok(())
    }

    fn controls(&self) -> Result<Vec<Control>, KnowledgeError> {
        let mut statement =
            self.transaction.prepare("SELECT shown, facts FROM file WHERE facts IS NOT NULL ORDER BY source, path")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        let mut files = Vec::new();
        for row in rows {
            let (shown, text) = row?;
            let facts: Facts = serde_json::from_str(&text)
                .map_err(|error| KnowledgeError::Data { file: "facts", why: error.to_string() })?;
            files.push((shown, facts));
        }
        Ok(join(&files))
    }
}

fn facts_of(path: &str, text: &str) -> Facts {
    match path.rsplit('.').next().unwrap_or("") {
        "ui" => form_facts(text),
        "cxx" | "cpp" | "py" => code_facts(path, text),
        _ => Facts::default(),
    }
}

/// A text file; `None` when it cannot be read or is not text.
fn read_text(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    if bytes.iter().take(8000).any(|byte| *byte == 0) {
        return None;
    }
    Some(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// All files below a folder that are knowledge, sorted. Links are not followed: they lead out, or in circles.
fn walk(
    root: &Path,
    below: &str,
    rules: &SourceRules,
    kind: Option<&str>,
    found: &mut Vec<Found>,
    depth: usize,
) -> Result<(), KnowledgeError> {
    if depth > MOST_DEPTH {
        return Ok(());
    }
    let folder = root.join(below);
    let entries = std::fs::read_dir(&folder);
    let mut entries: Vec<std::fs::DirEntry> = match entries {
        Ok(entries) => entries.flatten().collect(),
        Err(error) if depth == 0 => return Err(KnowledgeError::Folder { path: folder, why: error.to_string() }),
        Err(error) => {
            tracing::warn!("{} was left out: {error}", folder.display());
            return Ok(());
        }
    };
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let Ok(sort) = entry.file_type() else { continue };
        if sort.is_dir() {
            if rules.kind_of(&format!("{path}/x.py")).is_some() || rules.kind_of(&format!("{path}/x.md")).is_some() {
                walk(root, &path, rules, kind, found, depth + 1)?;
            }
            continue;
        }
        let Some(own) = rules.kind_of(&path).filter(|_| sort.is_file()) else { continue };
        let Ok(data) = entry.metadata() else { continue };
        if data.len() > MOST_BYTES {
            continue;
        }
        let kind = if own == READ_ONLY { own } else { kind.unwrap_or(own) };
        let since = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let mtime = since.map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(0));
        found.push(Found { path, kind: kind.to_owned(), size: i64::try_from(data.len()).unwrap_or(0), mtime });
    }
    Ok(())
}
