//! Checks with the oldest supported Rust, if that toolchain is installed.

use crate::Result;
use crate::command::Run;
use crate::step::{Need, Outcome};
use crate::tally::Tally;
use crate::workspace::{Package, Workspace};

pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    let version = oldest(workspace).ok_or("no crate says its rust-version")?;
    let Some(toolchain) = toolchain(version) else {
        let message = format!("no Rust {version} here: rustup toolchain install {version}");
        return Ok(Outcome::Missing { message, need: Need::Optional });
    };
    let run = Run::new("cargo").arg(format!("+{toolchain}")).args(check(workspace, version));
    println!("{run}");
    run.status().map(|()| Outcome::Ok)
}

/// Returns the oldest version that a crate supports, which is the workspace's.
fn oldest(workspace: &Workspace) -> Option<&str> {
    let versions = workspace.crates().filter_map(|package| package.rust_version.as_deref());
    versions.min_by_key(|version| numbers(version))
}

fn numbers(version: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> =
        version.split('.').map(|number| number.parse().unwrap_or_default()).collect();
    // `1.88` and `1.88.0` are the same version.
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    numbers
}

/// Returns the arguments of a check of everything that supports this version: all packages and features but those that need
/// a package with a newer one.
fn check(workspace: &Workspace, version: &str) -> Vec<String> {
    let is_newer = |package: &&Package| {
        let needs = package.rust_version.as_deref();
        needs.is_some_and(|needs| numbers(needs) > numbers(version))
    };
    let newer: Vec<&str> =
        workspace.packages.iter().filter(is_newer).map(|package| &*package.name).collect();
    let mut arguments = vec!["check".to_owned(), "--workspace".to_owned()];
    arguments.extend(newer.iter().flat_map(|name| ["--exclude".to_owned(), (*name).to_owned()]));
    let mut left_out: Vec<(&str, &str)> = Vec::new();
    // A feature may turn on another package's, which is left out: until no more are found.
    loop {
        let needs = |enables: &String| {
            let enables = enables.strip_prefix("dep:").unwrap_or(enables);
            let (package, feature) = enables.split_once('/').unwrap_or((enables, ""));
            newer.contains(&package) || left_out.contains(&(package, feature))
        };
        let found: Vec<(&str, &str)> = workspace
            .packages
            .iter()
            .flat_map(|package| package.features.iter().map(move |feature| (package, feature)))
            .filter(|(_, (_, enables))| enables.iter().any(needs))
            .map(|(package, (feature, _))| (&*package.name, &**feature))
            .filter(|found| !left_out.contains(found))
            .collect();
        if found.is_empty() {
            break;
        }
        left_out.extend(found);
    }
    let features = workspace.packages.iter().filter(|package| !newer.contains(&&*package.name));
    let features = features.flat_map(|package| {
        let names = package.features.keys().map(|feature| (&*package.name, &**feature));
        names.filter(|feature| !left_out.contains(feature))
    });
    let features: Vec<String> =
        features.map(|(package, feature)| format!("{package}/{feature}")).collect();
    arguments.extend(["--features".to_owned(), features.join(",")]);
    arguments
}

/// The outcome of a command that needs a nightly Rust where there is none.
pub(crate) fn no_nightly() -> Outcome {
    let message = "no nightly Rust here: rustup toolchain install nightly".to_owned();
    Outcome::Missing { message, need: Need::Optional }
}

/// The full name of the installed toolchain of that version.
pub(crate) fn toolchain(version: &str) -> Option<String> {
    let list = Run::new("rustup").args(["toolchain", "list"]).output().ok()?;
    find(&list, version).map(str::to_owned)
}

fn find<'a>(list: &'a str, version: &str) -> Option<&'a str> {
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.into_iter().find(|name| {
        let rest = name.strip_prefix(version);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package with a newer version, a feature that needs it, and a feature of another package that needs that.
    #[test]
    fn newer_packages_are_left_out() {
        let package = |name: &str, version: &str, features: &[(&str, &[&str])]| Package {
            name: name.to_owned(),
            dir: format!("/w/crates/{name}").into(),
            rust_version: Some(version.to_owned()),
            features: features
                .iter()
                .map(|(name, enables)| {
                    ((*name).to_owned(), enables.iter().map(|on| (*on).to_owned()).collect())
                })
                .collect(),
            ..Package::default()
        };
        let workspace = Workspace {
            root: "/w".into(),
            target: "/w/target".into(),
            packages: vec![
                package("new", "1.90", &[("more", &[])]),
                package("facade", "1.88", &[("new", &["dep:new"]), ("tls", &[])]),
                package(
                    "examples",
                    "1.88.0",
                    &[("new", &["facade/new"]), ("tls", &["facade/tls"])],
                ),
            ],
        };
        assert_eq!(oldest(&workspace), Some("1.88"));
        let expected = "check --workspace --exclude new --features facade/tls,examples/tls";
        assert_eq!(check(&workspace, "1.88").join(" "), expected);
    }

    #[test]
    fn finds_a_version_with_or_without_its_patch() {
        let list = "stable-x86_64-unknown-linux-gnu (active, default)\n\
                    1.8.0-x86_64-unknown-linux-gnu\n\
                    1.88.0-x86_64-unknown-linux-gnu\n\
                    nightly-x86_64-unknown-linux-gnu\n";
        assert_eq!(find(list, "1.88"), Some("1.88.0-x86_64-unknown-linux-gnu"));
        assert_eq!(find(list, "1.8"), Some("1.8.0-x86_64-unknown-linux-gnu"));
        assert_eq!(find(list, "nightly"), Some("nightly-x86_64-unknown-linux-gnu"));
        assert_eq!(find(list, "1.9"), None);
    }
}
