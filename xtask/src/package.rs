//! Every published crate, packed as for its registry: complete manifests, and dependencies with versions.
//!
//! All are packed at once, since they depend on each other and a registry need not know any of them.

use crate::Result;
use crate::command::Run;
use crate::step::Outcome;
use crate::tally::Tally;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    // Offline, versions are resolved among crates that are here: also those of other systems.
    let fetch = Run::cargo("fetch --locked");
    println!("{fetch}");
    fetch.status()?;
    let pack = pack(workspace);
    println!("{pack}");
    pack.status().map(|()| Outcome::Ok)
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
    use crate::workspace::Package;

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
}
