//! Publishes all crates that may be published, each after its dependencies.

use std::collections::BTreeSet;

use crate::Result;
use crate::command::Run;
use crate::release;
use crate::workspace::{Kind, Package, Workspace};

pub(crate) const USAGE: &str = "`publish` takes --dry-run, or --upload to really do it";

pub(crate) fn run(workspace: &Workspace, options: &[&str]) -> Result<()> {
    let uploads = match options {
        ["--dry-run"] => false,
        ["--upload"] => true,
        // An upload cannot be undone, so it needs an explicit option.
        _ => return Err(USAGE.to_owned()),
    };
    let order = order(&workspace.packages)?;
    for (place, package) in order.iter().enumerate() {
        let rust = package.rust_version.as_deref().unwrap_or("no minimum Rust");
        println!("{:>3}. {} ({rust})", place + 1, package.name);
    }
    let missing: Vec<_> = order.iter().filter(|package| package.rust_version.is_none()).collect();
    if let [package, ..] = missing[..] {
        return Err(format!("{} does not say its minimum Rust", package.name));
    }
    let complaints = release::complaints(workspace)?;
    if !complaints.is_empty() {
        return Err(complaints.join("\n"));
    }
    let run = publish(&order, uploads);
    println!("{run}");
    run.status()
}

/// Cargo packs all at once, so that none of them needs to be in the registry before; it uploads in the order of their
/// dependencies, and waits for each.
fn publish(order: &[&Package], uploads: bool) -> Run {
    let names = order.iter().flat_map(|package| ["--package", package.name.as_str()]);
    // A dry run packs what is here, as `cargo xtask package` does; the other steps of the gate build it.
    let words =
        if uploads { "publish --locked" } else { "publish --dry-run --allow-dirty --no-verify" };
    Run::cargo(words).args(names)
}

/// Returns the published packages, each after its dependencies.
fn order(packages: &[Package]) -> Result<Vec<&Package>> {
    let mut left: Vec<&Package> = packages.iter().filter(|package| package.published).collect();
    left.sort_by(|a, b| a.name.cmp(&b.name));
    let mut ordered: Vec<&Package> = Vec::new();
    while !left.is_empty() {
        let waiting: BTreeSet<&str> = left.iter().map(|package| package.name.as_str()).collect();
        // Round by round, all crates whose dependencies have been placed: within a round, in the order of
        // names, so that the order is always the same.
        let is_ready = |package: &&Package| {
            // What tests need may depend on the crate itself.
            let mut needed = package.dependencies.iter().filter(|needed| needed.kind != Kind::Dev);
            needed.all(|needed| !waiting.contains(needed.name.as_str()))
        };
        let (ready, rest): (Vec<&Package>, Vec<&Package>) =
            left.iter().copied().partition(is_ready);
        if ready.is_empty() {
            return Err(format!("these depend on each other: {waiting:?}"));
        }
        ordered.extend(ready);
        left = rest;
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(name: &str, dependencies: &[(&str, Kind)]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|(name, kind)| Dependency {
                name: (*name).to_owned(),
                kind: *kind,
                ..Dependency::default()
            })
            .collect();
        Package { name: name.to_owned(), published: true, dependencies, ..Package::default() }
    }

    fn names(packages: &[Package]) -> Result<Vec<&str>> {
        Ok(order(packages)?.into_iter().map(|package| package.name.as_str()).collect())
    }

    #[test]
    fn each_crate_comes_after_what_it_depends_on() {
        let packages = [
            package("a", &[("c", Kind::Normal), ("serde", Kind::Normal)]),
            package("b", &[]),
            package("c", &[("b", Kind::Build)]),
        ];
        assert_eq!(names(&packages), Ok(vec!["b", "c", "a"]));
    }

    #[test]
    fn crates_of_tests_may_depend_on_each_other() {
        let packages = [package("a", &[("b", Kind::Dev)]), package("b", &[("a", Kind::Normal)])];
        assert_eq!(names(&packages), Ok(vec!["a", "b"]));
    }

    #[test]
    fn circular_dependencies_are_reported() {
        let packages = [package("a", &[("b", Kind::Normal)]), package("b", &[("a", Kind::Normal)])];
        assert_eq!(names(&packages), Err(r#"these depend on each other: {"a", "b"}"#.to_owned()));
    }

    #[test]
    fn what_is_not_published_is_left_out() {
        let mut packages = [package("a", &[]), package("examples", &[("a", Kind::Normal)])];
        packages[1].published = false;
        assert_eq!(names(&packages), Ok(vec!["a"]));
    }

    #[test]
    fn a_dry_run_uploads_nothing() {
        let a = package("a", &[]);
        let line = "cargo publish --dry-run --allow-dirty --no-verify --package a";
        assert_eq!(publish(&[&a], false).to_string(), line);
        assert_eq!(publish(&[&a], true).to_string(), "cargo publish --locked --package a");
    }
}
