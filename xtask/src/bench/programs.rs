//! The programs that are compared, and how long each took to build.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Result;

pub(super) struct Program {
    /// As tables call it.
    pub(super) name: &'static str,
    /// The package in `xtask/peers`.
    pub(super) package: &'static str,
    /// True if it is a crate of others, which ours is compared with.
    pub(super) is_peer: bool,
}

pub(super) const OURS: &str = "open-agent";

pub(super) const PROGRAMS: [Program; 6] = [
    Program { name: OURS, package: "ours", is_peer: false },
    Program { name: "hyper and serde by hand", package: "by-hand", is_peer: false },
    Program { name: "async-openai", package: "peer-async-openai", is_peer: true },
    Program { name: "genai", package: "peer-genai", is_peer: true },
    Program { name: "open-agent-sdk", package: "peer-open-agent-sdk", is_peer: true },
    Program { name: "rig-core", package: "peer-rig", is_peer: true },
];

/// Writes down how many seconds of CPU a clean release build took.
pub(super) fn remember(path: &Path, name: &str, seconds: f64) -> Result<()> {
    let mut all = read(path);
    all.insert(name.to_owned(), seconds);
    let lines: Vec<String> =
        all.iter().map(|(name, seconds)| format!("{name}\t{seconds:.1}\n")).collect();
    let failed = |error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, lines.concat()).map_err(failed)
}

pub(super) fn recall(path: &Path, name: &str) -> Option<f64> {
    read(path).get(name).copied()
}

fn read(path: &Path) -> BTreeMap<String, f64> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().filter_map(|line| line.split_once('\t'));
    rows.filter_map(|(name, seconds)| Some((name.to_owned(), seconds.parse().ok()?))).collect()
}
