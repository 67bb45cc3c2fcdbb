//! The oldest supported Rust, where that toolchain is installed.

use crate::Result;
use crate::command::Run;
use crate::step::{Need, Outcome};
use crate::tally::Tally;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    let version = workspace
        .crates()
        .find_map(|package| package.rust_version.as_deref())
        .ok_or("no crate says its rust-version")?;
    let Some(toolchain) = toolchain(version) else {
        let message = format!("no Rust {version} here: rustup toolchain install {version}");
        return Ok(Outcome::Missing { message, need: Need::Optional });
    };
    let run = Run::new("cargo").arg(format!("+{toolchain}"));
    let run = run.args(["check", "--workspace", "--all-features"]);
    println!("{run}");
    run.status().map(|()| Outcome::Ok)
}

/// The installed toolchain of that version, by its whole name.
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
