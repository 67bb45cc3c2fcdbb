//! Rules about each crate under `crates/`.

use super::Finding;
use super::tree::Tree;
use crate::Result;

/// The most lines of source in one crate, so that one reader can keep it in mind.
const LARGEST: usize = 7_000;

/// Counts all lines under `src`, docs included, except unit tests: the test module at the end of a file, and files named
/// `tests.rs` or in a folder `tests`. So a unit test can stand beside its code, and is no reason to split a crate.
pub(super) fn size(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in tree.workspace.crates() {
        let path = tree.workspace.relative(&package.dir.join("src"));
        let is_source =
            |path_of: &str| path_of.strip_prefix(&path).is_some_and(|rest| rest.starts_with('/'));
        let files = tree.rust().filter(|(file, _)| is_source(&file.path) && !file.is_test());
        let lines: usize =
            files.map(|(_, source)| source.code_before_tests().lines().count()).sum();
        if lines > LARGEST {
            let message = format!(
                "has {lines} lines, at most {LARGEST} are allowed: move a part with its own readers to a new crate"
            );
            findings.push(Finding::file(path, message));
        }
    }
    Ok(findings)
}

/// A crate's folder is named like the crate, one level down, so that `grep` and renames work.
pub(super) fn folder(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let packages = tree.workspace.crates().filter_map(|package| {
        let path = tree.workspace.relative(&package.dir);
        let wanted = format!("crates/{}", package.name);
        (path != wanted).then(|| Finding::file(path, format!("must be {wanted}")))
    });
    Ok(packages.collect())
}

pub(super) fn readme(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let packages = tree.workspace.crates().filter_map(|package| {
        let path = tree.workspace.relative(&package.dir.join("README.md"));
        let written = tree.file(&path).is_some_and(|file| !file.text.trim().is_empty());
        (!written).then(|| Finding::file(path, "is missing or empty"))
    });
    Ok(packages.collect())
}

/// Each library begins with a doc comment.
pub(super) fn docs(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let packages = tree.workspace.crates().filter_map(|package| {
        let path = tree.workspace.relative(&package.dir.join("src/lib.rs"));
        let documented = tree.file(&path).is_some_and(|file| opens_with_docs(&file.text));
        (!documented).then(|| Finding::file(path, "must begin with `//!` and a sentence"))
    });
    Ok(packages.collect())
}

fn opens_with_docs(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("//!").is_some_and(|sentence| !sentence.trim().is_empty())
}

/// A newcomer finds every crate from the root.
pub(super) fn on_the_map(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in ["README.md", "ARCHITECTURE.md"] {
        let text = tree.file(path).map_or("", |file| file.text.as_str());
        for package in tree.workspace.crates() {
            if !names(text, &package.name) {
                findings.push(Finding::file(path, format!("does not name {}", package.name)));
            }
        }
    }
    Ok(findings)
}

/// Returns whether the text has the crate's name as a word: `open-agent` is not named by `open-agents`.
fn names(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::tree::File;
    use super::*;
    use crate::workspace::{Package, Workspace};

    #[test]
    fn a_crate_has_at_most_7000_lines_of_source() {
        let package =
            Package { name: "oa-a".into(), dir: "crates/oa-a".into(), ..Package::default() };
        let workspace =
            Workspace { root: PathBuf::new(), target: PathBuf::new(), packages: vec![package] };
        let found = |lines: usize| {
            let files = vec![
                File::new("crates/oa-a/src/lib.rs", "\n".repeat(lines)),
                File::new(
                    "crates/oa-a/src/a/b.rs",
                    format!(
                        "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
                        "\n".repeat(1_000),
                        "\n".repeat(9_000)
                    ),
                ),
                File::new("crates/oa-a/src/a/b/tests.rs", "\n".repeat(9_000)),
                File::new("crates/oa-a/tests/suite/main.rs", "\n".repeat(9_000)),
                File::new("crates/oa-a/src/page.md", "\n".repeat(9_000)),
                File::new("crates/oa-a2/src/lib.rs", "\n".repeat(9_000)),
            ];
            let found = size(&Tree { workspace: &workspace, files }).unwrap();
            found.into_iter().map(|finding| finding.path).collect::<Vec<_>>()
        };
        assert_eq!(found(6_000), [""; 0]);
        assert_eq!(found(6_001), ["crates/oa-a/src"]);
    }

    #[test]
    fn a_name_is_a_whole_word() {
        assert!(names("see `oa-sse`.", "oa-sse"));
        assert!(names("oa-session and oa-sse", "oa-sse"));
        assert!(!names("oa-session, oa-sse-x, xoa-sse", "oa-sse"));
    }

    #[test]
    fn docs_are_a_sentence_at_the_top() {
        assert!(opens_with_docs("//! Parses.\n"));
        assert!(!opens_with_docs("//!\n"));
        assert!(!opens_with_docs("use a;\n//! Parses.\n"));
    }
}
