//! Compares this tree with the last release: versions and changelogs.
//!
//! A release is a tag `vX.Y.Z`. It has all packed files, the changelogs and the list of the public surface, so nothing
//! is downloaded. Crates that the facade does not export are not in that list.

mod changelog;
mod surface_change;
mod version;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use self::surface_change::{Change, bump};
use self::version::Version;
use crate::Result;
use crate::command::Run;
use crate::workspace::{Package, Workspace};

const LIST: &str = "crates/open-agent/api.txt";

/// The last release, if there is one.
struct Release {
    tag: String,
    version: Version,
}

/// Prints the version that each crate needs.
pub(crate) fn print(workspace: &Workspace) -> Result<()> {
    let Some(last) = last(&workspace.root)? else {
        println!("nothing has been released yet: each crate keeps its version");
        return Ok(());
    };
    let changes = surface_changes(workspace, &last)?;
    for package in workspace.packages.iter().filter(|package| package.published) {
        let found = changes.get(&package.name.replace('-', "_"));
        let found = found.map(Vec::as_slice).unwrap_or_default();
        let needed = last.version.after(bump(found));
        if has_changed(workspace, package, &last)? {
            println!(
                "{}: {} since {}, so at least {needed}",
                package.name,
                bump(found),
                last.version
            );
        }
        for change in found {
            println!("  {}: {}", change.bump, change.what);
        }
    }
    Ok(())
}

/// Returns the reasons why the crates cannot be published.
pub(crate) fn complaints(workspace: &Workspace) -> Result<Vec<String>> {
    let last = last(&workspace.root)?;
    let changes = match &last {
        Some(last) => surface_changes(workspace, last)?,
        None => BTreeMap::new(),
    };
    let mut complaints = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.published) {
        if let Some(last) = &last {
            if !has_changed(workspace, package, last)? {
                continue;
            }
            let found = changes.get(&package.name.replace('-', "_"));
            let found = found.map(Vec::as_slice).unwrap_or_default();
            complaints.extend(too_low(package, last.version, found));
        }
        let text = fs::read_to_string(package.dir.join("CHANGELOG.md")).ok();
        let complaint = changelog::complaint(text.as_deref(), &package.version);
        complaints.extend(complaint.map(|complaint| format!("{} {complaint}", package.name)));
    }
    Ok(complaints)
}

/// Reports a crate version that is lower than its changes need.
fn too_low(package: &Package, last: Version, changes: &[Change]) -> Option<String> {
    let bump = bump(changes);
    let needed = last.after(bump);
    let is_enough = Version::parse(&package.version).is_some_and(|version| version >= needed);
    (!is_enough).then(|| {
        let why = changes.iter().find(|change| change.bump == bump);
        let why = why.map_or_else(String::new, |change| format!(", because {}", change.what));
        let (name, version) = (&package.name, &package.version);
        format!("{name} is {version}, but must be at least {needed} ({bump}{why})")
    })
}

fn surface_changes(workspace: &Workspace, last: &Release) -> Result<BTreeMap<String, Vec<Change>>> {
    let before = git(&workspace.root, &["show", &format!("{}:{LIST}", last.tag)])?;
    let after = fs::read_to_string(workspace.root.join(LIST));
    let after = after.map_err(|error| format!("{LIST}: {error}"))?;
    Ok(surface_change::changes(&before, &after))
}

/// Returns true if anything of a crate but its changelog differs from the release.
fn has_changed(workspace: &Workspace, package: &Package, last: &Release) -> Result<bool> {
    let folder = workspace.relative(&package.dir);
    let changelog = format!(":(exclude){folder}/CHANGELOG.md");
    let names =
        git(&workspace.root, &["diff", "--name-only", &last.tag, "--", &folder, &changelog])?;
    Ok(!names.trim().is_empty())
}

fn last(root: &Path) -> Result<Option<Release>> {
    let tags = git(root, &["tag", "--list", "v[0-9]*", "--merged", "HEAD"])?;
    let versions = tags.lines().filter_map(|tag| {
        Some(Release { tag: tag.to_owned(), version: Version::parse(tag.strip_prefix('v')?)? })
    });
    let last = versions.max_by_key(|release| release.version);
    if last.is_none() && git(root, &["rev-parse", "--is-shallow-repository"])?.trim() == "true" {
        return Err(
            "this clone is shallow and has no tags: `git fetch --tags --unshallow`".to_owned()
        );
    }
    Ok(last)
}

fn git(root: &Path, words: &[&str]) -> Result<String> {
    Run::new("git").args(words.iter().copied()).dir(root).output()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A repository with one crate, made for a test and removed with it.
    struct Repository(PathBuf);

    impl Repository {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
            fs::create_dir_all(root.join("crates/open-agent")).unwrap();
            let this = Self(root);
            this.git(&["init", "--quiet"]);
            this.git(&["commit", "--quiet", "--allow-empty", "--message", "begin"]);
            this
        }

        fn git(&self, words: &[&str]) {
            let known = ["-c", "user.name=tests", "-c", "user.email=tests@example.com"];
            let words: Vec<&str> = known.iter().chain(words).copied().collect();
            git(&self.0, &words).unwrap();
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.0.join("crates/open-agent").join(path), text).unwrap();
        }

        fn release(&self, tag: &str) {
            self.git(&["add", "--all"]);
            self.git(&["commit", "--quiet", "--message", tag]);
            self.git(&["tag", tag]);
        }

        fn complaints(&self, version: &str) -> Vec<String> {
            let package = Package {
                name: "open-agent".to_owned(),
                dir: self.0.join("crates/open-agent"),
                published: true,
                version: version.to_owned(),
                ..Package::default()
            };
            let root = self.0.clone();
            let workspace =
                Workspace { target: root.join("target"), root, packages: vec![package] };
            complaints(&workspace).unwrap()
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn changed_crates_need_entry_and_version() {
        let repository = Repository::new("release");
        repository.write("api.txt", "# open_agent\n\nfn a()\nfn b()\n");
        assert_eq!(repository.complaints("0.1.0"), ["open-agent has no CHANGELOG.md"]);
        repository.write("CHANGELOG.md", "# Changelog\n\n## 0.1.0\n\n- **added**: all.\n");
        assert_eq!(repository.complaints("0.1.0"), [""; 0]);

        // Two releases: the higher one counts, whatever the order of their names.
        repository.release("v0.9.0");
        repository.release_again("v0.10.0");
        assert_eq!(repository.complaints("0.10.0"), [""; 0], "nothing has changed");

        repository.write("lib.rs", "// Faster.\n");
        repository.git(&["add", "--all"]);
        let no_entry = "open-agent has changed, and no entry in its CHANGELOG.md is under";
        let found = repository.complaints("0.10.1");
        assert!(matches!(&found[..], [one] if one.starts_with(no_entry)), "{found:?}");
        repository
            .write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n- **changed**: faster.\n");
        assert_eq!(repository.complaints("0.10.1"), [""; 0]);
        assert_eq!(
            repository.complaints("0.10.0"),
            ["open-agent is 0.10.0, but must be at least 0.10.1 (patch)"]
        );

        repository.write("api.txt", "# open_agent\n\nfn a()\n");
        assert_eq!(
            repository.complaints("0.10.1"),
            ["open-agent is 0.10.1, but must be at least 0.11.0 (major, because fn b is gone)"]
        );
        assert_eq!(repository.complaints("0.11.0"), [""; 0]);
    }

    impl Repository {
        fn release_again(&self, tag: &str) {
            self.git(&["commit", "--quiet", "--allow-empty", "--message", tag]);
            self.git(&["tag", tag]);
        }
    }
}
