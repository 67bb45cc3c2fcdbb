//! Compares the real dependency graph with the table of layers.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::Tree;
use crate::Result;
use crate::command::Run;
use crate::layers::{ALONE, FORBIDDEN_IN_PURE, Features, PURE, Place, ROWS, Row};
use crate::workspace::{Kind, Package, Workspace};

const TABLE: &str = "xtask/src/layers.rs";
const FACADE: &str = "open-agent";

/// A crate depends only on lower layers, and only where the table says so.
pub(super) fn layers(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let workspace = tree.workspace;
    let mut findings = Vec::new();
    for row in ROWS {
        if workspace.package(row.name).is_none() {
            findings.push(Finding::file(TABLE, format!("no crate is called {}", row.name)));
        }
        findings.extend(ascents(row, ROWS).into_iter().map(|m| Finding::file(TABLE, m)));
    }
    for package in workspace.crates() {
        let path = workspace.relative(&package.dir.join("Cargo.toml"));
        let Some(row) = row(&package.name) else {
            findings.push(Finding::file(TABLE, format!("{} has no row", package.name)));
            continue;
        };
        for name in named(package, workspace) {
            if !row.ours.contains(&name) {
                let message = format!("{} may not depend on {name}, by {TABLE}", row.name);
                findings.push(Finding::file(&path, message));
            }
        }
    }
    Ok(findings)
}

/// Returns the mistakes of the table itself in a row: arrows that do not go down.
fn ascents(row: &Row, rows: &[Row]) -> Vec<String> {
    let place = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.place);
    let is_down = |below: Option<Place>| match (row.place, below) {
        (Place::Layer(upper), Some(Place::Layer(lower))) => lower < upper,
        (Place::Side, Some(Place::Layer(_))) => true,
        (_, Some(Place::Side) | None) => false,
    };
    let wrong = row.ours.iter().filter(|name| !is_down(place(name)));
    wrong.map(|name| format!("{name} is not below {}", row.name)).collect()
}

/// The workspace crates that a package depends on, outside its tests.
fn named<'a>(package: &'a Package, workspace: &Workspace) -> BTreeSet<&'a str> {
    let dependencies = package.dependencies.iter().filter(|d| d.kind != Kind::Dev);
    let names = dependencies.map(|dependency| dependency.name.as_str());
    names.filter(|name| workspace.package(name).is_some()).collect()
}

/// External crates must be in the table, and their number within its limit.
pub(super) fn external_crates(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let workspace = tree.workspace;
    let mut findings = Vec::new();
    let packages = ROWS.iter().filter_map(|row| Some((row, workspace.package(row.name)?)));
    for (row, package) in packages {
        let path = workspace.relative(&package.dir.join("Cargo.toml"));
        if let Some(allowed) = row.external {
            let graph = Graph::of(package, Some(Features::Default), workspace)?;
            for name in graph.direct.iter().filter(|name| !allowed.contains(&name.as_str())) {
                let message = format!("{} may not bring {name}, by {TABLE}", row.name);
                findings.push(Finding::file(&path, message));
            }
        }
        for limit in row.limits {
            let graph = Graph::of(package, Some(limit.features), workspace)?;
            let (count, most) = (graph.external.len(), limit.most);
            let features = match limit.features {
                Features::AllButTls => "all features but TLS".to_owned(),
                Features::Default => "default features".to_owned(),
                Features::DefaultAnd(feature) => format!("default features and {feature}"),
                Features::Without(feature) => format!("all features but TLS and {feature}"),
            };
            println!("{}, {features}: {count} external crates, {most} allowed", row.name);
            if count > most {
                let message = format!("{count} external crates with {features}, {most} allowed");
                findings.push(Finding::file(&path, message));
            }
        }
    }
    Ok(findings)
}

/// A feature of the facade brings few crates that nothing else brings.
pub(super) fn crates_of_features(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let workspace = tree.workspace;
    let package =
        workspace.package(FACADE).ok_or_else(|| format!("no crate is called {FACADE}"))?;
    let all = Graph::of(package, Some(Features::AllButTls), workspace)?;
    let mut findings = Vec::new();
    for (feature, most) in ALONE {
        let without = Graph::of(package, Some(Features::Without(feature)), workspace)?;
        let count = all.external.difference(&without.external).count();
        println!("{FACADE}, feature {feature}: {count} external crates of its own, {most} allowed");
        if count == 0 || count > *most {
            let path = workspace.relative(&package.dir.join("Cargo.toml"));
            let message = format!("{feature} brings {count} crates of its own, {most} allowed");
            findings.push(Finding::file(&path, message));
        }
    }
    Ok(findings)
}

/// The layers without I/O depend on no runtime and no HTTP, under any feature.
pub(super) fn pure_layers(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let workspace = tree.workspace;
    let mut findings = Vec::new();
    for package in workspace.crates() {
        let place = row(&package.name).map(|row| row.place);
        if !matches!(place, Some(Place::Layer(layer)) if layer <= PURE) {
            continue;
        }
        let path = workspace.relative(&package.dir.join("Cargo.toml"));
        let graph = Graph::of(package, None, workspace)?;
        for (name, _) in graph.external.iter().filter(|(name, _)| is_forbidden(name)) {
            findings.push(Finding::file(&path, format!("layers up to {PURE} may not use {name}")));
        }
    }
    Ok(findings)
}

fn is_forbidden(name: &str) -> bool {
    FORBIDDEN_IN_PURE.iter().any(|family| {
        let rest = name.strip_prefix(family);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

/// The crates in a Linux build of one crate.
#[derive(Debug, Default, PartialEq)]
struct Graph {
    /// Name and version of every external crate.
    external: BTreeSet<(String, String)>,
    /// External crates that a workspace crate depends on directly.
    direct: BTreeSet<String>,
}

impl Graph {
    /// `None` is all features.
    fn of(package: &Package, features: Option<Features>, workspace: &Workspace) -> Result<Self> {
        let run = Run::cargo(
            "tree --quiet --edges normal,build --target x86_64-unknown-linux-gnu \
             --prefix depth --format {p} --package",
        );
        let run = run.arg(&package.name);
        let run = match features {
            None => run.arg("--all-features"),
            Some(Features::Default) => run,
            Some(Features::DefaultAnd(feature)) => run.args(["--features", feature]),
            Some(Features::AllButTls) => run
                .args(["--no-default-features", "--features"])
                .arg(features_without_tls(package).join(",")),
            Some(Features::Without(feature)) => {
                let mut features = features_without_tls(package);
                features.retain(|name| *name != feature);
                run.args(["--no-default-features", "--features"]).arg(features.join(","))
            }
        };
        let is_ours = |name: &str| workspace.package(name).is_some();
        Ok(Self::read(&run.output()?, is_ours))
    }

    /// Reads lines such as `2serde v1.0.228 (*)`: depth, name, version.
    fn read(lines: &str, is_ours: impl Fn(&str) -> bool) -> Self {
        let mut graph = Self::default();
        let mut above: Vec<&str> = Vec::new();
        for line in lines.lines() {
            let digits = line.chars().take_while(char::is_ascii_digit).count();
            let (depth, rest) = line.split_at(digits);
            let mut words = rest.split_whitespace();
            let (Ok(depth), Some(name), Some(version)) =
                (depth.parse::<usize>(), words.next(), words.next())
            else {
                continue;
            };
            above.truncate(depth);
            if !is_ours(name) {
                graph.external.insert((name.to_owned(), version.to_owned()));
                if above.last().is_some_and(|parent| is_ours(parent)) {
                    graph.direct.insert(name.to_owned());
                }
            }
            above.push(name);
        }
        graph
    }
}

/// The features of a package which, followed within it, reach nothing with TLS in its name.
fn features_without_tls(package: &Package) -> Vec<&str> {
    let reaches_tls = |feature: &str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![feature];
        while let Some(name) = open.pop() {
            if name.contains("tls") {
                return true;
            }
            if seen.insert(name) {
                let enables = package.features.get(name).into_iter().flatten();
                open.extend(enables.map(String::as_str));
            }
        }
        false
    };
    let names = package.features.keys().map(String::as_str);
    names.filter(|name| *name != "default" && !reaches_tls(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn layer(name: &'static str, layer: u8, ours: &'static [&'static str]) -> Row {
        Row { name, place: Place::Layer(layer), ours, external: None, limits: &[] }
    }

    #[test]
    fn every_arrow_of_the_table_goes_down() {
        for row in ROWS {
            assert_eq!(ascents(row, ROWS), Vec::<String>::new());
        }
    }

    #[test]
    fn arrows_up_across_and_aside_are_found() {
        let side = Row { place: Place::Side, ..layer("kit", 0, &["low"]) };
        let rows = [layer("low", 0, &[]), layer("peer", 0, &["low"]), side];
        assert_eq!(ascents(&rows[1], &rows), ["low is not below peer"]);
        assert_eq!(ascents(&rows[2], &rows), Vec::<String>::new());
        let top = layer("top", 3, &["low", "kit", "gone"]);
        assert_eq!(ascents(&top, &rows), ["kit is not below top", "gone is not below top"]);
    }

    #[test]
    fn counts_external_crates_once() {
        let lines = "0oa-top v0.1.0 (crates/oa-top)\n\
                     1bytes v1.11.0\n\
                     1oa-low v0.1.0 (crates/oa-low)\n\
                     2serde v1.0.228\n\
                     3serde_derive v1.0.228 (proc-macro)\n\
                     4syn v2.0.1\n\
                     2bytes v1.11.0\n\
                     1syn v1.0.9\n\
                     1serde v1.0.228 (*)\n";
        let graph = Graph::read(lines, |name| name.starts_with("oa-"));
        assert_eq!(graph.external.len(), 5);
        assert_eq!(graph.direct.into_iter().collect::<Vec<_>>(), ["bytes", "serde", "syn"]);
    }

    #[test]
    fn a_family_is_a_name_and_its_parts() {
        assert!(
            is_forbidden("tokio") && is_forbidden("tower-service") && is_forbidden("hyper-util")
        );
        assert!(!is_forbidden("tokiort") && !is_forbidden("http-body"));
    }

    #[test]
    fn tls_is_followed_through_features() {
        let table = [
            ("default", &["tls"][..]),
            ("full", &["macros", "secure"]),
            ("macros", &[]),
            ("secure", &["oa-client/tls"]),
            ("tls", &["oa-client/tls"]),
        ];
        let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let package = Package {
            name: "a".into(),
            features: table.iter().map(|(name, on)| ((*name).to_owned(), strings(on))).collect(),
            ..Package::default()
        };
        assert_eq!(features_without_tls(&package), ["macros"]);
    }
}
