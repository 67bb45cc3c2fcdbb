//! The text files of the repository.

use std::fs;
use std::path::Path;

use super::source::Source;
use crate::Result;
use crate::command::Run;
use crate::workspace::Workspace;

pub(super) struct Tree<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) files: Vec<File>,
}

pub(super) struct File {
    /// From the root, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
    /// Where it is Rust.
    pub(super) source: Option<Source>,
}

/// Foreign programs, which keep their spelling and wording.
const FOREIGN: [&str; 2] = ["tests/migrating/original/", "tests/migrating/ported/"];

impl<'a> Tree<'a> {
    pub(super) fn load(workspace: &'a Workspace) -> Result<Self> {
        let mut files = Vec::new();
        for path in paths(workspace)? {
            if FOREIGN.iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            // Deleted but not yet committed, or not text: nothing to read.
            let Ok(bytes) = fs::read(workspace.root.join(&path)) else {
                continue;
            };
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File::new(path, text));
            }
        }
        Ok(Self { workspace, files })
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files, with their code.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files.iter().filter_map(|file| Some((file, file.source.as_ref()?)))
    }
}

impl File {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let source = path.ends_with(".rs").then(|| Source::new(&text));
        Self { path, text, source }
    }

    /// Returns whether the whole file serves tests, examples or measurements.
    pub(super) fn is_test(&self) -> bool {
        serves_tests(&self.path)
    }
}

/// Returns whether a path leads into a folder of tests, examples or measurements.
pub(super) fn serves_tests(path: &str) -> bool {
    let folders = ["benches", "examples", "fuzz", "tests"];
    path.split('/').any(|part| folders.contains(&part) || part == "tests.rs")
}

/// Returns the files that git knows and does not ignore; in a copy without git, everything but build output.
fn paths(workspace: &Workspace) -> Result<Vec<String>> {
    let list = Run::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .dir(&workspace.root);
    if workspace.root.join(".git").exists()
        && let Ok(names) = list.output()
    {
        return Ok(names.split_terminator('\0').map(str::to_owned).collect());
    }
    let mut found = Vec::new();
    walk(workspace, &workspace.root, &mut found)?;
    Ok(found)
}

fn walk(workspace: &Workspace, folder: &Path, found: &mut Vec<String>) -> Result<()> {
    let failed = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default();
        if !path.is_dir() {
            found.push(workspace.relative(&path));
        } else if name != ".git" && name != "target" && name != "artifacts" {
            walk(workspace, &path, found)?;
        }
    }
    Ok(())
}
