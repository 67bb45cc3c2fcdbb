//! Files of a crate that import each other in circles.
//!
//! A file imports another where one of its paths names something that the other defines, through any re-exports. A
//! `mod` line is not an import, nor is a re-export that the file itself does not use. Tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::tree::Tree;
use crate::Result;
use crate::rust::item::{Code, Item, ItemKind, Span, Visibility};
use crate::rust::module::{Crate, Import, Module, Target};
use crate::workspace::Package;

/// Where the list below says so.
const TABLE: &str = "xtask/src/tidy/circles.rs";

/// The most files in an accepted circle.
const MOST: usize = 3;

/// Accepted circles, each with its reason. `ARCHITECTURE.md` names their files, too.
const ALLOWED: &[Allowed] = &[];

struct Allowed {
    krate: &'static str,
    /// From `src` on, in order.
    files: &'static [&'static str],
    reason: &'static str,
}

pub(super) fn circles(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    judge(tree, ALLOWED)
}

fn judge(tree: &Tree<'_>, allowed: &[Allowed]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut met = BTreeSet::new();
    let map = tree.file("ARCHITECTURE.md").map_or("", |file| file.text.as_str());
    for package in tree.workspace.crates() {
        let imports = Imports::of(tree, package)?;
        let root = format!("{}/src/", tree.workspace.relative(&package.dir));
        for circle in imports.circles() {
            let names: Vec<&str> =
                circle.iter().map(|file| file.strip_prefix(&root).unwrap_or(file)).collect();
            let is = |entry: &&Allowed| entry.krate == package.name && entry.files == names;
            if let Some(entry) = allowed.iter().find(is) {
                met.insert((entry.krate, entry.files));
                let missing = names.iter().filter(|name| !map.contains(**name));
                findings.extend(missing.map(|name| {
                    let message = format!(
                        "does not name {name} of {}, in a circle because {}",
                        entry.krate, entry.reason
                    );
                    Finding::file("ARCHITECTURE.md", message)
                }));
            } else {
                let message = format!(
                    "imports itself by way of {}: move what they share into a file of its own, or hand it in \
                     (`cargo xtask circles {}` shows each import)",
                    names[1..].join(", "),
                    package.name
                );
                findings.push(Finding::file(circle[0], message));
            }
        }
    }
    for entry in allowed {
        if entry.files.len() > MOST {
            let message = format!("{} files of {} are too many", entry.files.len(), entry.krate);
            findings.push(Finding::file(TABLE, message));
        }
        if !met.contains(&(entry.krate, entry.files)) {
            let message =
                format!("no circle of {} has exactly {}", entry.krate, entry.files.join(", "));
            findings.push(Finding::file(TABLE, message));
        }
    }
    Ok(findings)
}

/// Prints the circles of one crate, or of all, with the imports that make them.
pub(crate) fn print(tree: &Tree<'_>, name: Option<&str>) -> Result<()> {
    if let Some(name) = name
        && tree.workspace.package(name).is_none()
    {
        return Err(format!("no crate is called {name}"));
    }
    for package in tree.workspace.crates() {
        if name.is_some_and(|name| name != package.name) {
            continue;
        }
        let imports = Imports::of(tree, package)?;
        let circles = imports.circles();
        println!("{}: {} circles", package.name, circles.len());
        for circle in circles {
            println!("  {} files", circle.len());
            for (from, to) in &imports.edges {
                if circle.contains(&from.as_str()) {
                    for (to, places) in to.iter().filter(|(to, _)| circle.contains(&to.as_str())) {
                        let places: Vec<_> =
                            places.iter().map(|(line, name)| format!("{line} {name}")).collect();
                        println!("    {from} -> {to}: {}", places.join(", "));
                    }
                }
            }
        }
    }
    Ok(())
}

type Places = BTreeSet<(usize, String)>;

/// Which files import which, with the lines and names.
#[derive(Debug, Default)]
struct Imports {
    edges: BTreeMap<String, BTreeMap<String, Places>>,
}

impl Imports {
    fn of(tree: &Tree<'_>, package: &Package) -> Result<Self> {
        let root = format!("{}/src/lib.rs", tree.workspace.relative(&package.dir));
        let find = |path: &str| {
            let file = tree.file(path)?;
            Some((file.path.as_str(), file.text.as_str()))
        };
        let Some(read) = Crate::read(&root, &find) else {
            return Ok(Self::default());
        };
        if let Some(missing) = read.missing.first() {
            return Err(format!("{missing} is missing"));
        }
        let mut imports = Self::default();
        for (index, module) in read.modules.iter().enumerate() {
            let code = &read.files[module.file].code;
            let spans = spans(module);
            for import in &module.imports {
                if is_used(code, &spans, import) {
                    imports.add(&read, index, &import.path, import.line);
                }
            }
            for (path, line) in spans.iter().flat_map(|span| paths(code, span.clone())) {
                imports.add(&read, index, &path, line);
            }
        }
        Ok(imports)
    }

    fn add(&mut self, read: &Crate<'_>, from: usize, path: &[String], line: usize) {
        let Some(Target::Item { module, .. }) = read.resolve(from, path) else {
            return;
        };
        let file = |module: usize| read.files[read.modules[module].file].path;
        let (from, to) = (file(from), file(module));
        if from != to {
            let places = self.edges.entry(from.to_owned()).or_default().entry(to.to_owned());
            places.or_default().insert((line, path.join("::")));
        }
    }

    /// Groups of files, in order, each of which imports all others of its group by some way.
    fn circles(&self) -> Vec<Vec<&str>> {
        let mut circles: Vec<Vec<&str>> = Vec::new();
        for file in self.edges.keys() {
            // A file is in at most one circle: two that share a file are one.
            if circles.iter().flatten().any(|known| known == file) {
                continue;
            }
            // A circle is a strongly connected component: the files that this one reaches and that reach it.
            // Each pair of files is searched anew, which is fast enough for a crate.
            let reached = self.reached(file);
            let back = |other: &&&str| self.reached(other).contains(file.as_str());
            let circle: Vec<&str> = reached.iter().filter(back).copied().collect();
            if circle.contains(&file.as_str()) {
                circles.push(circle);
            }
        }
        circles
    }

    /// The files that one imports, by any way.
    fn reached(&self, file: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![file];
        while let Some(file) = open.pop() {
            for next in self.edges.get(file).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(next.as_str()) {
                    open.push(next);
                }
            }
        }
        reached
    }
}

/// Returns where names may be used: in items that are neither modules nor imports.
fn spans(module: &Module) -> Vec<Span> {
    let is_code = |item: &&Item| !matches!(item.kind, ItemKind::Mod | ItemKind::Use);
    let parts = |item: &Item| {
        let mut parts = item.attributes.clone();
        parts.push(item.head.clone());
        parts.extend(item.body.clone());
        parts
    };
    module.items.iter().filter(is_code).flat_map(parts).collect()
}

/// Returns true if the file itself uses its import: a re-export may be for others.
fn is_used(code: &Code<'_>, spans: &[Span], import: &Import) -> bool {
    let Some(name) = import.name.as_deref().filter(|name| *name != "_") else {
        return true;
    };
    let is_name = |at: usize| code.ident(at) == Some(name) && !(at > 0 && code.is(at - 1, "::"));
    import.visibility == Visibility::Private || spans.iter().cloned().flatten().any(is_name)
}

/// The paths of at least two words in a span, with their lines.
fn paths(code: &Code<'_>, span: Span) -> Vec<(Vec<String>, usize)> {
    let mut paths = Vec::new();
    let mut at = span.start;
    while at < span.end {
        // `b::c` in `<A as B>::b::c` or `a.b::<C>()` is not a path that begins here.
        let begins = at == 0 || !(code.is(at - 1, "::") || code.is(at - 1, "."));
        let mut path: Vec<String> = Vec::new();
        let line = code.line(at);
        while at < span.end
            && let Some(word) = code.ident(at)
        {
            path.push(word.to_owned());
            at += 1;
            if !code.is(at, "::") {
                break;
            }
            at += 1;
        }
        if path.is_empty() {
            at += 1;
        } else if begins && path.len() > 1 {
            paths.push((path, line));
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::tree::File;
    use super::*;
    use crate::workspace::Workspace;

    const TWO: [(&str, &str); 3] = [
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
        ("a.rs", "use crate::B; pub struct A(B);"),
        ("b.rs", "pub struct B(crate::a::A);"),
    ];

    fn messages(files: &[(&str, &str)], allowed: &[Allowed]) -> Vec<String> {
        let package =
            Package { name: "oa-a".into(), dir: "crates/oa-a".into(), ..Package::default() };
        let workspace =
            Workspace { root: PathBuf::new(), target: PathBuf::new(), packages: vec![package] };
        let path = |name: &str| {
            if name.ends_with(".md") { name.to_owned() } else { format!("crates/oa-a/src/{name}") }
        };
        let files = files.iter().map(|(name, text)| File::new(path(name), *text)).collect();
        let found = judge(&Tree { workspace: &workspace, files }, allowed).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn check(a: &str, b: &str, in_circle: bool) {
        let lib = "mod a; mod b; pub use crate::a::A; pub use crate::b::B;";
        let files = [("lib.rs", lib), ("a.rs", a), ("b.rs", b)];
        assert_eq!(messages(&files, &[]).len(), usize::from(in_circle), "{a} | {b}");
    }

    #[test]
    fn imports_of_every_form_close_a_circle() {
        let b = "pub struct B; pub fn b() { crate::a::a() }";
        check("use crate::b::B; fn a() {}", b, true);
        check("use super::b::B; fn a() {}", b, true);
        check("use crate::B; fn a() {}", b, true);
        check("use crate::b; fn a() { b::b() }", b, true);
        check("pub fn a() { vec![crate::b::B] }", b, true);
        check("#[serde(with = x)] #[derive(crate::b::B)] struct A; fn a() {}", b, true);
        check("pub use crate::b::B; fn a() -> B { }", b, true);
    }

    #[test]
    fn other_paths_close_no_circle() {
        let b = "pub struct B; pub fn b() { crate::a::a() }";
        check("fn a() {} // crate::b::B", b, false);
        check("/// [`crate::b::B`]\nfn a() {}", b, false);
        check("fn a() {} #[cfg(test)] mod tests { use crate::b::B; }", b, false);
        check("#[cfg(test)] use crate::b::B; fn a() {}", b, false);
        check("fn a() { \"crate::b::B\" }", b, false);
        check("pub use crate::b::B; fn a() {}", b, false);
        check("use crate::b; fn a() {}", b, false);
        check("struct B; fn a() { B::b() }", b, false);
    }

    #[test]
    fn a_parent_and_its_child_can_be_a_circle() {
        let files =
            |a| [("lib.rs", "mod a;"), ("a.rs", a), ("a/c.rs", "use super::A; pub fn c() {}")];
        assert_eq!(messages(&files("mod c; struct A;"), &[]), [""; 0]);
        assert_eq!(messages(&files("mod c; pub use self::c::c; struct A;"), &[]), [""; 0]);
        assert_eq!(messages(&files("mod c; struct A; fn a() { c::c() }"), &[]).len(), 1);
    }

    #[test]
    fn circles_are_reported_with_their_files() {
        assert_eq!(
            messages(&TWO, &[]),
            [
                "crates/oa-a/src/a.rs: imports itself by way of b.rs: move what they share into a file of its own, or \
              hand it in (`cargo xtask circles oa-a` shows each import)"
            ]
        );
    }

    #[test]
    fn documented_circles_are_allowed() {
        let entry = |files| Allowed { krate: "oa-a", files, reason: "they are one" };
        let map = |text| [("ARCHITECTURE.md", text), TWO[0], TWO[1], TWO[2]];
        let ok = entry(&["a.rs", "b.rs"]);
        assert_eq!(messages(&map("`a.rs` and `b.rs`"), &[ok]), [""; 0]);
        let ok = entry(&["a.rs", "b.rs"]);
        assert_eq!(
            messages(&map("`a.rs`"), &[ok]),
            ["ARCHITECTURE.md: does not name b.rs of oa-a, in a circle because they are one"]
        );
        let other = entry(&["a.rs", "c.rs"]);
        assert_eq!(messages(&TWO, &[other]).len(), 2);
        let long = entry(&["a.rs", "b.rs", "c.rs", "d.rs"]);
        assert_eq!(messages(&TWO, &[long]).len(), 3);
    }
}
