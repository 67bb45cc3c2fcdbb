//! Checks with the oldest version that the manifests allow of each direct dependency, which needs a nightly Rust.

use std::fs;

use crate::Result;
use crate::command::Run;
use crate::msrv::{no_nightly, toolchain};
use crate::step::Outcome;
use crate::tally::Tally;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    if toolchain("nightly").is_none() {
        return Ok(no_nightly());
    }
    // A lock file of its own: that of the workspace has newer versions.
    let folder = workspace.target.join("minimal");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let lock = folder.join("Cargo.lock").display().to_string();
    let nightly = |command| {
        let run = Run::cargo("+nightly --config").arg(format!("resolver.lockfile-path={lock:?}"));
        run.args(command)
    };
    for run in [
        nightly(["update", "-Z", "direct-minimal-versions"]),
        nightly(["check", "--workspace", "--all-features"]),
    ] {
        println!("{run}");
        run.status()?;
    }
    Ok(Outcome::Ok)
}
