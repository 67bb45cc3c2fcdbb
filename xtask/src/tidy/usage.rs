//! Dependencies that a manifest names and no source uses.

use super::Finding;
use super::tree::{File, Tree, serves_tests};
use crate::Result;
use crate::workspace::{Dependency, Kind, Package};

/// Dependencies that no source of their package names, and why they are there.
const UNNAMED: &[(&str, &str, &str)] = &[
    (
        "examples",
        "opentelemetry",
        "one example needs it, and what examples alone need cannot be optional",
    ),
    (
        "examples",
        "opentelemetry_sdk",
        "one example needs it, and what examples alone need cannot be optional",
    ),
    (
        "examples",
        "schemars",
        "one example needs it, and what examples alone need cannot be optional",
    ),
    ("examples", "serde", "one example needs it, and what examples alone need cannot be optional"),
    ("migrating", "open-agent", "programs use it that the build script puts together"),
    ("migrating", "regex", "programs use it that the build script puts together"),
    ("migrating", "serde", "programs use it that the build script puts together"),
    ("migrating", "serde_json", "programs use it that the build script puts together"),
    ("migrating", "tokio", "programs use it that the build script puts together"),
    ("pages", "tokio", "programs use it that the build script puts together"),
];

pub(super) fn used(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in &tree.workspace.packages {
        let path = tree.workspace.relative(&package.dir.join("Cargo.toml"));
        for dependency in &package.dependencies {
            let is = |(of, name, _): &&(&str, &str, &str)| {
                *of == package.name && *name == dependency.name
            };
            let excused = UNNAMED.iter().find(is);
            match (complaint(tree, package, dependency), excused) {
                (Some(message), None) => findings.push(Finding::file(&path, message)),
                (None, Some((.., reason))) => {
                    let message = format!("`{}` is used, though {reason}", dependency.name);
                    findings.push(Finding::file(&path, message));
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
    }
    Ok(findings)
}

fn complaint(tree: &Tree<'_>, package: &Package, dependency: &Dependency) -> Option<String> {
    let name = &dependency.name;
    let used = |is_read: fn(&Place<'_>) -> bool, text: fn(&File) -> &str| {
        let places = tree.files.iter().filter_map(|file| Place::of(file, package, tree));
        places.filter(is_read).any(|place| names(text(place.file), name))
    };
    match dependency.kind {
        Kind::Build => {
            let used = used(|place| place.path == "build.rs", code);
            (!used).then(|| format!("build-dependency `{name}` is not used in build.rs"))
        }
        Kind::Normal => {
            let used = used(|place| place.is_library(), code_of_library);
            (!used).then(|| format!("dependency `{name}` is not used in src, outside of tests"))
        }
        // The package itself, with features that its tests need.
        Kind::Dev if *name == package.name => None,
        Kind::Dev if package.dependencies.iter().any(|other| is_always(other, name)) => {
            let same = dependency.features.is_empty();
            same.then(|| format!("dev-dependency `{name}` adds nothing to the dependency"))
        }
        Kind::Dev => {
            // Sources as they are: their docs are tests, too.
            let used = used(|place| place.path != "build.rs", |file| &file.text)
                || (shows_front_page(tree, package) && front_page_names(tree, name));
            let message = "is used in no test, bench, example or doc";
            (!used).then(|| format!("dev-dependency `{name}` {message}"))
        }
    }
}

/// Returns whether the examples of the workspace's README are tests of this package.
fn shows_front_page(tree: &Tree<'_>, package: &Package) -> bool {
    let places = tree.files.iter().filter_map(|file| Place::of(file, package, tree));
    places.into_iter().any(|place| place.file.text.contains("(\"../../../README.md\")"))
}

fn front_page_names(tree: &Tree<'_>, name: &str) -> bool {
    tree.file("README.md").is_some_and(|file| names(&file.text, name))
}

/// Returns whether this is the ordinary dependency of that name, under any features.
fn is_always(dependency: &Dependency, name: &str) -> bool {
    dependency.kind == Kind::Normal && dependency.name == name && !dependency.optional
}

/// A file of a package.
struct Place<'a> {
    file: &'a File,
    /// From the folder of the package.
    path: &'a str,
}

impl<'a> Place<'a> {
    /// Rust and pages; fuzz targets are packages of their own.
    fn of(file: &'a File, package: &Package, tree: &Tree<'_>) -> Option<Self> {
        let root = tree.workspace.relative(&package.dir);
        let path = file.path.strip_prefix(&root)?.strip_prefix('/')?;
        let is_read = path.ends_with(".rs") || path.ends_with(".md");
        (is_read && !path.starts_with("fuzz/")).then_some(Self { file, path })
    }

    fn is_library(&self) -> bool {
        self.path.starts_with("src/") && !serves_tests(self.path)
    }
}

fn code(file: &File) -> &str {
    file.source.as_ref().map_or("", |source| source.bare.as_str())
}

fn code_of_library(file: &File) -> &str {
    file.source.as_ref().map_or("", |source| source.code_before_tests())
}

/// Returns whether a path in the text begins with the crate: `name::a`, `use name;`, `use name as b`.
fn names(text: &str, name: &str) -> bool {
    let name = name.replace('-', "_");
    text.match_indices(&name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        // The end of a longer word, a field, or a path that began elsewhere.
        let goes_on = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let outside = before.strip_suffix("::").unwrap_or(before);
        if outside.ends_with(goes_on) || (outside.len() < before.len() && outside.ends_with('>')) {
            return false;
        }
        let imported = before.ends_with("use ") || before.ends_with("extern crate ");
        after.starts_with("::") || (imported && after.starts_with([';', ' ']))
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::workspace::Workspace;

    #[track_caller]
    fn check(dependencies: Vec<Dependency>, path: &str, text: &str, expect: &[&str]) {
        check_files(dependencies, &[(path, text)], expect);
    }

    #[track_caller]
    fn check_files(dependencies: Vec<Dependency>, files: &[(&str, &str)], expect: &[&str]) {
        let package = Package {
            name: "oa-a".to_owned(),
            dir: "crates/oa-a".into(),
            dependencies,
            ..Package::default()
        };
        let workspace =
            Workspace { root: PathBuf::new(), target: PathBuf::new(), packages: vec![package] };
        let files = files.iter().map(|(path, text)| File::new(*path, *text));
        let tree = Tree { workspace: &workspace, files: files.collect() };
        let found: Vec<_> = used(&tree).unwrap().into_iter().map(|found| found.message).collect();
        assert_eq!(found, expect);
    }

    fn needs(name: &str, kind: Kind) -> Dependency {
        Dependency { name: name.to_owned(), kind, ..Dependency::default() }
    }

    #[test]
    fn paths_that_begin_with_a_crate_name_it() {
        for text in [
            "use http_body::Body;",
            "pub use http_body as body;",
            "use http_body;",
            "#[http_body::main]",
            "Vec<::http_body::Frame>",
            "impl http_body::Body for A {}",
        ] {
            assert!(names(text, "http-body"), "{text}");
        }
        for text in [
            "use http_body_util::Full;",
            "let http_body = 1;",
            "crate::http_body::Body",
            "my_http_body::Body",
            "a.http_body::<u8>()",
            "mod http_body;",
        ] {
            assert!(!names(text, "http-body"), "{text}");
        }
    }

    #[test]
    fn unused_dependencies_are_found() {
        let src = "crates/oa-a/src/lib.rs";
        let unused = "dependency `b-c` is not used in src, outside of tests";
        let b = || vec![needs("b-c", Kind::Normal)];
        check(b(), src, "use b_c::D;", &[]);
        check(b(), src, "// b_c::D\n", &[unused]);
        check(b(), src, "#[cfg(test)]\nmod tests { use b_c::D; }\n", &[unused]);
        check(b(), "crates/oa-a/tests/suite/main.rs", "use b_c::D;", &[unused]);
        check(b(), "crates/oa-a2/src/lib.rs", "use b_c::D;", &[unused]);
        check(b(), "crates/oa-a/fuzz/src/lib.rs", "use b_c::D;", &[unused]);
    }

    #[test]
    fn unused_dev_dependencies_are_found() {
        let unused = "dev-dependency `b` is used in no test, bench, example or doc";
        let b = || vec![needs("b", Kind::Dev)];
        check(b(), "crates/oa-a/tests/suite/main.rs", "use b::C;", &[]);
        check(b(), "crates/oa-a/benches/speed.rs", "b::c();", &[]);
        check(b(), "crates/oa-a/src/lib.rs", "/// use b::C;\n", &[]);
        check(b(), "crates/oa-a/README.md", "use b::C;\n", &[]);
        check(b(), "crates/oa-a/tests/suite/main.rs", "let b = 1;", &[unused]);
    }

    #[test]
    fn readme_counts_for_crates_that_test_it() {
        let page = ("README.md", "use b::C;");
        let shown = ("crates/oa-a/src/lib.rs", "include_str!(\"../../../README.md\")");
        let b = || vec![needs("b", Kind::Dev)];
        check_files(b(), &[page, shown], &[]);
        let unused = "dev-dependency `b` is used in no test, bench, example or doc";
        check_files(b(), &[page, ("crates/oa-a/src/lib.rs", "")], &[unused]);
    }

    #[test]
    fn repeated_dependencies_add_features() {
        let lib = ("crates/oa-a/src/lib.rs", "use b::C;");
        let normal = || needs("b", Kind::Normal);
        let dev = || needs("b", Kind::Dev);
        let with = Dependency { features: vec!["derive".to_owned()], ..dev() };
        check(vec![normal(), with], lib.0, lib.1, &[]);
        let message = "dev-dependency `b` adds nothing to the dependency";
        check(vec![normal(), dev()], lib.0, lib.1, &[message]);
        let optional = Dependency { optional: true, ..normal() };
        check(vec![optional, dev()], lib.0, lib.1, &[]);
        check(vec![needs("oa-a", Kind::Dev)], lib.0, lib.1, &[]);
    }
}
