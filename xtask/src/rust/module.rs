//! The modules of a crate: what each declares and imports, and what a path in it names.

use std::collections::BTreeMap;

use super::item::{Code, Item, ItemKind, Span, Visibility};
use super::lexer::Kind;

/// A crate's modules, from the root on. Modules for tests are left out.
pub(crate) struct Crate<'a> {
    /// The first is the root.
    pub(crate) modules: Vec<Module>,
    /// One for each file of it.
    pub(crate) files: Vec<Source<'a>>,
    /// `mod` lines without a file.
    pub(crate) missing: Vec<String>,
}

pub(crate) struct Source<'a> {
    /// From the root of the workspace.
    pub(crate) path: &'a str,
    pub(crate) code: Code<'a>,
}

pub(crate) struct Module {
    /// The index of its file.
    pub(crate) file: usize,
    pub(crate) parent: Option<usize>,
    /// Those of it alone: not of modules in it, and none for tests.
    pub(crate) items: Vec<Item>,
    pub(crate) children: BTreeMap<String, usize>,
    pub(crate) imports: Vec<Import>,
}

/// One name that a `use` brings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Import {
    /// As written, from `crate`, `self`, `super`, a crate or a name in scope.
    pub(crate) path: Vec<String>,
    /// Its name here; `None` is a glob.
    pub(crate) name: Option<String>,
    pub(crate) visibility: Visibility,
    pub(crate) line: usize,
    /// The index of the module's item in which it stands.
    pub(crate) item: usize,
}

/// The thing that a path names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    /// Of another crate, by its whole path.
    Foreign(Vec<String>),
    /// An item of a module, or something inside of it, such as a variant.
    Item {
        module: usize,
        name: String,
    },
    Module(usize),
}

/// Paths that lead through more re-exports than this lead in a circle.
const DEEPEST: usize = 16;

/// Gives the path and text of a file that exists.
pub(crate) type Find<'f, 'a> = &'f dyn Fn(&str) -> Option<(&'a str, &'a str)>;

impl<'a> Crate<'a> {
    /// Reads the crate whose root file is `root`.
    pub(crate) fn read(root: &str, find: Find<'_, 'a>) -> Option<Self> {
        let (path, text) = find(root)?;
        let mut this = Self { modules: Vec::new(), files: Vec::new(), missing: Vec::new() };
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        this.add_file((path, text), None, folder, find);
        Some(this)
    }

    /// Adds a file and the modules below it, whose files are in `folder`.
    fn add_file(
        &mut self,
        (path, text): (&'a str, &'a str),
        parent: Option<usize>,
        folder: &str,
        find: Find<'_, 'a>,
    ) -> Option<usize> {
        let code = Code::new(text);
        let inner = code.inner_attributes(code.all());
        if inner.into_iter().any(|attribute| code.is_test_cfg(attribute)) {
            return None;
        }
        let span = code.all();
        self.files.push(Source { path, code });
        let file = self.files.len() - 1;
        Some(self.add_module((file, span), parent, folder, find))
    }

    /// Adds a module that is a part of a file, and those below it.
    fn add_module(
        &mut self,
        (file, span): (usize, Span),
        parent: Option<usize>,
        folder: &str,
        find: Find<'_, 'a>,
    ) -> usize {
        let code = &self.files[file].code;
        let mut items = code.items(span);
        // The one macro of others whose insides are items as they stand.
        let is_projected = |i: &&Item| i.kind == ItemKind::MacroCall && i.name == "pin_project";
        let bodies = items.iter().filter(is_projected).filter_map(|item| item.body.clone());
        let projected: Vec<Item> = bodies.flat_map(|body| code.items(body)).collect();
        items.extend(projected);
        items.retain(|item| !code.serves_tests(item));

        let imports = imports(code, &items);
        let below = items.iter().filter(|item| item.kind == ItemKind::Mod);
        let below: Vec<_> = below.map(|item| (item.name.clone(), item.body.clone())).collect();
        let children = BTreeMap::new();
        // Before the modules in it: readers rely on a parent's index being smaller than those of its
        // children.
        self.modules.push(Module { file, parent, items, children, imports });
        let index = self.modules.len() - 1;
        for (name, body) in below {
            let folder = format!("{folder}/{name}");
            let places = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
            let child = match (body, places.iter().find_map(|place| find(place))) {
                (Some(body), _) => Some(self.add_module((file, body), Some(index), &folder, find)),
                (None, Some(found)) => self.add_file(found, Some(index), &folder, find),
                (None, None) => {
                    self.missing.push(format!("{folder}.rs"));
                    None
                }
            };
            if let Some(child) = child {
                self.modules[index].children.insert(name, child);
            }
        }
        index
    }

    /// Resolves a path that is written in a module.
    pub(crate) fn resolve(&self, module: usize, path: &[String]) -> Option<Target> {
        self.resolve_within(module, path, DEEPEST)
    }

    fn resolve_within(&self, module: usize, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" | "$crate" => self.below(0, rest, depth),
            "self" => self.below(module, rest, depth),
            "super" => {
                let parent = self.modules[module].parent?;
                match rest.first().map(String::as_str) {
                    Some("super") => self.resolve_within(parent, rest, depth),
                    _ => self.below(parent, rest, depth),
                }
            }
            _ => self.below(module, path, depth),
        }
    }

    /// Resolves a path from a module down.
    fn below(&self, module: usize, path: &[String], depth: usize) -> Option<Target> {
        let Some((name, rest)) = path.split_first() else {
            return Some(Target::Module(module));
        };
        // Counts names of paths, not only re-exports, which is enough to end a circle of them.
        let depth = depth.checked_sub(1)?;
        let here = &self.modules[module];
        let child = here.children.get(name).copied();
        // A module and an item may share a name: what goes on is the module, what ends is the item.
        if let Some(child) = child.filter(|_| !rest.is_empty())
            && let Some(target) = self.below(child, rest, depth)
        {
            return Some(target);
        }
        let is_named = |item: &&Item| item.name == *name && may_hold(item.kind, rest);
        if here.items.iter().any(|item| is_named(&item)) {
            return Some(Target::Item { module, name: name.clone() });
        }
        let named = here.imports.iter().filter(|import| import.name.as_ref() == Some(name));
        let through = named.filter_map(|import| self.through(module, import, rest, depth));
        // Re-exported under its own name may be a module and an item of one path.
        let through: Vec<Target> = through.collect();
        let item = through.iter().find(|target| matches!(target, Target::Item { .. }));
        if let Some(target) = item.or_else(|| through.first()) {
            return Some(target.clone());
        }
        if let Some(child) = child {
            return rest.is_empty().then_some(Target::Module(child));
        }
        // Last, because anything that is named shadows what a glob brings.
        let globs = here.imports.iter().filter(|import| import.name.is_none());
        let mut globs =
            globs.filter_map(|glob| match self.resolve_within(module, &glob.path, depth)? {
                // A glob of the module itself brings nothing new.
                Target::Module(of) if of != module => self.below(of, path, depth),
                Target::Foreign(_) | Target::Item { .. } | Target::Module(_) => None,
            });
        globs.next()
    }

    /// Resolves what follows a name that was imported.
    fn through(
        &self,
        module: usize,
        import: &Import,
        rest: &[String],
        depth: usize,
    ) -> Option<Target> {
        let mut path = import.path.clone();
        path.extend_from_slice(rest);
        // `use name::..` where this very import brings the name is a crate's name.
        let first = import.path.first()?;
        let is_relative = matches!(first.as_str(), "crate" | "self" | "super" | "$crate");
        if !is_relative && !self.is_in_scope(module, first, import) {
            return Some(Target::Foreign(path));
        }
        self.resolve_within(module, &path, depth)
    }

    fn is_in_scope(&self, module: usize, name: &str, besides: &Import) -> bool {
        let here = &self.modules[module];
        let imported = |other: &&Import| *other != besides && other.name.as_deref() == Some(name);
        here.children.contains_key(name)
            || here.items.iter().any(|item| item.name == name)
            || here.imports.iter().any(|other| imported(&other))
    }
}

/// Returns whether an item of this kind can have something of that path in it.
fn may_hold(kind: ItemKind, path: &[String]) -> bool {
    match kind {
        ItemKind::Const | ItemKind::Fn | ItemKind::MacroRules | ItemKind::Static => path.is_empty(),
        ItemKind::Enum | ItemKind::Struct | ItemKind::Trait | ItemKind::Type | ItemKind::Union => {
            true
        }
        ItemKind::Impl | ItemKind::MacroCall | ItemKind::Mod | ItemKind::Use => false,
    }
}

/// The names that all `use` of a module bring, also those in its functions.
fn imports(code: &Code<'_>, items: &[Item]) -> Vec<Import> {
    let mut imports = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let (visibility, line) = (item.visibility, item.line);
        let import = Import { path: Vec::new(), name: None, visibility, line, item: index };
        match item.kind {
            ItemKind::Mod => {}
            ItemKind::Use => {
                use_tree(code, item.head.start + 1..item.head.end, &import, &mut imports);
            }
            _ => {
                // In bodies a `use` is a statement.
                let body = item.body.clone().unwrap_or(item.head.end..item.head.end);
                for at in body.clone() {
                    let begins = at == body.start || !code.is(at - 1, "::");
                    if begins && code.is(at, "use") && code.tokens[at].kind == Kind::Ident {
                        let semicolon = code.find(at..body.end, |token| token.is(";"));
                        let tree = at + 1..semicolon.unwrap_or(at + 1);
                        let (visibility, line) = (Visibility::Private, code.line(at));
                        let import = Import { visibility, line, ..import.clone() };
                        use_tree(code, tree, &import, &mut imports);
                    }
                }
            }
        }
    }
    imports
}

/// Reads `a::b::{c, d as e, self, *}`, which goes on from the path of `import`.
fn use_tree(code: &Code<'_>, tree: Span, import: &Import, imports: &mut Vec<Import>) {
    let mut path = import.path.clone();
    let mut at = tree.start;
    while at < tree.end {
        if code.is(at, "::") {
            at += 1;
        } else if code.is(at, "{") {
            for part in code.split(code.inside(at), ",") {
                use_tree(code, part, &Import { path: path.clone(), ..import.clone() }, imports);
            }
            return;
        } else if code.is(at, "*") {
            imports.push(Import { path, ..import.clone() });
            return;
        } else if code.is(at, "as") {
            break;
        } else if let Some(word) = code.ident(at) {
            // `a::{self}` is `a`.
            if word != "self" || path.is_empty() {
                path.push(word.to_owned());
            }
            at += 1;
        } else {
            return;
        }
    }
    let alias = code.is(at, "as").then(|| code.ident(at + 1)).flatten();
    let name = alias.map(str::to_owned).or_else(|| path.last().cloned());
    if !path.is_empty() {
        imports.push(Import { path, name, ..import.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resolves a path in `src/a.rs` to a file and an item.
    #[track_caller]
    fn check(files: &[(&str, &str)], path: &str, expect: &str) {
        let find = |wanted: &str| files.iter().find(|(path, _)| *path == wanted).copied();
        let read = Crate::read("src/lib.rs", &find).unwrap();
        let a = read.modules.iter().position(|module| read.files[module.file].path == "src/a.rs");
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        let target = match read.resolve(a.unwrap(), &path) {
            None => "nothing".to_owned(),
            Some(Target::Foreign(path)) => path.join("::"),
            Some(Target::Item { module, name }) => {
                format!("{} {name}", read.files[read.modules[module].file].path)
            }
            Some(Target::Module(module)) => read.files[read.modules[module].file].path.to_owned(),
        };
        assert_eq!(target, expect);
    }

    #[test]
    fn names_resolve_to_definitions() {
        let files = [
            (
                "src/lib.rs",
                "mod a; mod b; #[cfg(test)] mod absent;\npub use crate::b::{deep::Deep as Re, b};\n\
                 pub use bytes as raw; fn own() {}",
            ),
            (
                "src/a.rs",
                "use crate::b::{self, deep::*}; use super::own; use http::Method; mod c { }",
            ),
            ("src/b.rs", "pub fn b() {} pub mod deep; enum E { V }"),
            ("src/b/deep.rs", "pub struct Deep; use super::E;"),
        ];
        let check = |path, expect| check(&files, path, expect);
        check("crate::b::deep::Deep", "src/b/deep.rs Deep");
        check("crate::Re::new", "src/b/deep.rs Deep");
        check("super::b", "src/b.rs b");
        check("super::b::b", "src/b.rs b");
        check("b::E::V", "src/b.rs E");
        check("b::deep::E::V", "src/b.rs E");
        check("Deep::new", "src/b/deep.rs Deep");
        check("own", "src/lib.rs own");
        check("self::c", "src/a.rs");
        check("Method::GET", "http::Method::GET");
        check("crate::raw::Bytes", "bytes::Bytes");
        check("crate::b::nothing", "nothing");
        check("String::new", "nothing");
    }

    #[test]
    fn re_exports_in_a_circle_end() {
        let files =
            [("src/lib.rs", "mod a; pub use self::a::X;"), ("src/a.rs", "pub use super::X;")];
        check(&files, "crate::X", "nothing");
    }

    #[test]
    fn imports_are_read_in_every_form() {
        let text =
            "use a::{b as c, d::{self, E}, f::*, g as _}; pub use ::h; fn i() { use self::j; }";
        let read = Crate::read("l", &|_| Some(("l", text))).unwrap();
        let imports = read.modules[0].imports.iter();
        let imports: Vec<_> = imports
            .map(|import| {
                format!("{} {}", import.path.join("::"), import.name.as_deref().unwrap_or("*"))
            })
            .collect();
        assert_eq!(
            imports,
            ["a::b c", "a::d d", "a::d::E E", "a::f *", "a::g _", "h h", "self::j j"]
        );
    }
}
