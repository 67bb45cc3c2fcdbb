//! Each feature of each crate alone, none, and all: features must not need each other by accident.
//! The facade's features, which users combine, also in every combination.

use std::collections::BTreeSet;

use crate::Result;
use crate::command::Run;
use crate::step::Outcome;
use crate::tally::Tally;
use crate::workspace::{Kind, Package, Workspace};

const FACADE: &str = "open-agent";

pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    let facade = workspace.package(FACADE).ok_or_else(|| format!("no crate is called {FACADE}"))?;
    let powerset = powerset(facade, workspace);
    let mut failed = Vec::new();
    for run in workspace.crates().flat_map(checks) {
        println!("{run}");
        if run.status().is_err() {
            failed.push(run.to_string());
        }
    }
    println!("{FACADE} with each of {} combinations of its features", powerset.len());
    for run in powerset {
        if run.status().is_err() {
            println!("{run}");
            failed.push(run.to_string());
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

/// One check for each combination of features that differs from all others.
///
/// The package's own dependencies in the workspace are checked beside it. This turns on the same
/// features of external crates every time, so that only crates of ours are built again: the
/// difference between a minute and five. What that hides, the checks of each crate alone show.
fn powerset(package: &Package, workspace: &Workspace) -> Vec<Run> {
    let beside: BTreeSet<&str> = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == Kind::Normal)
        .map(|dependency| dependency.name.as_str())
        .filter(|name| workspace.package(name).is_some())
        .collect();
    let check = |features: Vec<&str>| {
        let features: Vec<_> =
            features.iter().map(|feature| format!("{}/{feature}", package.name)).collect();
        let run = Run::cargo("check --quiet --no-default-features -p").arg(&package.name);
        let run = run.args(beside.iter().flat_map(|name| ["-p", name]));
        if features.is_empty() { run } else { run.arg("--features").arg(features.join(",")) }
    };
    combinations(package).into_iter().map(check).collect()
}

/// The sets of features that hold whatever their members turn on; any other set equals one of them.
fn combinations(package: &Package) -> Vec<Vec<&str>> {
    let mut sets: Vec<Vec<&str>> = vec![Vec::new()];
    for name in package.features.keys().filter(|name| *name != "default") {
        let with: Vec<_> = sets.iter().map(|set| [set.as_slice(), &[name]].concat()).collect();
        sets.extend(with);
    }
    let is_closed = |set: &Vec<&str>| {
        let enabled = set.iter().filter_map(|name| package.features.get(*name)).flatten();
        let mut ours = enabled.filter(|name| package.features.contains_key(*name));
        ours.all(|name| set.contains(&name.as_str()))
    };
    sets.retain(is_closed);
    sets
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::workspace::Dependency;

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

    #[test]
    fn combinations_that_equal_another_are_left_out() {
        let table = [("default", &["b"][..]), ("a", &["dep:x"]), ("b", &["a", "x/y"]), ("c", &[])];
        let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let package = Package {
            features: table.iter().map(|(name, on)| ((*name).to_owned(), strings(on))).collect(),
            ..Package::default()
        };
        let expected: [&[&str]; 6] =
            [&[], &["a"], &["a", "b"], &["c"], &["a", "c"], &["a", "b", "c"]];
        assert_eq!(combinations(&package), expected);
    }

    #[test]
    fn own_dependencies_are_checked_beside_the_package() {
        let package = |name: &str| Package { name: name.to_owned(), ..Package::default() };
        let needs =
            |name: &str, kind| Dependency { name: name.to_owned(), kind, ..Dependency::default() };
        let top = Package {
            dependencies: vec![
                needs("low", Kind::Normal),
                needs("serde", Kind::Normal),
                needs("kit", Kind::Dev),
            ],
            features: BTreeMap::from([("tls".to_owned(), Vec::new())]),
            ..package("top")
        };
        let packages = vec![package("low"), package("kit")];
        let workspace = Workspace { root: PathBuf::new(), target: PathBuf::new(), packages };
        let runs: Vec<_> = powerset(&top, &workspace).iter().map(ToString::to_string).collect();
        assert_eq!(
            runs,
            [
                "cargo check --quiet --no-default-features -p top -p low",
                "cargo check --quiet --no-default-features -p top -p low --features top/tls",
            ]
        );
    }
}
