//! The files, folders and tests that the pages name.

use std::collections::HashSet;
use std::fs;

use crate::{files, read, root};

/// The folders with which a full path begins.
const TOP: [&str; 5] = [".ci/", "crates/", "examples/", "tests/", "xtask/"];

/// Returns what a text quotes, except in blocks of code.
fn quoted(text: &str) -> Vec<&str> {
    let outside = text.split("```").step_by(2);
    outside.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

fn is_path(quote: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./{},*".contains(c);
    !quote.is_empty() && quote.chars().all(is_part)
}

/// Returns all paths that `a/{b,c}.rs` stands for.
fn expanded(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (inner, after) = rest.split_once('}').expect("each brace has its end");
    inner.split(',').map(|part| format!("{before}{part}{after}")).collect()
}

/// Returns whether a path exists; the name of the folder below `crates` may end in `*`.
fn exists(path: &str) -> bool {
    let Some((start, rest)) = path.split_once('*') else { return root().join(path).exists() };
    let (folder, name) = start.rsplit_once('/').expect("a pattern has a folder");
    files(folder, "").iter().any(|found| {
        found.starts_with(name) && root().join(format!("{folder}/{found}{rest}")).exists()
    })
}

/// Returns the paths of a page that begin at the root, or with the name of a crate.
fn full_paths(text: &str) -> Vec<String> {
    let paths = quoted(text).into_iter().filter(|quote| is_path(quote) && quote.contains('/'));
    let full = paths.filter_map(|path| {
        let is_full = TOP.iter().any(|top| path.starts_with(top));
        let is_in_crate = path.starts_with("oa-") && path.ends_with(".rs");
        (is_full || is_in_crate).then(|| match is_full {
            true => path.to_owned(),
            false => format!("crates/{path}"),
        })
    });
    full.flat_map(|path| expanded(&path)).filter(|path| !path.contains("NAME")).collect()
}

fn pages() -> Vec<String> {
    let guide = "crates/open-agent/src/guide";
    let mut pages: Vec<String> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
            .map(str::to_owned)
            .into();
    pages.extend(files("crates", "").into_iter().map(|name| format!("crates/{name}/README.md")));
    // The sources of quirks are files of other repositories.
    let guides = files(guide, ".md").into_iter().filter(|name| name != "quirks.md");
    pages.extend(guides.map(|name| format!("{guide}/{name}")));
    pages
}

#[test]
fn paths_in_the_pages_exist() {
    let mut count = 0;
    for page in pages() {
        for path in full_paths(&read(&page)) {
            count += 1;
            assert!(exists(&path), "{page}: {path}");
        }
    }
    assert!(count > 100, "{count} paths");
}

/// A file without a folder is in a crate that the same point of the list names.
#[test]
fn short_paths_are_in_the_named_crate() {
    let page = read("ARCHITECTURE.md");
    let (_, section) = page.split_once("## Where things are added").expect("it has this section");
    let (section, _) = section.split_once("\n## ").expect("another follows");
    let mut count = 0;
    for point in section.split("\n- ").skip(1) {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let named: Vec<String> =
            point.split(|c| !is_word(c)).map(|word| word.replace('_', "-")).collect();
        let crates = files("crates", "");
        let sources: Vec<String> = crates
            .iter()
            .filter(|name| named.contains(name))
            .flat_map(|name| tree(&format!("crates/{name}")))
            .collect();
        for path in quoted(point) {
            let is_short = path.ends_with(".rs")
                && is_path(path)
                && full_paths(&format!("`{path}`")).is_empty();
            if is_short {
                count += 1;
                let end = format!("/{path}");
                assert!(sources.iter().any(|source| source.ends_with(&end)), "{path} in: {point}");
            }
        }
    }
    assert!(count > 20, "{count} paths");
}

/// Returns the files in a folder and below.
fn tree(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in files(folder, "") {
        let path = format!("{folder}/{name}");
        if root().join(&path).is_dir() {
            found.extend(tree(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_fuzz_folder_is_in_the_table() {
    let page = read("ARCHITECTURE.md");
    for name in files("crates", "") {
        let folder = format!("crates/{name}/fuzz");
        if root().join(&folder).exists() {
            assert!(page.contains(&format!("`{folder}`")), "{folder}");
        }
    }
}

/// Tables of failures name the tests that show their rows.
#[test]
fn tests_in_the_tables_exist() {
    let sources = files("crates", "").into_iter().flat_map(|name| tree(&format!("crates/{name}")));
    let mut names = HashSet::new();
    for path in sources.filter(|path| path.ends_with(".rs")) {
        let text = fs::read_to_string(root().join(&path)).expect("it can be read");
        let functions = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
        names.extend(functions.map(str::to_owned));
        let file = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs"));
        names.extend(file.map(str::to_owned));
    }
    let mut count = 0;
    for page in pages() {
        let text = read(&page);
        let (mut before, mut in_table) = ("", false);
        for line in text.lines() {
            let is_head = !before.starts_with('|') && line.ends_with("| tests |");
            in_table = line.starts_with('|') && (in_table || is_head);
            before = line;
            let last = line.trim_end_matches(" |").rsplit('|').next().filter(|_| in_table);
            for name in last.map(quoted).unwrap_or_default() {
                count += 1;
                assert!(names.contains(name), "{page}: {name}");
            }
        }
    }
    assert!(count > 80, "{count} tests");
}
