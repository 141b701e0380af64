//! What the program knows of Slicer: sources, chunks, indexes and search tools.

pub mod chunks;
mod controls;
mod cut;
pub mod dense;
pub mod embed;
pub mod files;
pub mod index;
pub mod library;
pub mod models;
pub mod recipe;
mod source;
pub mod template;
pub mod tokens;
pub mod vector_scan;
pub mod vectors;
pub mod views;

pub use controls::Control;
pub use files::{FileMatch, GrepReport, KnowledgeFiles};
pub use index::{Hit, KnowledgeError, KnowledgeIndex};
pub use library::{ChunkId, DenseSearch, IndexReport, Library, NewSource, Retrieval, RetrievalOptions};
pub use recipe::{Recipe, RecipeError, Risk, Slot, SlotKind};

/// Recipes that go with a request beside the passages of the library.
const RECIPES_BESIDE: usize = 3;
/// Share of the words of a request that a recipe must have to go beside, as a fraction.
const RECIPE_WORDS: (usize, usize) = (3, 5);

/// Everything that a turn can look up: the index to search, and the files to read.
pub struct Knowledge {
    /// The recipes, always there.
    pub index: KnowledgeIndex,
    files: KnowledgeFiles,
    /// What was indexed on this computer; `None` until then.
    library: Option<Library>,
}

impl Knowledge {
    /// The knowledge that is there at once: the recipes.
    ///
    /// # Errors
    /// When the index cannot be made.
    pub fn of_recipes<'a>(recipes: impl IntoIterator<Item = &'a Recipe>) -> Result<Self, KnowledgeError> {
        let index = KnowledgeIndex::in_memory()?;
        for recipe in recipes {
            index.add(&chunks::recipe(recipe))?;
        }
        Ok(Self { index, files: KnowledgeFiles::embedded(), library: None })
    }

    /// The recipes, and the library of a data folder when there is one. A library that cannot be opened is left out
    /// with a warning: the recipes must not fall with it.
    ///
    /// # Errors
    /// When the index of the recipes cannot be made.
    pub fn open<'a>(
        recipes: impl IntoIterator<Item = &'a Recipe>,
        data_folder: &std::path::Path,
    ) -> Result<Self, KnowledgeError> {
        let mut knowledge = Self::of_recipes(recipes)?;
        match Library::open(data_folder) {
            Ok(library) => knowledge.library = library,
            Err(error) => tracing::warn!("the index of the sources is left out: {error}"),
        }
        Ok(knowledge)
    }

    /// Whether sources were indexed.
    pub fn has_library(&self) -> bool {
        self.library.is_some()
    }

    /// The passages for a request: of the library, with the recipes in a list of their own; or of the recipes alone.
    ///
    /// # Errors
    /// When an index fails.
    pub fn retrieve(&self, message: &str, options: &RetrievalOptions) -> Result<Retrieval, KnowledgeError> {
        let kind = options.kind.as_deref();
        let Some(library) = self.library.as_ref().filter(|_| kind != Some("recipe")) else {
            let hits = self.index.search(message, options.top, kind)?;
            return Ok(Retrieval { subqueries: vec![message.to_owned()], hits, ..Retrieval::default() });
        };
        let mut found = library.retrieve(message, options)?;
        if kind.is_none() {
            let wanted = tokens::query_tokens(message);
            let mut paths = std::collections::HashSet::new();
            let hits = self.index.search(message, RECIPES_BESIDE * 3, None)?;
            found.recipes = hits
                .into_iter()
                .filter(|hit| is_about(&wanted, hit) && paths.insert(hit.path.clone()))
                .take(RECIPES_BESIDE)
                .collect();
        }
        Ok(found)
    }

    /// The passages for a request as one list for a model: recipes first, because they are known to run.
    ///
    /// # Errors
    /// When an index fails.
    pub fn search(&self, query: &str, top: usize) -> Result<Vec<Hit>, KnowledgeError> {
        let options = RetrievalOptions { top, ..RetrievalOptions::default() };
        Ok(self.retrieve(query, &options)?.into_list())
    }

    /// Lines that match a regular expression, in all files or those below `path`.
    ///
    /// # Errors
    /// When the pattern is not one, the path leads outside, or an index fails.
    pub fn grep(&self, pattern: &str, path: Option<&str>, context: usize) -> Result<GrepReport, KnowledgeError> {
        let Some(library) = &self.library else { return self.files.grep(pattern, path, context) };
        let clean = path.map(files::checked).transpose()?.filter(|path| !path.is_empty() && path != ".");
        let recipes_only = clean.as_deref().is_some_and(|path| self.files.paths().any(|known| known.starts_with(path)));
        if recipes_only {
            return self.files.grep(pattern, clean.as_deref(), context);
        }
        let mut all = library.files(clean.as_deref())?;
        if clean.is_none() {
            all.join(&self.files);
        }
        all.grep(pattern, None, context)
    }

    /// The text of one file from a line on.
    ///
    /// # Errors
    /// When there is no such file, or the path leads outside.
    pub fn read_file(&self, path: &str, first_line: usize) -> Result<String, KnowledgeError> {
        let own = self.files.read_file(path, first_line);
        let (Some(library), Err(KnowledgeError::Missing { .. })) = (&self.library, &own) else { return own };
        let clean = files::checked(path)?;
        match library.read_whole(&clean) {
            Ok(text) => KnowledgeFiles::new(vec![(clean.clone(), text)]).read_file(&clean, first_line),
            Err(_) => {
                let name = clean.rsplit('/').next().unwrap_or(&clean);
                let similar = library.paths_like(name, 3)?;
                let nearest =
                    if similar.is_empty() { String::new() } else { format!(" Similar: {}.", similar.join(", ")) };
                Err(KnowledgeError::Missing { path: clean, nearest })
            }
        }
    }

    /// Definitions of a name (`SetSize`, `vtkMRMLModelNode`, `util.loadVolume`) in the sources; none without a library.
    ///
    /// # Errors
    /// When the index fails.
    pub fn symbol(&self, name: &str, top: usize) -> Result<Vec<Hit>, KnowledgeError> {
        self.library.as_ref().map_or_else(|| Ok(Vec::new()), |library| library.symbol(name, top))
    }

    /// What a long file has on a matter: its best sections, and the list of all. `None` when the file is not indexed as
    /// passages, or short enough to be read whole.
    ///
    /// # Errors
    /// When the path leads outside, or the index fails.
    pub fn read_sections(&self, path: &str, query: &str) -> Result<Option<String>, KnowledgeError> {
        let clean = files::checked(path)?;
        self.library.as_ref().map_or(Ok(None), |library| library.sections_on(&clean, query))
    }

    /// The controls whose words fit best; none without a library.
    ///
    /// # Errors
    /// When the index fails.
    pub fn controls(&self, label: &str, top: usize) -> Result<Vec<Control>, KnowledgeError> {
        self.library.as_ref().map_or_else(|| Ok(Vec::new()), |library| library.controls(label, top))
    }
}

/// Whether a recipe's passage says most of what is asked: something is always nearest, and beside the sources it need
/// not be shown.
fn is_about(wanted: &[String], hit: &Hit) -> bool {
    let said: std::collections::HashSet<String> =
        tokens::tokens(&format!("{} {}", hit.name, hit.text)).into_iter().collect();
    let shared = wanted.iter().filter(|word| said.contains(*word)).count();
    shared * RECIPE_WORDS.1 >= wanted.len() * RECIPE_WORDS.0
}

/// A text of the resources, the person's own in front of ours; empty when there is neither.
fn data_text(data_folder: Option<&std::path::Path>, path: &str) -> String {
    let text = match data_folder {
        Some(folder) => crate::resources::text_with_override(folder, path),
        None => crate::resources::text(path).map(std::borrow::Cow::Borrowed),
    };
    text.unwrap_or_default().into_owned()
}
