use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use oa_aggregate::{ChoiceIndex, Quirks, ThinkTags};
use serde_json::Value;

/// A recorded or written body, and what a client should make of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fixture {
    /// `folder/file`.
    pub name: String,
    /// The body.
    pub body: Bytes,
    /// The entry in `index.json`.
    pub entry: Value,
}

impl Fixture {
    /// Returns the expected outcome, as `index.json` describes it.
    #[must_use]
    pub fn expect(&self) -> &Value {
        &self.entry["expect"]
    }

    /// Returns true if the body holds no answer, so that a client must report an error.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.entry.get("fails").is_some()
    }

    /// Returns the quirks of the server that a client cannot infer from the body.
    #[must_use]
    pub fn quirks(&self) -> Quirks {
        let mut quirks = Quirks::default();
        if self.name.contains("token-number-as-choice-index") {
            quirks.choice = ChoiceIndex::Any;
        }
        quirks
    }

    /// The mode of splitting text with think tags.
    #[must_use]
    pub fn think_tags(&self) -> Option<ThinkTags> {
        self.expect().get("think_split")?;
        let text = self.expect()["text"].as_str()?;
        let opens = text.find("<think>").unwrap_or(usize::MAX);
        let closes = text.find("</think>").unwrap_or(usize::MAX);
        Some(if closes < opens { ThinkTags::StartsInThinking } else { ThinkTags::Split })
    }
}

/// All fixtures of the project and, if present, the recordings next to it.
#[must_use]
pub fn all() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let own = ["made", "live", "own"].into_iter().flat_map(|folder| folder_of(&root.join(folder)));
    own.chain(recorded()).collect()
}

/// Recordings from other projects' tests, which are not part of this one; empty if their folder is missing.
#[must_use]
pub fn recorded() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/streams");
    let fixtures = folder_of(&folder);
    fixtures.into_iter().filter(|fixture| !fixture.name.contains("/made-")).collect()
}

fn folder_of(folder: &Path) -> Vec<Fixture> {
    let Ok(index) = fs::read_to_string(folder.join("index.json")) else {
        return Vec::new();
    };
    let index: Vec<Value> = serde_json::from_str(&index).expect("an index is a JSON list");
    index.into_iter().map(|entry| read(folder, entry)).collect()
}

fn read(folder: &Path, entry: Value) -> Fixture {
    let file = entry["file"].as_str().expect("an entry names its file");
    let path: PathBuf = folder.join(file);
    let body = fs::read(&path).expect("a file of the index exists");
    let folder = folder.file_name().unwrap_or_default().to_string_lossy();
    Fixture { name: format!("{folder}/{file}"), body: body.into(), entry }
}
