//! Each feature of each crate alone, none, and all: features must not need each other by accident.

use crate::Result;
use crate::command::Run;
use crate::step::Outcome;
use crate::tally::Tally;
use crate::workspace::{Package, Workspace};

pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    let mut failed = Vec::new();
    for package in workspace.crates() {
        for run in checks(package) {
            println!("{run}");
            if run.status().is_err() {
                failed.push(run.to_string());
            }
        }
    }
    if failed.is_empty() { Ok(Outcome::Ok) } else { Err(format!("failed: {}", failed.join("; "))) }
}

fn checks(package: &Package) -> Vec<Run> {
    let check = || Run::cargo("check --quiet -p").arg(&package.name);
    let mut runs = vec![check().arg("--no-default-features")];
    for feature in package.features.keys() {
        runs.push(check().args(["--no-default-features", "--features", feature]));
    }
    if package.features.len() > 1 {
        runs.push(check().arg("--all-features"));
    }
    runs
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn commands(features: &[&str]) -> Vec<String> {
        let features: BTreeMap<_, _> =
            features.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
        let package = Package { name: "a".into(), features, ..Package::default() };
        checks(&package).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_crate_is_checked_with_none_each_and_all_of_its_features() {
        assert_eq!(
            commands(&["body", "stream"]),
            [
                "cargo check --quiet -p a --no-default-features",
                "cargo check --quiet -p a --no-default-features --features body",
                "cargo check --quiet -p a --no-default-features --features stream",
                "cargo check --quiet -p a --all-features",
            ]
        );
    }

    #[test]
    fn all_is_not_repeated_where_it_is_the_same() {
        assert_eq!(commands(&[]).len(), 1);
        assert_eq!(commands(&["body"]).len(), 2);
    }
}
