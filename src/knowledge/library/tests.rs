//! The index and retrieval over small trees of our own.

use std::fs;

use super::*;

/// A small tree in the shape of Slicer's sources.
fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    let files = [
        (
            "Docs/developer_guide/script_repository/views.md",
            "# Views\n\n## Hide the ruler\n\nTake the ruler off a view.\n\n```python\nview.SetRulerType(0)\n```\n\n## Show markers\n\nOrientation markers.\n\n```python\nview.SetMarkerType(1)\n```\n",
        ),
        (
            "Libs/MRML/Core/vtkMRMLThingNode.h",
            "/// A thing.\nclass vtkMRMLThingNode\n{\npublic:\n  /// Amount in mm.\n  vtkSetMacro(Amount, double);\n  vtkGetMacro(Amount, double);\n};\n",
        ),
        (
            "Base/Python/slicer/util.py",
            "def loadThing(path):\n    \"\"\"Load a thing from a file.\"\"\"\n    return path\n",
        ),
        (
            "Modules/Loadable/Things/Resources/UI/qThing.ui",
            "<ui><class>qThing</class><widget class=\"QWidget\" name=\"qThing\"><widget class=\"QSlider\" name=\"Slider\"><property name=\"toolTip\"><string>Wobbliness of the jelly</string></property></widget></widget></ui>",
        ),
        (
            "Modules/Loadable/Things/qThing.cxx",
            "#include \"ui_qThing.h\"\nvoid qThing::setup()\n{\n  connect(d->Slider, SIGNAL(valueChanged(double)), this, SLOT(onSlide()));\n}\nvoid qThing::onSlide()\n{\n  d->Node->SetAmount(1);\n}\n",
        ),
    ];
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, text).expect("file");
    }
    folder
}

fn refresh(data: &Path, tree: &Path) -> IndexReport {
    Library::refresh(data, &[NewSource { root: tree.to_owned(), kind: None }], false, &mut |_, _| {}).expect("refresh")
}

fn best(library: &Library, text: &str) -> String {
    let hits = library.retrieve(text, &RetrievalOptions::default()).expect("search").hits;
    hits.first().map(|hit| hit.name.clone()).unwrap_or_default()
}

/// Protects the whole way from files to hits: prose, declarations that macros make, and words that only a form says.
#[test]
fn requests_find_their_place() {
    let (data, tree) = (tempfile::tempdir().expect("data"), tree());
    assert!(Library::open(data.path()).expect("open").is_none(), "an index out of nothing");
    let report = refresh(data.path(), tree.path());
    assert_eq!((report.files, report.controls), (5, [1, 0, 1]));
    let library = Library::open(data.path()).expect("open").expect("library");
    assert_eq!(best(&library, "take away the rulers"), "Views › Hide the ruler");
    assert_eq!(best(&library, "SetAmount"), "vtkMRMLThingNode › SetAmount, GetAmount");
    assert_eq!(best(&library, "load thing"), "util › loadThing");
    assert_eq!(best(&library, "wobbliness"), "vtkMRMLThingNode › SetAmount, GetAmount");
    let symbol = library.symbol("vtkMRMLThingNode.GetAmount", 5).expect("symbol");
    assert_eq!((symbol.len(), symbol[0].path.as_str()), (1, "Libs/MRML/Core/vtkMRMLThingNode.h"));
    let controls = library.controls("wobbliness of jelly", 3).expect("controls");
    assert_eq!(controls[0].calls, ["SetAmount"]);
}

/// Protects the refresh: nothing is read twice, changes and deletions are seen, and a kind given later counts.
#[test]
fn only_changes_are_read() {
    let (data, tree) = (tempfile::tempdir().expect("data"), tree());
    let first = refresh(data.path(), tree.path());
    let again = refresh(data.path(), tree.path());
    assert_eq!((again.changed, again.removed, again.chunks), (0, 0, first.chunks));
    let page = tree.path().join("Docs/developer_guide/script_repository/views.md");
    fs::write(&page, "# Views\n\n## Paint it black\n\nBackground colors.\n").expect("change");
    fs::remove_file(tree.path().join("Base/Python/slicer/util.py")).expect("remove");
    let third = refresh(data.path(), tree.path());
    assert_eq!((third.changed, third.removed, third.files), (1, 1, 4));
    let library = Library::open(data.path()).expect("open").expect("library");
    assert_eq!(best(&library, "black"), "Views › Paint it black");
    assert_eq!(best(&library, "ruler"), "");
}

/// Protects a person's list of folders: an index of another version is made anew from them, unasked for.
#[test]
fn another_version_keeps_the_sources() {
    let (data, tree) = (tempfile::tempdir().expect("data"), tree());
    let first = refresh(data.path(), tree.path());
    let connection = store::open(&Library::file(data.path())).expect("open");
    connection.pragma_update(None, "user_version", store::VERSION + 1).expect("version");
    drop(connection);
    assert!(Library::open(data.path()).expect("open").is_none(), "passages of another version were used");
    let again = Library::refresh(data.path(), &[], false, &mut |_, _| {}).expect("refresh");
    assert_eq!((again.files, again.chunks), (first.files, first.chunks));
}

/// Protects the old index against a refresh that does not come to its end.
#[test]
fn a_refresh_that_fails_leaves_the_old_index() {
    let (data, tree) = (tempfile::tempdir().expect("data"), tree());
    let first = refresh(data.path(), tree.path());
    let missing = NewSource { root: tree.path().join("nowhere"), kind: None };
    let added = tree.path().join("Base/Python/slicer/more.py");
    fs::write(added, "def more():\n    return 1\n").expect("file");
    let error = Library::refresh(data.path(), &[missing], true, &mut |_, _| {}).expect_err("no folder");
    assert!(error.to_string().contains("nowhere"), "{error}");
    let library = Library::open(data.path()).expect("open").expect("library");
    assert_eq!(library.len(), first.chunks);
}

/// Protects the fence: only files of the index are read, and a link put in their place later leads nowhere.
#[test]
fn nothing_outside_the_sources_is_read() {
    let (data, tree) = (tempfile::tempdir().expect("data"), tree());
    let secret = data.path().join("secret.py");
    fs::write(&secret, "KEY = 'planted and longer than forty characters in all'\n").expect("secret");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&secret, tree.path().join("Base/Python/slicer/link.py")).expect("link");
    #[cfg(unix)]
    std::os::unix::fs::symlink(data.path(), tree.path().join("Base/Python/slicer/folder")).expect("link");
    refresh(data.path(), tree.path());
    let library = Library::open(data.path()).expect("open").expect("library");
    for path in [
        "Base/Python/slicer/link.py",
        "Base/Python/slicer/folder/secret.py",
        "../secret.py",
        "/etc/passwd",
        "Base/../../x",
    ] {
        assert!(library.read_whole(path).is_err(), "{path}");
    }
    assert!(library.read_whole("Base/Python/slicer/util.py").expect("read").contains("loadThing"));
    #[cfg(unix)]
    {
        let file = tree.path().join("Base/Python/slicer/util.py");
        fs::remove_file(&file).expect("remove");
        std::os::unix::fs::symlink(&secret, &file).expect("link");
        assert!(library.read_whole("Base/Python/slicer/util.py").is_err(), "a link out of the source was followed");
        let all = library.files(None).expect("files");
        assert!(all.grep("planted", None, 0).expect("grep").files.is_empty());
    }
}

/// Protects the tools of a model: every way to name a file outside is refused, and what is inside is read.
#[test]
fn tools_stay_inside_the_sources() {
    use crate::knowledge::Knowledge;
    let (data, tree) = (tempfile::tempdir().expect("data"), tree());
    let root = tree.path().to_string_lossy().into_owned();
    refresh(data.path(), tree.path());
    let knowledge = Knowledge::open([], data.path()).expect("knowledge");
    let absolute = format!("{root}/Base/Python/slicer/util.py");
    let outside = [
        "../secret",
        "Base/../../x",
        "Base/Python/slicer/../../../..",
        "/etc/passwd",
        "\\\\server\\x",
        "C:\\x",
        "~/x",
        "ext:../x",
        "ext:/etc/passwd",
        "ext:C:/x",
        "Base\\..\\..\\x",
        "a\0b",
        absolute.as_str(),
    ];
    for path in outside {
        assert!(knowledge.read_file(path, 1).is_err(), "{path} was read");
        assert!(knowledge.read_sections(path, "x").ok().flatten().is_none(), "{path} has sections");
        let found = knowledge.grep(".", Some(path), 0);
        assert!(found.is_err() || found.is_ok_and(|report| report.files.is_empty()), "{path} was searched");
    }
    assert!(knowledge.read_file("Base/Python/slicer/util.py", 1).expect("read").contains("def loadThing"));
    let report = knowledge.grep("loadThing", Some("Base"), 0).expect("grep");
    assert_eq!(report.files.len(), 1);
    assert!(
        knowledge.grep("SetAmount", None, 0).expect("grep").files.iter().any(|file| file.path.ends_with("qThing.cxx"))
    );
    let error = knowledge.read_file("Base/util.py", 1).expect_err("missing").to_string();
    assert!(error.contains("Base/Python/slicer/util.py"), "{error}");
}

/// Protects long files from being told whole when a part was asked for.
#[test]
fn long_files_are_told_by_sections() {
    let (data, tree) = (tempfile::tempdir().expect("data"), tree());
    let page: String = (0..200).map(|n| format!("## Part {n}\n\nAbout the matter of number{n}.\n\n")).collect();
    fs::write(tree.path().join("Docs/developer_guide/script_repository/long.md"), format!("# Long\n\n{page}"))
        .expect("file");
    refresh(data.path(), tree.path());
    let library = Library::open(data.path()).expect("open").expect("library");
    let path = "Docs/developer_guide/script_repository/long.md";
    let text = library.sections_on(path, "number77").expect("sections").expect("long");
    assert!(text.starts_with(&format!("[{path} lines 311–313] Long › Part 77")), "{}", &text[..80]);
    assert!(text.contains("available_sections") && text.contains("Long › Part 199"));
    assert!(library.sections_on("Base/Python/slicer/util.py", "load").expect("sections").is_none());
}

/// Protects the seam for a ranking by meaning: what only it knows is found too.
#[test]
fn a_dense_ranking_joins_in() {
    struct Fixed(ChunkId);
    impl DenseSearch for Fixed {
        fn rank(&self, _: &str, _: usize) -> Vec<(ChunkId, f32)> {
            vec![(self.0, 1.0)]
        }
    }
    let (data, tree) = (tempfile::tempdir().expect("data"), tree());
    refresh(data.path(), tree.path());
    let library = Library::open(data.path()).expect("open").expect("library");
    let id = library.documents.iter().find(|document| document.kind == "python_api").expect("passage").id;
    let library = library.with_dense(Box::new(Fixed(id)));
    assert_eq!(best(&library, "unheard-of words"), "util › loadThing");
}

/// Protects the places of declarations: examples that say the same words cannot take all of them.
#[test]
fn declarations_keep_their_places() {
    let (data, tree) = (tempfile::tempdir().expect("data"), tree());
    let sections: String = (0..20)
        .map(|n| format!("## Load thing {n}\n\nLoad a thing from a file, way {n} of {}.\n\n", "x".repeat(n + 1)))
        .collect();
    fs::write(tree.path().join("Docs/developer_guide/script_repository/load.md"), format!("# Load\n\n{sections}"))
        .expect("file");
    refresh(data.path(), tree.path());
    let library = Library::open(data.path()).expect("open").expect("library");
    let options = RetrievalOptions { whole_files: false, ..RetrievalOptions::default() };
    let hits = library.retrieve("load thing from file", &options).expect("search").hits;
    assert_eq!((hits.len(), hits[0].kind.as_str()), (10, "doc_example"));
    assert!(
        hits.iter().any(|hit| hit.kind == "python_api"),
        "{:?}",
        hits.iter().map(|hit| &hit.name).collect::<Vec<_>>()
    );
}

/// Protects the limit on text.
#[test]
fn text_stays_within_its_limit() {
    let (data, tree) = (tempfile::tempdir().expect("data"), tree());
    let long = format!(
        "# Page\n\n## Ruler one\n\n{}\n\n## Ruler two\n\n{}\n",
        "ruler word\n".repeat(100),
        "ruler other\n".repeat(120)
    );
    fs::write(tree.path().join("Docs/developer_guide/script_repository/long.md"), long).expect("file");
    refresh(data.path(), tree.path());
    let library = Library::open(data.path()).expect("open").expect("library");
    let options = RetrievalOptions { budget: Some(300), ..RetrievalOptions::default() };
    let found = library.retrieve("ruler", &options).expect("search");
    let characters: usize = found.hits.iter().map(|hit| hit.text.len()).sum();
    assert!(characters <= 1_200 && !found.hits.is_empty(), "{characters}");
    assert!(found.coverage.iter().any(|line| line == "searched: ruler"));
}
