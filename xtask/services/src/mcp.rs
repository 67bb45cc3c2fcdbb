use std::path::{Path, PathBuf};

use crate::Unavailable;
use crate::npm::Npm;

/// The reference server, the official client of the versions with a handshake, and client and server of 2026-07-28.
const PACKAGES: [&str; 4] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/server@2.4.0",
];

/// The reference server of the Model Context Protocol and its official TypeScript SDKs, from npm. They are installed
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
        let versions: Vec<_> =
            PACKAGES.iter().filter_map(|package| Some(package.rsplit_once('@')?.1)).collect();
        let packages = Npm {
            folder: &format!("mcp-{}", versions.join("-")),
            packages: &PACKAGES,
            sign: Path::new("node_modules"),
            missing: "the packages of the Model Context Protocol need Node and npm, which are not installed",
        };
        packages.install().map(|folder| Self { folder })
    }

    /// Returns the folder with `node_modules`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
