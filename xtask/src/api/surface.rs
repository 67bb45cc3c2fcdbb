//! The names that crates export, and where each is defined.

use std::collections::{BTreeMap, BTreeSet};

use crate::Result;
use crate::rust::expand::expanded;
use crate::rust::item::{Code, Item, ItemKind, Span, Visibility};
use crate::rust::module::{Crate, Import, Target};
use crate::workspace::Workspace;

/// The texts of all sources of our crates, with the items that macros generate.
#[derive(Default)]
pub(crate) struct Sources {
    texts: BTreeMap<String, String>,
    /// Why a file cannot be seen as a whole. It may be one for tests, which nothing exports.
    failures: BTreeMap<String, String>,
}

/// Our crates and what they export.
pub(crate) struct Surface<'a> {
    pub(crate) libraries: BTreeMap<String, Library<'a>>,
}

pub(crate) struct Library<'a> {
    pub(crate) code: Crate<'a>,
    /// In order of paths.
    pub(crate) exports: Vec<Export>,
    /// The shortest public path of each item, by module and name.
    pub(crate) paths: BTreeMap<(usize, String), String>,
    /// The conditions under which each module is compiled.
    pub(crate) cfg: Vec<BTreeSet<String>>,
}

/// A public name of a crate.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Export {
    /// From the root of the crate, such as `wire::ToolChoice`.
    pub(crate) path: String,
    pub(crate) of: Exported,
    /// The conditions on the way to it.
    pub(crate) cfg: BTreeSet<String>,
}

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Exported {
    /// Of another crate, ours or not, by its path.
    Foreign(String),
    /// The index of an item in a module.
    Item {
        module: usize,
        item: usize,
    },
    Module,
}

impl Sources {
    /// Takes the Rust files of our crates, as path and text.
    pub(crate) fn read<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let is_library = |path: &str| path.starts_with("crates/") && path.contains("/src/");
        let mut sources = Self::default();
        for (path, text) in files.filter(|(path, _)| is_library(path)) {
            let text = expanded(text).unwrap_or_else(|failure| {
                sources.failures.insert(path.to_owned(), failure);
                text.to_owned()
            });
            sources.texts.insert(path.to_owned(), text);
        }
        sources
    }
}

impl<'a> Surface<'a> {
    /// Reads all of our crates.
    ///
    /// # Errors
    ///
    /// If a macro cannot be expanded, which would leave its items unseen.
    pub(crate) fn of(workspace: &Workspace, sources: &'a Sources) -> Result<Self> {
        let find = |path: &str| {
            let (path, text) = sources.texts.get_key_value(path)?;
            Some((path.as_str(), text.as_str()))
        };
        let read = workspace.crates().filter_map(|package| {
            let root = format!("{}/src/lib.rs", workspace.relative(&package.dir));
            Some((package.name.replace('-', "_"), Library::of(Crate::read(&root, &find)?)))
        });
        let libraries: BTreeMap<String, Library<'a>> = read.collect();
        for file in libraries.values().flat_map(|library| &library.code.files) {
            if let Some(failure) = sources.failures.get(file.path) {
                return Err(format!("{}: {failure}", file.path));
            }
        }
        Ok(Self { libraries })
    }

    /// The crates that one exports something of, with itself, by any way.
    pub(crate) fn exported_by(&self, name: &str) -> BTreeSet<&str> {
        let mut known: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> =
            self.libraries.get_key_value(name).map(|(name, _)| name.as_str()).into_iter().collect();
        while let Some(name) = open.pop() {
            if !known.insert(name) {
                continue;
            }
            for export in self.libraries.get(name).into_iter().flat_map(|library| &library.exports)
            {
                if let Exported::Foreign(path) = &export.of {
                    let first = path.split("::").next().unwrap_or_default();
                    open.extend(self.libraries.get_key_value(first).map(|(name, _)| name.as_str()));
                }
            }
        }
        known
    }

    /// The public path, from its crate on, of an item of ours that another crate names; any other path as it is.
    pub(crate) fn canonical(&self, path: &[String]) -> String {
        let through = || {
            let (first, rest) = path.split_first()?;
            let library = self.libraries.get(first)?;
            match library.code.resolve(0, rest)? {
                Target::Foreign(path) => Some(self.canonical(&path)),
                Target::Item { module, name } => {
                    let path = library.paths.get(&(module, name))?;
                    Some(format!("{first}::{path}"))
                }
                Target::Module(_) => None,
            }
        };
        through().unwrap_or_else(|| path.join("::"))
    }
}

impl<'a> Library<'a> {
    fn of(code: Crate<'a>) -> Self {
        let mut exports = Vec::new();
        collect(&code, 0, &mut Vec::new(), &BTreeSet::new(), &mut exports);
        exports.sort();
        exports.dedup();
        let mut paths: BTreeMap<(usize, String), String> = BTreeMap::new();
        for export in &exports {
            if let Exported::Item { module, item } = export.of {
                let name = code.modules[module].items[item].name.clone();
                let path = paths.entry((module, name)).or_insert_with(|| export.path.clone());
                let depth = |path: &str| path.matches("::").count();
                if depth(&export.path) < depth(path) {
                    path.clone_from(&export.path);
                }
            }
        }
        let cfg = module_conditions(&code);
        Self { code, exports, paths, cfg }
    }

    pub(crate) fn file(&self, module: usize) -> &Code<'a> {
        &self.code.files[self.code.modules[module].file].code
    }
}

/// The conditions of each module: its own and those of the modules around it.
fn module_conditions(code: &Crate<'_>) -> Vec<BTreeSet<String>> {
    let mut all: Vec<BTreeSet<String>> = Vec::new();
    for (index, module) in code.modules.iter().enumerate() {
        let mut cfg = BTreeSet::new();
        if let Some(parent) = module.parent {
            // A parent comes before its children.
            cfg.clone_from(&all[parent]);
            let around = &code.modules[parent];
            let file = &code.files[around.file].code;
            let name =
                around.children.iter().find(|(_, child)| **child == index).map(|(name, _)| name);
            let is = |item: &&Item| item.kind == ItemKind::Mod && Some(&item.name) == name;
            for item in around.items.iter().filter(is) {
                cfg.extend(conditions(file, &item.attributes));
            }
        }
        let file = &code.files[module.file].code;
        let is_file = module.parent.is_none_or(|parent| code.modules[parent].file != module.file);
        if is_file {
            cfg.extend(conditions(file, &file.inner_attributes(file.all())));
        }
        all.push(cfg);
    }
    all
}

/// Collects what a module exports, and the modules below it.
fn collect(
    code: &Crate<'_>,
    index: usize,
    path: &mut Vec<String>,
    cfg: &BTreeSet<String>,
    exports: &mut Vec<Export>,
) {
    let module = &code.modules[index];
    let file = &code.files[module.file].code;
    let joined = |path: &[String], name: &str| {
        let mut path = path.to_vec();
        path.push(name.to_owned());
        path.join("::")
    };
    for (at, item) in module.items.iter().enumerate() {
        let is_exported = item.kind == ItemKind::MacroRules && has(file, item, &["macro_export"]);
        if (item.visibility != Visibility::Public && !is_exported) || is_hidden(file, item) {
            continue;
        }
        let mut cfg = cfg.clone();
        cfg.extend(conditions(file, &item.attributes));
        match item.kind {
            ItemKind::Impl | ItemKind::MacroCall => {}
            ItemKind::Use => {
                let imports = module.imports.iter().filter(|import| import.item == at);
                for import in imports {
                    re_export(code, index, import, path, &cfg, exports);
                }
            }
            ItemKind::Mod => {
                exports.push(Export {
                    path: joined(path, &item.name),
                    of: Exported::Module,
                    cfg: cfg.clone(),
                });
                if let Some(child) = module.children.get(&item.name) {
                    path.push(item.name.clone());
                    collect(code, *child, path, &cfg, exports);
                    path.pop();
                }
            }
            _ => {
                let of = Exported::Item { module: index, item: at };
                exports.push(Export { path: joined(path, &item.name), of, cfg });
            }
        }
    }
}

fn re_export(
    code: &Crate<'_>,
    index: usize,
    import: &Import,
    path: &mut Vec<String>,
    cfg: &BTreeSet<String>,
    exports: &mut Vec<Export>,
) {
    let target =
        code.resolve(index, &import.path).unwrap_or_else(|| Target::Foreign(import.path.clone()));
    let name = import.name.clone().unwrap_or_else(|| "*".to_owned());
    let mut whole = path.clone();
    whole.push(name.clone());
    match target {
        Target::Foreign(of) => {
            let of = Exported::Foreign(of.join("::"));
            exports.push(Export { path: whole.join("::"), of, cfg: cfg.clone() });
        }
        Target::Item { module, name } => {
            let file = &code.files[code.modules[module].file].code;
            for (at, item) in code.modules[module].items.iter().enumerate() {
                if item.name == name
                    && item.kind != ItemKind::Mod
                    && item.kind != ItemKind::MacroCall
                {
                    let mut cfg = cfg.clone();
                    cfg.extend(conditions(file, &item.attributes));
                    let of = Exported::Item { module, item: at };
                    exports.push(Export { path: whole.join("::"), of, cfg });
                }
            }
        }
        Target::Module(module) if import.name.is_none() => {
            collect(code, module, path, cfg, exports);
        }
        Target::Module(module) => {
            path.push(name);
            exports.push(Export { path: path.join("::"), of: Exported::Module, cfg: cfg.clone() });
            collect(code, module, path, cfg, exports);
            path.pop();
        }
    }
}

/// The insides of `#[cfg(..)]`.
pub(crate) fn conditions(code: &Code<'_>, attributes: &[Span]) -> Vec<String> {
    let is_cfg = |attribute: &&Span| code.is(attribute.start, "cfg");
    attributes
        .iter()
        .filter(is_cfg)
        .map(|attribute| plain(code, code.inside(attribute.start + 1)))
        .collect()
}

pub(crate) fn is_hidden(code: &Code<'_>, item: &Item) -> bool {
    has(code, item, &["doc", "(", "hidden", ")"])
}

fn has(code: &Code<'_>, item: &Item, words: &[&str]) -> bool {
    item.attributes.iter().any(|attribute| is_attribute(code, attribute, words))
}

/// Returns true if an attribute is exactly these words.
pub(crate) fn is_attribute(code: &Code<'_>, attribute: &Span, words: &[&str]) -> bool {
    code.tokens[attribute.clone()].iter().map(|token| token.text).eq(words.iter().copied())
}

/// The words of a span, as an attribute is written.
fn plain(code: &Code<'_>, span: Span) -> String {
    let mut out = String::new();
    for token in &code.tokens[span] {
        let is_tight =
            matches!(token.text, "(" | ")" | ",") || out.ends_with('(') || out.is_empty();
        if !is_tight {
            out.push(' ');
        }
        out.push_str(token.text);
    }
    out
}
