//! Installs the program `oa` as users do, and checks its version.

use std::fs;

use crate::Result;
use crate::command::Run;
use crate::step::Outcome;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// The package and its program.
const PACKAGE: &str = "oa-cli";
const PROGRAM: &str = "oa";

pub(crate) fn run(workspace: &Workspace, _: &mut Tally) -> Result<Outcome> {
    let root = workspace.target.join("install").display().to_string();
    let package = workspace.packages.iter().find(|package| package.name == PACKAGE);
    let folder = package.ok_or_else(|| format!("there is no {PACKAGE}"))?.dir.display().to_string();
    // In the dev profile, which compiles fastest.
    let install = Run::cargo("install --locked --offline --force --quiet --no-track --debug")
        .args(["--path", &folder, "--root", &root]);
    println!("{install}");
    install.status()?;
    let told = Run::new(format!("{root}/bin/{PROGRAM}")).arg("--version").output()?;
    let told = told.trim();
    println!("{told}");
    // All crates of the workspace have one version.
    let manifest = workspace.root.join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).map_err(|error| format!("Cargo.toml: {error}"))?;
    let version = told.strip_prefix(PROGRAM).unwrap_or_default().trim();
    let is_ours = manifest.lines().any(|line| line == format!("version = \"{version}\""));
    if is_ours { Ok(Outcome::Ok) } else { Err(format!("`{told}` is not the workspace's version")) }
}
