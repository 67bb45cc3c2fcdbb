//! A short run of each fuzz target under `crates/*/fuzz`. Property tests check the same properties in
//! the ordinary suite, so a machine without nightly loses depth, not coverage.

use std::fs;

use crate::Result;
use crate::command::Run;
use crate::msrv::{no_nightly, toolchain};
use crate::step::{Need, Outcome};
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Seconds for all targets together, and the maximum and minimum for one.
const BUDGET: usize = 60;
const MOST: usize = 30;
const LEAST: usize = 5;

pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    let mut targets = Vec::new();
    for package in workspace.crates() {
        let manifest = package.dir.join("fuzz/Cargo.toml");
        if manifest.exists() {
            let fuzz = Workspace::load_from(&manifest)?;
            let bins = fuzz.packages.into_iter().flat_map(|package| package.bins);
            targets.extend(bins.map(|target| (package, target)));
        }
    }
    if targets.is_empty() {
        return Ok(Outcome::Nothing("no fuzz target under crates/*/fuzz".to_owned()));
    }
    if toolchain("nightly").is_none() {
        return Ok(no_nightly());
    }
    if !Run::cargo("fuzz --version").works() {
        let message = "no cargo-fuzz here: cargo install cargo-fuzz --locked".to_owned();
        return Ok(Outcome::Missing { message, need: Need::Optional });
    }

    let seconds = seconds_each(targets.len());
    let mut failed = Vec::new();
    for (package, target) in targets {
        // New inputs go to the first corpus, to keep them apart from the committed ones.
        let found = workspace.target.join("fuzz-found").join(&package.name).join(&target);
        fs::create_dir_all(&found).map_err(|error| format!("{}: {error}", found.display()))?;
        // No crate here has `unsafe` code, and without a sanitizer there are five times as many runs.
        let mut run = Run::cargo("+nightly fuzz run --sanitizer none --target-dir")
            .arg(workspace.target.join("fuzz").display().to_string())
            .args([target.clone(), found.display().to_string()])
            .dir(&package.dir);
        let committed = format!("fuzz/corpus/{target}");
        if package.dir.join(&committed).is_dir() {
            run = run.arg(committed);
        }
        let run = run.arg("--").arg(format!("-max_total_time={seconds}"));
        println!("{run}");
        if run.status().is_err() {
            failed.push(format!("{}/{target}", package.name));
        }
    }
    if failed.is_empty() { Ok(Outcome::Ok) } else { Err(format!("failed: {}", failed.join(", "))) }
}

fn seconds_each(targets: usize) -> usize {
    (BUDGET / targets.max(1)).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_shared() {
        assert_eq!(seconds_each(1), 30);
        assert_eq!(seconds_each(6), 10);
        assert_eq!(seconds_each(100), 5);
    }
}
