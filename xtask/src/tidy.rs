//! Checks beyond the compiler's: layers, manifests, names, and the docs that must exist.

mod circles;
mod clashes;
mod crates;
mod graph;
mod manifest;
mod source;
mod text;
mod tree;
mod usage;
mod vocabulary;
mod wording;

use std::fmt;

use crate::Result;
use crate::step::Outcome;
use crate::tally::Tally;
use crate::workspace::Workspace;
use tree::Tree;

/// A broken rule and its location.
#[derive(Debug, PartialEq)]
struct Finding {
    path: String,
    /// Counted from 1; 0 means the whole file.
    line: usize,
    message: String,
}

impl Finding {
    fn file(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), line: 0, message: message.into() }
    }

    fn line(path: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

type Rule = fn(&Tree<'_>) -> Result<Vec<Finding>>;

const RULES: &[(&str, Rule)] = &[
    ("layers", graph::layers),
    ("external-crates", graph::external_crates),
    ("crates-of-features", graph::crates_of_features),
    ("pure-layers", graph::pure_layers),
    ("circles", circles::circles),
    ("clashes", clashes::clashes),
    ("crate-folder", crates::folder),
    ("crate-size", crates::size),
    ("crate-readme", crates::readme),
    ("crate-docs", crates::docs),
    ("crate-on-the-map", crates::on_the_map),
    ("lints-inherited", manifest::lints_inherited),
    ("features-on-docs-rs", manifest::features_on_docs_rs),
    ("dependencies-inherited", manifest::dependencies_inherited),
    ("dependencies-used", usage::used),
    ("file-names", text::file_names),
    ("file-length", text::file_length),
    ("unfinished", text::unfinished),
    ("provider-names", text::provider_names),
    ("environment", text::environment),
    ("machine-paths", text::machine_paths),
    ("first-lines", wording::first_lines),
    ("test-names", wording::test_names),
    ("spelling", wording::spelling),
    ("vocabulary", vocabulary::types),
];

pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    let tree = Tree::load(workspace)?;
    let mut count = 0;
    for (name, rule) in RULES {
        for finding in rule(&tree)? {
            println!("{finding} [{name}]");
            count += 1;
        }
    }
    match count {
        0 => Ok(Outcome::Ok),
        1 => Err("1 finding".to_owned()),
        _ => Err(format!("{count} findings")),
    }
}

/// Returns the Rust files of the workspace, as path and text.
pub(crate) fn sources(workspace: &Workspace) -> Result<Vec<(String, String)>> {
    let files = Tree::load(workspace)?.files.into_iter();
    Ok(files.filter(|file| file.source.is_some()).map(|file| (file.path, file.text)).collect())
}

/// Shows which files of a crate import each other in circles.
pub(crate) fn print_circles(workspace: &Workspace, name: Option<&str>) -> Result<()> {
    circles::print(&Tree::load(workspace)?, name)
}
