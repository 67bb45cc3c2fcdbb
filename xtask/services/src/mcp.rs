use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::Unavailable;
use crate::target::target;

const MISSING: &str =
    "the packages of the Model Context Protocol need Node and npm, which are not installed";
/// The reference server, the official client of the versions with a handshake, and that of 2026-07-28.
const PACKAGES: [&str; 3] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
];

/// The reference server of the Model Context Protocol and its official TypeScript clients, from npm. They are installed
/// below `target` at first use.
#[derive(Clone, Debug)]
pub struct McpPackages {
    folder: PathBuf,
}

impl McpPackages {
    /// Installs the packages, unless they are there.
    ///
    /// # Errors
    ///
    /// `Missing` if npm or its registry is.
    pub fn install() -> Result<Self, Unavailable> {
        static INSTALLING: Mutex<()> = Mutex::new(());
        let _alone = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        let versions: Vec<_> =
            PACKAGES.iter().filter_map(|package| Some(package.rsplit_once('@')?.1)).collect();
        let services = target().join("services");
        let folder = services.join(format!("mcp-{}", versions.join("-")));
        let this = Self { folder };
        if this.folder.join("node_modules").exists() {
            return Ok(this);
        }
        let failed = |error: &dyn std::fmt::Display| {
            let place = services.display();
            Unavailable::Missing(format!(
                "the packages of the Model Context Protocol cannot be installed below {place}: {error}"
            ))
        };
        // Other processes may install them at the same time: each into a folder of its own, of which the first is kept.
        let ours = services.join(format!("mcp.{}", std::process::id()));
        let installed = fill(&ours).and_then(|()| match fs::rename(&ours, &this.folder) {
            Err(error) if !this.folder.exists() => Err(Some(error)),
            _ => Ok(()),
        });
        let _ = fs::remove_dir_all(&ours);
        match installed {
            Ok(()) => Ok(this),
            Err(Some(error)) => Err(failed(&error)),
            Err(None) => Err(Unavailable::Missing(MISSING.to_owned())),
        }
    }

    /// Returns the folder with `node_modules`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Installs the packages into a folder. The error is `None` if there is no npm.
fn fill(folder: &Path) -> Result<(), Option<io::Error>> {
    fs::create_dir_all(folder).map_err(Some)?;
    fs::write(folder.join("package.json"), "{\"name\":\"mcp-packages\",\"private\":true}\n")
        .map_err(Some)?;
    let mut npm = Command::new("npm");
    npm.arg("install").arg("--prefix").arg(folder);
    npm.args(["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
    // Without the registry, npm would try for six minutes.
    npm.env("npm_config_fetch_retries", "1").env("npm_config_fetch_timeout", "20000");
    let output = npm.args(PACKAGES).stdin(Stdio::null()).output().map_err(|_| None)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.lines().find(|line| line.contains(" error ")).unwrap_or("no word of it");
    Err(Some(io::Error::other(why.to_owned())))
}
