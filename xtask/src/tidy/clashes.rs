//! Public types of different modules that share a name.

use std::collections::BTreeMap;

use super::Finding;
use super::tree::Tree;
use crate::Result;
use crate::api::surface::{Exported, Sources, Surface};
use crate::rust::item::ItemKind;

/// The crate whose modules users read.
const ROOT: &str = "open_agent";

/// Names that each crate may have: a reader writes `sse::Error`.
const SHARED: [&str; 5] = ["Error", "ErrorKind", "Limits", "Options", "Result"];

pub(super) fn clashes(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    judge(tree, ROOT)
}

fn judge(tree: &Tree<'_>, root: &str) -> Result<Vec<Finding>> {
    let files = tree.rust().map(|(file, _)| (file.path.as_str(), file.text.as_str()));
    let sources = Sources::read(files);
    let surface = Surface::of(tree.workspace, &sources)?;
    let mut findings = Vec::new();
    let types = types(&surface, root);
    for (name, paths) in &types {
        if paths.len() > 1 && !SHARED.contains(&name.as_str()) {
            let paths: Vec<&str> = paths.keys().map(String::as_str).collect();
            let message = format!(
                "several public types are named {name}: {}; rename all but one",
                paths.join(" and ")
            );
            let file = paths.last().and_then(|path| types[name].get(*path)).cloned();
            findings.push(Finding::file(file.unwrap_or_default(), message));
        }
    }
    Ok(findings)
}

/// The types of all crates that one re-exports, by name: each path with its file.
fn types(surface: &Surface<'_>, root: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut types: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for name in surface.exported_by(root) {
        let library = &surface.libraries[name];
        for export in &library.exports {
            let Exported::Item { module, item } = export.of else { continue };
            let item = &library.code.modules[module].items[item];
            let is_type = matches!(
                item.kind,
                ItemKind::Enum
                    | ItemKind::Struct
                    | ItemKind::Trait
                    | ItemKind::Type
                    | ItemKind::Union
            );
            // Other paths of one type are not separate types.
            let main = library.paths.get(&(module, item.name.clone()));
            if is_type && main == Some(&export.path) {
                let last = export.path.rsplit("::").next().unwrap_or_default();
                let file = library.code.files[library.code.modules[module].file].path;
                let paths = types.entry(last.to_owned()).or_default();
                paths.insert(format!("{name}::{}", export.path), file.to_owned());
            }
        }
    }
    types
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::tree::File;
    use super::*;
    use crate::workspace::{Package, Workspace};

    fn found(low: &str, high: &str) -> Vec<String> {
        let package = |name: &str| Package {
            name: name.to_owned(),
            dir: format!("crates/{name}").into(),
            ..Package::default()
        };
        let packages = ["oa-high", "oa-low", "oa-other", "top"].map(package).into();
        let workspace = Workspace { root: PathBuf::new(), target: PathBuf::new(), packages };
        let files = vec![
            File::new("crates/top/src/lib.rs", "pub use oa_low as low; pub use oa_high::X;"),
            File::new("crates/oa-low/src/lib.rs", low),
            File::new("crates/oa-high/src/lib.rs", high),
            File::new("crates/oa-other/src/lib.rs", "pub struct Answer;"),
        ];
        let found = judge(&Tree { workspace: &workspace, files }, "top").unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_types_of_one_name_are_found() {
        let low = "pub struct Answer; pub struct X;";
        assert_eq!(
            found(low, "pub use oa_low::X; pub enum Answer {}"),
            [
                "crates/oa-low/src/lib.rs: several public types are named Answer: oa_high::Answer and oa_low::Answer; \
              rename all but one"
            ]
        );
        assert_eq!(found("pub struct A; pub mod b { pub trait A {} }", "").len(), 1);
    }

    #[test]
    fn one_type_may_have_many_paths() {
        let low = "mod a { pub struct Answer; } pub use a::Answer; pub mod b { pub use super::a::Answer; }";
        assert_eq!(found(low, "pub use oa_low::Answer; struct Private; fn answer() {}"), [""; 0]);
        assert_eq!(
            found("pub struct Error; struct A;", "pub struct Error; pub struct A;"),
            [""; 0]
        );
    }
}
