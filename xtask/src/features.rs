//! Checks each crate with each feature alone, with none, and with all: features must not need each other by accident.
//! The facade's features, which users combine, are also checked together. Tests that need a feature to be off run here:
//! every other step turns all features on.

use std::collections::BTreeSet;

use crate::Result;
use crate::command::Run;
use crate::step::Outcome;
use crate::tally::Tally;
use crate::workspace::{Kind, Package, Workspace};

const FACADE: &str = "open-agent";

pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    let facade = workspace.package(FACADE).ok_or_else(|| format!("no crate is called {FACADE}"))?;
    let combined = combined(facade, workspace);
    let mut failed = Vec::new();
    for run in workspace.crates().flat_map(checks) {
        println!("{run}");
        if run.status().is_err() {
            failed.push(run.to_string());
        }
    }
    println!("{FACADE} with each of {} combinations of its features", combined.len());
    for run in combined {
        if run.status().is_err() {
            println!("{run}");
            failed.push(run.to_string());
        }
    }
    // In the dev profile, because optimizing the crates below once more takes longer than these few tests.
    let without = "test --quiet --profile dev -p oa-transport -p oa-chat -p oa-doctor --test suite";
    let without = Run::cargo(without).arg("https_");
    println!("{without}");
    if without.status().is_err() {
        failed.push(without.to_string());
    }
    if failed.is_empty() { Ok(Outcome::Ok) } else { Err(format!("failed: {}", failed.join("; "))) }
}

/// Returns checks with no feature, each alone, the default, and all; each set of features once.
fn checks(package: &Package) -> Vec<Run> {
    let check = || Run::cargo("check --quiet -p").arg(&package.name);
    let mut runs = vec![check().arg("--no-default-features")];
    let mut seen = BTreeSet::from([BTreeSet::new()]);
    for feature in named(package) {
        if seen.insert(closed(package, feature)) {
            runs.push(check().args(["--no-default-features", "--features", feature]));
        }
    }
    // The default may also turn on dependencies directly, as no other set does.
    let default = package.features.get("default").map_or(&[][..], Vec::as_slice);
    let is_direct = |name: &String| !package.features.contains_key(name);
    if seen.insert(closed(package, "default")) || default.iter().any(is_direct) {
        runs.push(check());
    }
    // Those of the facade are all among its combinations.
    if package.name != FACADE && seen.insert(named(package).collect()) {
        runs.push(check().arg("--all-features"));
    }
    runs
}

/// Returns the features of a package, except `default`.
fn named(package: &Package) -> impl Iterator<Item = &str> {
    package.features.keys().map(String::as_str).filter(|name| *name != "default")
}

/// One check for each combination of features that differs from all others.
///
/// The package's dependencies in the workspace are checked along with it. This turns on the same
/// features of external crates every time, so that only workspace crates are rebuilt, which takes
/// one minute instead of five. The checks of each crate alone find the errors that this hides.
fn combined(package: &Package, workspace: &Workspace) -> Vec<Run> {
    let beside: BTreeSet<&str> = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == Kind::Normal)
        .map(|dependency| dependency.name.as_str())
        .filter(|name| workspace.package(name).is_some())
        .collect();
    let check = |features: BTreeSet<&str>| {
        let features: Vec<_> =
            features.iter().map(|feature| format!("{}/{feature}", package.name)).collect();
        let run = Run::cargo("check --quiet --no-default-features -p").arg(&package.name);
        let run = run.args(beside.iter().flat_map(|name| ["-p", name]));
        if features.is_empty() { run } else { run.arg("--features").arg(features.join(",")) }
    };
    combinations(package).into_iter().map(check).collect()
}

/// No feature, each alone, all but each, and all, each with whatever its members turn on.
///
/// Any three features occur in all eight states: all of them on or off, one on, or one off. So an error is found that
/// takes two features and the absence of a third. The number of all subsets would double with each feature.
fn combinations(package: &Package) -> BTreeSet<BTreeSet<&str>> {
    let closed: Vec<_> = named(package).map(|name| (name, closed(package, name))).collect();
    let mut sets =
        BTreeSet::from([BTreeSet::new(), closed.iter().map(|(name, _)| *name).collect()]);
    for (name, with) in &closed {
        sets.insert(with.clone());
        let without = closed.iter().filter(|(_, other)| !other.contains(name));
        sets.insert(without.map(|(other, _)| *other).collect());
    }
    sets
}

/// Returns the feature and all features of the package that it turns on, except `default`.
fn closed<'a>(package: &'a Package, feature: &'a str) -> BTreeSet<&'a str> {
    let mut set = BTreeSet::new();
    let mut added = vec![feature];
    while let Some(name) = added.pop() {
        if name == "default" || set.insert(name) {
            let enabled = package.features.get(name).into_iter().flatten().map(String::as_str);
            added.extend(enabled.filter(|name| package.features.contains_key(*name)));
        }
    }
    set
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
    fn no_feature_each_and_all_are_checked() {
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
    fn equal_sets_of_features_are_checked_once() {
        assert_eq!(commands(&[]).len(), 1);
        assert_eq!(commands(&["body"]).len(), 2);
        let table = [("default", &["tls"][..]), ("http", &[]), ("tls", &["http", "dep:rustls"])];
        let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let features = table.iter().map(|(name, on)| ((*name).to_owned(), strings(on))).collect();
        let package = Package { name: "a".into(), features, ..Package::default() };
        assert_eq!(
            checks(&package).iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "cargo check --quiet -p a --no-default-features",
                "cargo check --quiet -p a --no-default-features --features http",
                "cargo check --quiet -p a --no-default-features --features tls",
            ]
        );
        let features = BTreeMap::from([("default".to_owned(), vec!["dep:x".to_owned()])]);
        let package = Package { name: "a".into(), features, ..Package::default() };
        assert_eq!(
            checks(&package).iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["cargo check --quiet -p a --no-default-features", "cargo check --quiet -p a"]
        );
    }

    #[test]
    fn three_features_have_all_states() {
        let table = [
            ("default", &["b"][..]),
            ("a", &["dep:x"]),
            ("b", &["a", "x/y"]),
            ("c", &[]),
            ("d", &[]),
        ];
        let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let package = Package {
            features: table.iter().map(|(name, on)| ((*name).to_owned(), strings(on))).collect(),
            ..Package::default()
        };
        let expected: [&[&str]; 10] = [
            &[],
            &["a"],
            &["a", "b"],
            &["a", "b", "c"],
            &["a", "b", "c", "d"],
            &["a", "b", "d"],
            &["a", "c", "d"],
            &["c"],
            // Without `a`, `b` is off, too.
            &["c", "d"],
            &["d"],
        ];
        let sets = combinations(&package);
        assert!(sets.iter().eq(expected.map(|set| set.iter().copied().collect()).iter()));
        let states = |names: [&str; 3]| -> BTreeSet<[bool; 3]> {
            sets.iter().map(|set| names.map(|name| set.contains(name))).collect()
        };
        assert_eq!(states(["a", "c", "d"]).len(), 8);
        assert_eq!(states(["a", "b", "c"]).len(), 6, "`b` turns `a` on");
    }

    #[test]
    fn own_dependencies_are_checked_too() {
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
        let runs: Vec<_> = combined(&top, &workspace).iter().map(ToString::to_string).collect();
        assert_eq!(
            runs,
            [
                "cargo check --quiet --no-default-features -p top -p low",
                "cargo check --quiet --no-default-features -p top -p low --features top/tls",
            ]
        );
    }
}
