//! Packs every published crate as for its registry and checks it: complete manifests, dependencies with versions,
//! changelogs, and the texts of the licenses. Also checks that the lock files of the
//! separate workspaces are current.
//!
//! All are packed at once, because they depend on each other and may not be in a registry yet.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::command::Run;
use crate::step::Outcome;
use crate::tally::Tally;
use crate::workspace::{Package, Workspace};

/// Both licenses require their text in each copy.
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    // Offline, versions are resolved among downloaded crates, which must include those for other systems.
    let fetch = Run::cargo("fetch --locked");
    println!("{fetch}");
    fetch.status()?;
    for manifest in separate(workspace) {
        // Fails if a change of our own manifests is missing from the lock file; newer versions of others do not matter.
        let update = Run::cargo("update --quiet --workspace --locked --manifest-path");
        let update = update.arg(manifest.display().to_string());
        println!("{update}");
        update.status()?;
    }
    let pack = pack(workspace);
    println!("{pack}");
    pack.status()?;
    let mut missing = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.published) {
        let list = Run::cargo("package --offline --allow-dirty --list --quiet --package");
        let files = list.arg(&package.name).output()?;
        missing.extend(without_license(&workspace.root, package, &files));
        missing.extend(without_changelog(package, &files));
    }
    if missing.is_empty() { Ok(Outcome::Ok) } else { Err(missing.join("\n")) }
}

/// Returns the manifests of the workspaces with their own lock files: the fuzz targets, and the programs of the bench.
fn separate(workspace: &Workspace) -> Vec<PathBuf> {
    let fuzz = workspace.packages.iter().map(|package| package.dir.join("fuzz/Cargo.toml"));
    let peers = workspace.root.join("xtask/peers/Cargo.toml");
    fuzz.chain([peers]).filter(|manifest| manifest.exists()).collect()
}

/// Reports licenses that are missing from the files of a package or differ from ours.
fn without_license(root: &Path, package: &Package, files: &str) -> Vec<String> {
    let lacks = |name: &&&str| {
        let ours = fs::read(root.join(name)).ok();
        let is_packed = files.lines().any(|file| file == **name);
        !is_packed || ours.is_none() || fs::read(package.dir.join(name)).ok() != ours
    };
    let missing = LICENSES.iter().filter(lacks);
    let message = |name: &&str| {
        format!(
            "{} is packed without {name}: link it, `ln -s ../../{name}` in its folder",
            package.name
        )
    };
    missing.map(message).collect()
}

/// Reports a missing changelog, in which users read what a new version changes.
fn without_changelog(package: &Package, files: &str) -> Option<String> {
    let is_packed = files.lines().any(|file| file == "CHANGELOG.md");
    (!is_packed).then(|| format!("{} is packed without a CHANGELOG.md", package.name))
}

/// Packs without building: the other steps build the same files.
fn pack(workspace: &Workspace) -> Run {
    let published = workspace.packages.iter().filter(|package| package.published);
    let names = published.flat_map(|package| ["--package", package.name.as_str()]);
    Run::cargo("package --offline --allow-dirty --no-verify --quiet").args(names)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn unpublished_packages_are_left_out() {
        let package = |name: &str, published| Package {
            name: name.to_owned(),
            published,
            ..Package::default()
        };
        let packages = vec![package("a", true), package("examples", false), package("b", true)];
        let workspace = Workspace { root: PathBuf::new(), target: PathBuf::new(), packages };
        assert_eq!(
            pack(&workspace).to_string(),
            "cargo package --offline --allow-dirty --no-verify --quiet --package a --package b"
        );
    }

    #[test]
    fn packages_hold_their_changelog() {
        let package = Package { name: "a".to_owned(), ..Package::default() };
        assert_eq!(without_changelog(&package, "CHANGELOG.md\nsrc/lib.rs\n"), None);
        let missing = Some("a is packed without a CHANGELOG.md".to_owned());
        assert_eq!(without_changelog(&package, "docs/CHANGELOG.md\n"), missing);
    }

    #[test]
    fn packages_hold_the_texts_of_the_licenses() {
        let root = std::env::temp_dir().join(format!("xtask-{}-licenses", std::process::id()));
        let package = Package { name: "a".to_owned(), dir: root.join("a"), ..Package::default() };
        fs::create_dir_all(&package.dir).unwrap();
        for name in LICENSES {
            fs::write(root.join(name), name).unwrap();
            fs::write(package.dir.join(name), name).unwrap();
        }
        let found = |files: &str| without_license(&root, &package, files).len();
        assert_eq!(found("LICENSE-APACHE\nLICENSE-MIT\nsrc/lib.rs\n"), 0);
        assert_eq!(found("LICENSE-APACHE\nsrc/LICENSE-MIT\n"), 1);
        fs::write(package.dir.join(LICENSES[1]), "another").unwrap();
        assert_eq!(
            without_license(&root, &package, "LICENSE-APACHE\nLICENSE-MIT\n"),
            ["a is packed without LICENSE-MIT: link it, `ln -s ../../LICENSE-MIT` in its folder"]
        );
        fs::remove_dir_all(&root).unwrap();
    }
}
