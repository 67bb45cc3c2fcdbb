//! Rules about manifests, with just enough of a TOML reader for them.

use super::Finding;
use super::tree::Tree;
use crate::Result;

/// One `key = value` of a manifest; a value over several lines is joined.
#[derive(Debug, PartialEq)]
struct Entry {
    section: String,
    key: String,
    value: String,
    line: usize,
}

/// Every crate takes the workspace's lint table.
pub(super) fn lints_inherited(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in tree.workspace.crates() {
        let path = tree.workspace.relative(&package.dir.join("Cargo.toml"));
        let text = tree.file(&path).map_or("", |file| file.text.as_str());
        if !inherits_lints(&entries(text)) {
            findings.push(Finding::file(path, "must have `[lints] workspace = true`"));
        }
    }
    Ok(findings)
}

fn inherits_lints(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| {
        let key = (entry.section.as_str(), entry.key.as_str());
        matches!(key, ("lints", "workspace") | ("", "lints.workspace")) && entry.value == "true"
    })
}

/// Where a crate has features, its page on docs.rs shows all of its items, each with what it needs.
pub(super) fn features_on_docs_rs(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    const MARKS: &str = "#![cfg_attr(docsrs, feature(doc_cfg))]";
    let mut findings = Vec::new();
    for package in tree.workspace.crates() {
        if package.features.keys().all(|name| name == "default") {
            continue;
        }
        let path = tree.workspace.relative(&package.dir.join("Cargo.toml"));
        let text = tree.file(&path).map_or("", |file| file.text.as_str());
        if !is_shown_whole(&entries(text)) {
            let message = "must set all features and `--cfg docsrs` in [package.metadata.docs.rs]";
            findings.push(Finding::file(path, message));
        }
        let path = tree.workspace.relative(&package.dir.join("src/lib.rs"));
        let source = tree.file(&path).and_then(|file| file.source.as_ref());
        if !source.is_some_and(|source| source.bare.lines().any(|line| line == MARKS)) {
            findings.push(Finding::file(path, format!("has features, so it must have `{MARKS}`")));
        }
    }
    Ok(findings)
}

fn is_shown_whole(entries: &[Entry]) -> bool {
    let has = |key: &str, value: &str| {
        let is = |e: &Entry| e.section == "package.metadata.docs.rs" && e.key == key;
        entries.iter().any(|entry| is(entry) && entry.value.replace(' ', "") == value)
    };
    has("all-features", "true") && has("rustdoc-args", r#"["--cfg","docsrs"]"#)
}

/// Versions are specified once, in the root manifest.
pub(super) fn dependencies_inherited(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in &tree.workspace.packages {
        let path = tree.workspace.relative(&package.dir.join("Cargo.toml"));
        let text = tree.file(&path).map_or("", |file| file.text.as_str());
        for (line, name) in versioned(&entries(text)) {
            if tree.workspace.package(&name).is_none() {
                let message = format!("`{name}` belongs in [workspace.dependencies]");
                findings.push(Finding::line(&path, line, message));
            }
        }
    }
    Ok(findings)
}

/// The dependencies without `workspace = true`.
fn versioned(entries: &[Entry]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut inherited = Vec::new();
    for entry in entries {
        let Some((name, rest)) = dependency(&entry.section, &entry.key) else {
            continue;
        };
        let value = entry.value.replace(char::is_whitespace, "");
        let here = match rest {
            // name = { workspace = true }
            "" => value.contains("workspace=true"),
            // name.workspace = true, or the same in a section of its own
            rest => rest == "workspace" && value == "true",
        };
        if here {
            inherited.push(name.to_owned());
        } else if !found.iter().any(|(_, known)| known == name) {
            found.push((entry.line, name.to_owned()));
        }
    }
    found.retain(|(_, name)| !inherited.contains(name));
    found
}

/// The dependency an entry is about, and which of its fields.
fn dependency<'a>(section: &'a str, key: &'a str) -> Option<(&'a str, &'a str)> {
    const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    if section.starts_with("workspace.") {
        return None;
    }
    // [dependencies] or [target.'cfg(unix)'.dependencies]
    if TABLES.iter().any(|table| section == *table || section.ends_with(&format!(".{table}"))) {
        return Some(key.split_once('.').unwrap_or((key, "")));
    }
    // [dependencies.name]
    let (table, name) = section.rsplit_once('.')?;
    let is_table = TABLES.iter().any(|t| table == *t || table.ends_with(&format!(".{t}")));
    is_table.then_some((name, key))
}

fn entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut section = String::new();
    let mut open = 0;
    for (number, line) in text.lines().enumerate() {
        let line = without_comment(line).trim();
        if open > 0 {
            if let Some(last) = entries.last_mut() {
                last.value.push_str(line);
            }
            open += depth(line);
        } else if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).trim().to_owned();
        } else if let Some((key, value)) = line.split_once('=') {
            open = depth(value);
            entries.push(Entry {
                section: section.clone(),
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
                line: number + 1,
            });
        }
    }
    entries
}

/// The number of brackets that stay open. Brackets in strings come in pairs here, or the manifest is odd.
fn depth(text: &str) -> i32 {
    text.chars().fold(0, |depth, c| match c {
        '[' | '{' => depth + 1,
        ']' | '}' => depth - 1,
        _ => depth,
    })
}

fn without_comment(line: &str) -> &str {
    let mut in_string = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => in_string = !in_string,
            '#' if !in_string => return &line[..at],
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::tree::File;
    use super::*;
    use crate::workspace::{Package, Workspace};

    #[track_caller]
    fn check(manifest: &str, expect: &[(usize, &str)]) {
        let found = versioned(&entries(manifest));
        let found: Vec<_> = found.iter().map(|(line, name)| (*line, name.as_str())).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn every_form_of_inheriting_is_known() {
        check(
            "[dependencies]\n\
             a.workspace = true\n\
             b = { workspace = true, features = [\n  \"x\", # why\n] }\n\
             [dev-dependencies.c]\n\
             workspace = true\n\
             features = [\"x\"]\n",
            &[],
        );
    }

    #[test]
    fn every_form_of_a_version_is_found() {
        check(
            "[package]\n\
             version = \"1\"\n\
             [dependencies]\n\
             a = \"1\" # workspace = true\n\
             b = { version = \"1\", features = [\"x\"] }\n\
             [build-dependencies.c]\n\
             version = \"1\"\n\
             [target.'cfg(unix)'.dev-dependencies]\n\
             d = \"1\"\n",
            &[(4, "a"), (5, "b"), (7, "c"), (9, "d")],
        );
    }

    #[test]
    fn the_root_table_is_the_place_for_versions() {
        check("[workspace.dependencies]\na = \"1\"\n", &[]);
    }

    #[test]
    fn lints_are_inherited_in_either_spelling() {
        assert!(inherits_lints(&entries("[lints]\nworkspace = true\n")));
        assert!(inherits_lints(&entries("lints.workspace = true\n")));
        assert!(!inherits_lints(&entries("[lints.rust]\nunsafe_code = \"forbid\"\n")));
    }

    #[test]
    fn crates_with_features_show_them_on_docs_rs() {
        let table = "[package.metadata.docs.rs]\nall-features = true\n";
        let args = "rustdoc-args = [\"--cfg\", \"docsrs\"]\n";
        let marks = "//! Docs.\n\n#![cfg_attr(docsrs, feature(doc_cfg))]\n";
        let found = |features: &[&str], manifest: &str, lib: &str| {
            let features = features.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
            let dir = "crates/oa-a".into();
            let package = Package { dir, features, ..Package::default() };
            let workspace =
                Workspace { root: PathBuf::new(), target: PathBuf::new(), packages: vec![package] };
            let files = [("Cargo.toml", manifest), ("src/lib.rs", lib)];
            let files = files.map(|(path, text)| File::new(format!("crates/oa-a/{path}"), text));
            let tree = Tree { workspace: &workspace, files: files.into() };
            let findings = features_on_docs_rs(&tree).unwrap();
            let name = |finding: &Finding| finding.path.rsplit('/').next().map(str::to_owned);
            findings.iter().filter_map(name).collect::<Vec<_>>()
        };
        let complete = format!("{table}{args}");
        assert_eq!(found(&["default"], "", ""), [""; 0]);
        assert_eq!(found(&["default", "tls"], &complete, marks), [""; 0]);
        assert_eq!(found(&["tls"], table, marks), ["Cargo.toml"]);
        assert_eq!(found(&["tls"], args, marks), ["Cargo.toml"]);
        assert_eq!(found(&["tls"], &complete, "//! Docs.\n"), ["lib.rs"]);
    }
}
