//! The workspace as reported by `cargo metadata`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Result;
use crate::command::Run;

#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The folder of its manifest.
    pub(crate) dir: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// True if it may be published to a registry.
    pub(crate) published: bool,
    pub(crate) rust_version: Option<String>,
    pub(crate) version: String,
    /// Names of its binaries.
    pub(crate) bins: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The features that the manifest turns on.
    pub(crate) features: Vec<String>,
    pub(crate) optional: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Kind {
    Build,
    Dev,
    #[default]
    Normal,
}

impl Workspace {
    /// Reads the workspace around the current folder.
    pub(crate) fn load() -> Result<Self> {
        Self::read(&Run::cargo("metadata --no-deps --format-version 1"))
    }

    /// Reads the workspace of a manifest.
    pub(crate) fn load_from(manifest: &Path) -> Result<Self> {
        let run = Run::cargo("metadata --no-deps --format-version 1 --manifest-path");
        Self::read(&run.arg(manifest.display().to_string()))
    }

    fn read(metadata: &Run) -> Result<Self> {
        let value: Value = serde_json::from_str(&metadata.output()?)
            .map_err(|error| format!("`{metadata}` printed no JSON: {error}"))?;
        let packages = list(&value["packages"]).iter().map(Package::read).collect();
        Ok(Self {
            root: PathBuf::from(text(&value["workspace_root"])),
            target: PathBuf::from(text(&value["target_directory"])),
            packages,
        })
    }

    /// The packages under `crates/`.
    pub(crate) fn crates(&self) -> impl Iterator<Item = &Package> {
        let folder = self.root.join("crates");
        self.packages.iter().filter(move |package| package.dir.starts_with(&folder))
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The path as seen from the root, with forward slashes.
    pub(crate) fn relative(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.display().to_string().replace('\\', "/")
    }
}

impl Package {
    fn read(value: &Value) -> Self {
        let manifest = PathBuf::from(text(&value["manifest_path"]));
        let features = value["features"].as_object().map(|features| {
            let strings = |v: &Value| list(v).iter().map(text).collect();
            features.iter().map(|(name, enables)| (name.clone(), strings(enables))).collect()
        });
        let is_bin = |target: &&Value| list(&target["kind"]).iter().any(|kind| kind == "bin");
        Self {
            name: text(&value["name"]),
            dir: manifest.parent().map(Path::to_owned).unwrap_or_default(),
            dependencies: list(&value["dependencies"]).iter().map(Dependency::read).collect(),
            features: features.unwrap_or_default(),
            // `publish = false` is an empty list of registries.
            published: value["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
            rust_version: value["rust_version"].as_str().map(str::to_owned),
            version: text(&value["version"]),
            bins: list(&value["targets"])
                .iter()
                .filter(is_bin)
                .map(|target| text(&target["name"]))
                .collect(),
        }
    }
}

impl Dependency {
    fn read(value: &Value) -> Self {
        let kind = match value["kind"].as_str() {
            Some("build") => Kind::Build,
            Some("dev") => Kind::Dev,
            _ => Kind::Normal,
        };
        Self {
            name: text(&value["name"]),
            kind,
            features: list(&value["features"]).iter().map(text).collect(),
            optional: value["optional"] == true,
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
