//! Everything that is data and not code, embedded in the binary so that a double-click works from anywhere.
//!
//! A file of the same relative path below `<data>/resources/` replaces the embedded one: recipes, prompts and the
//! provider table can be changed without building the program. The Python that Slicer runs unchecked (`slicer/`,
//! `slicer_startup/`) is the one part that cannot be replaced: it is reviewed and embedded with the program.

use std::borrow::Cow;
use std::path::Path;

use include_dir::{Dir, include_dir};

static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/resources");

/// The folders below `resources/` whose files may never be replaced from the data folder.
const SEALED: [&str; 2] = ["slicer/", "slicer_startup/"];

/// The embedded folder `path` (relative to `resources/`), if there is one.
pub fn folder(path: &str) -> Option<&'static Dir<'static>> {
    EMBEDDED.get_dir(path)
}

/// The text of the embedded file `path` (relative to `resources/`), or `None` when it does not exist or is not UTF-8.
pub fn text(path: &str) -> Option<&'static str> {
    EMBEDDED.get_file(path)?.contents_utf8()
}

/// The text of `path`, preferring the person's own version in `<data_folder>/resources/`.
pub fn text_with_override(data_folder: &Path, path: &str) -> Option<Cow<'static, str>> {
    if !SEALED.iter().any(|folder| path.starts_with(folder))
        && let Ok(own) = std::fs::read_to_string(data_folder.join("resources").join(path))
    {
        return Some(Cow::Owned(own));
    }
    text(path).map(Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in the data folder must not become code that Slicer runs unchecked; other data may be replaced.
    #[test]
    fn code_for_slicer_cannot_be_replaced() {
        let data = tempfile::tempdir().unwrap();
        for path in
            ["slicer/core.py", "slicer_startup/start_web_server.py", "slicer_startup/who.py", "slicer_places.toml"]
        {
            let own = data.path().join("resources").join(path);
            std::fs::create_dir_all(own.parent().unwrap()).unwrap();
            std::fs::write(&own, "own").unwrap();
            let used = text_with_override(data.path(), path).unwrap();
            assert_eq!(used == "own", !path.ends_with(".py"), "{path}");
        }
    }
}
