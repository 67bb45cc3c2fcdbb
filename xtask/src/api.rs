//! The public surface of the facade as a committed list, so that reviewers see each change.

mod external;
mod listing;
mod signature;
pub(crate) mod surface;

use std::collections::BTreeMap;
use std::fs;

use crate::Result;
use crate::step::Outcome;
use crate::tally::Tally;
use crate::workspace::Workspace;
use surface::{Sources, Surface};

const ROOT: &str = "open_agent";
const LIST: &str = "crates/open-agent/api.txt";

const TITLE: &str = "\
The public surface of open-agent and of the crates that it re-exports, as `cargo xtask api --write` writes it.
Without what is hidden from docs, and without auto traits.
";

/// Compares the list with the sources, and foreign types with their table.
pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    let (list, names) = of(workspace)?;
    let path = workspace.root.join(LIST);
    let committed = fs::read_to_string(&path).map_err(|error| format!("{LIST}: {error}"))?;
    let mut complaints = external::complaints(&names);
    let changes = changes(&committed, &list);
    if !changes.is_empty() {
        complaints.push(format!(
            "the public surface has changed: if this is intended, run `cargo xtask api --write` and commit {LIST}"
        ));
    }
    for line in changes.iter().chain(&complaints) {
        println!("{line}");
    }
    match complaints.len() {
        0 => Ok(Outcome::Ok),
        1 => Err("1 finding".to_owned()),
        count => Err(format!("{count} findings")),
    }
}

/// Writes the list.
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    let (list, _) = of(workspace)?;
    fs::write(workspace.root.join(LIST), list).map_err(|error| format!("{LIST}: {error}"))
}

fn of(workspace: &Workspace) -> Result<(String, signature::Names)> {
    let sources = crate::tidy::sources(workspace)?;
    let sources = Sources::read(sources.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let surface = Surface::of(workspace, &sources)?;
    let (list, names) = listing::list(&surface, ROOT);
    Ok((format!("{TITLE}{list}"), names))
}

/// The added and removed lines, each with its crate and item.
fn changes(before: &str, after: &str) -> Vec<String> {
    let (before, after) = (placed(before), placed(after));
    let mut places: Vec<&(String, String)> = before.keys().chain(after.keys()).collect();
    places.sort();
    places.dedup();
    let mut changes = Vec::new();
    for place in places {
        let count = |of: &BTreeMap<(String, String), usize>| of.get(place).copied().unwrap_or(0);
        let (old, new) = (count(&before), count(&after));
        let line = |sign: char| format!("{sign} {}{}", place.0, place.1.trim_start());
        changes.extend((new..old).map(|_| line('-')));
        changes.extend((old..new).map(|_| line('+')));
    }
    changes
}

/// The number of times that each line stands under each item.
fn placed(list: &str) -> BTreeMap<(String, String), usize> {
    let (mut krate, mut item) = (String::new(), String::new());
    let mut lines = BTreeMap::new();
    for line in list.lines().skip(TITLE.lines().count()).filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("# ") {
            krate = format!("{name}: ");
            item = krate.clone();
        }
        if !line.starts_with(' ') {
            item.clone_from(&krate);
        }
        *lines.entry((item.clone(), line.to_owned())).or_insert(0) += 1;
        if !line.starts_with([' ', '#']) || line.starts_with("#[") {
            item = format!("{krate}{line} / ");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_reported_with_their_item() {
        let before = format!("{TITLE}\n# a\n\nstruct A\n    fn b()\n    fn c()\n\nfn d()\n");
        let after =
            format!("{TITLE}\n# a\n\nstruct A\n    fn b(e: u8)\n    fn c()\n\nfn d()\nfn f()\n");
        assert_eq!(changes(&before, &before), [""; 0]);
        assert_eq!(
            changes(&before, &after),
            ["+ a: fn f()", "- a: struct A / fn b()", "+ a: struct A / fn b(e: u8)"]
        );
    }
}
