//! What every crate under `crates/` has.

use super::Finding;
use super::tree::Tree;
use crate::Result;

/// `grep` and rename just work where a crate's folder is its name, one level down.
pub(super) fn folder(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let packages = tree.workspace.crates().filter_map(|package| {
        let path = tree.workspace.relative(&package.dir);
        let wanted = format!("crates/{}", package.name);
        (path != wanted).then(|| Finding::file(path, format!("wants to be {wanted}")))
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

/// The library opens with what it is.
pub(super) fn docs(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let packages = tree.workspace.crates().filter_map(|package| {
        let path = tree.workspace.relative(&package.dir.join("src/lib.rs"));
        let documented = tree.file(&path).is_some_and(|file| opens_with_docs(&file.text));
        (!documented).then(|| Finding::file(path, "wants to begin with `//!` and a sentence"))
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

/// Whether the text has the crate's name as a word: `open-agent` is not named by `open-agents`.
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
    use super::*;

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
