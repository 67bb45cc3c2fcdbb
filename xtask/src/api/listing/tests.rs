use std::path::PathBuf;

use super::super::surface::{Sources, Surface};
use super::{Names, list};
use crate::workspace::{Package, Workspace};

/// Lists `oa-a` with these sources; `oa-b` is a crate below it.
fn listed(lib: &str, other: &str) -> (String, Names) {
    let package = |name: &str| Package {
        name: name.to_owned(),
        dir: format!("crates/{name}").into(),
        ..Package::default()
    };
    let packages = ["oa-a", "oa-b"].map(package).into();
    let workspace = Workspace { root: PathBuf::new(), target: PathBuf::new(), packages };
    let files = [
        ("crates/oa-a/src/lib.rs", lib),
        ("crates/oa-a/src/other.rs", other),
        ("crates/oa-b/src/lib.rs", "mod deep; pub mod words { pub use crate::deep::B; }"),
        ("crates/oa-b/src/deep.rs", "pub struct B;"),
    ];
    let sources = Sources::read(files.into_iter());
    let surface = Surface::of(&workspace, &sources).unwrap();
    list(&surface, "oa_a")
}

#[track_caller]
fn check(lib: &str, expect: &[&str]) {
    let (list, names) = listed(lib, "");
    let lines: Vec<&str> = list.lines().filter(|line| !line.is_empty()).skip(1).collect();
    assert_eq!(lines, expect);
    assert!(names.unknown.is_empty(), "{:?}", names.unknown);
}

#[test]
fn types_show_what_others_can_name() {
    check(
        "/// Docs.\n#[non_exhaustive]\n#[derive(Clone, Debug)]\npub struct A<T: Send = u8> {\n    /// Docs.\n\
         pub a: Vec<T>,\n    b: u8,\n    #[doc(hidden)]\n    pub c: u8,\n}",
        &[
            "#[non_exhaustive] struct A<T: Send = u8> { .. }",
            "    a: Vec<T>",
            "    impl Clone + std::fmt::Debug",
        ],
    );
    check("pub struct A(pub u8, pub(crate) u8, u8);", &["struct A(u8, _, _)"]);
    check(
        "pub enum A { B, C(u8, (u16,)), D { #[serde(default)] e: u8 }, #[doc(hidden)] F }",
        &["enum A", "    B", "    C(u8, (u16,))", "    D { e: u8 }"],
    );
    check(
        "struct A; pub(crate) struct B; #[doc(hidden)] pub struct C; #[cfg(test)] pub struct D;",
        &[],
    );
}

#[test]
fn attribute_macros_have_no_signature() {
    check(
        "#[proc_macro_attribute] pub fn a(b: proc_macro::TokenStream, c: d::E) -> d::E { c }",
        &["macro #[a]"],
    );
}

#[test]
fn methods_are_sorted_and_normalized() {
    check(
        "pub struct A;\nimpl A {\n    pub fn b(mut self, c: &mut u8,\n        d: impl Fn(u8) -> u8,\n    ) -> Self where\n\
         u8: Send,\n    { e }\n    pub const fn a() {}\n    fn f() {}\n    pub const G: u8 = 1;\n}",
        &[
            "struct A",
            "    const G: u8",
            "    const fn a()",
            "    fn b(self, c: &mut u8, d: impl Fn(u8) -> u8) -> Self where u8: Send",
        ],
    );
    check(
        "pub struct A<T>(T); impl<T: Copy> A<T> { pub async fn b(&self) -> Option<T> {} }",
        &["struct A<T>(_)", "    impl<T: Copy> A<T>", "        async fn b(&self) -> Option<T>"],
    );
}

#[test]
fn traits_and_implementations_are_listed() {
    check(
        "pub trait A: Send { const B: u8; type C; fn d(&self); fn e(&self) {} }\n\
         impl<T: A + ?Sized> A for Box<T> { const B: u8 = 1; type C = (); fn d(&self) {} }\n\
         pub struct X; impl A for X { const B: u8 = 2; type C = X; fn d(&self) {} }\n\
         impl From<X> for String {} impl Drop for X { fn drop(&mut self) {} }\n\
         trait Private {} impl Private for X {} struct Hidden; impl A for Hidden {}",
        &[
            "trait A: Send",
            "    const B: u8",
            "    type C",
            "    fn d(&self)",
            "    fn e(&self) { .. }",
            "    impl<T: A + ?Sized> A for Box<T> { const B: u8; type C = () }",
            "struct X",
            "    impl Drop",
            "    impl A { const B: u8; type C = X }",
            "    impl From<X> for String",
        ],
    );
}

#[test]
fn what_macros_of_the_file_make_is_listed() {
    check(
        "pub struct A; macro_rules! from { ($($t:ty),*) => {$(impl From<$t> for A { })*}; } from!(u8, u16);\n\
         pin_project_lite::pin_project! { pub struct P { #[pin] pub a: u8, b: u8 } }",
        &["struct A", "    impl From<u16> + From<u8>", "struct P { .. }", "    a: u8"],
    );
}

#[test]
fn names_are_full_paths() {
    let (list, names) = listed(
        "mod other; use std::fmt; use bytes::Bytes as Raw; use oa_b::words::B; pub use other::O as Renamed;\n\
         pub fn a(b: B, c: Raw, d: http::Uri, e: fmt::Result, f: other::O, g: &str) {}",
        "pub struct O; impl std::fmt::Display for O {}",
    );
    let lines: Vec<&str> = list.lines().filter(|line| !line.is_empty()).skip(1).collect();
    assert_eq!(
        lines,
        [
            "struct Renamed",
            "    impl std::fmt::Display",
            "fn a(b: oa_b::words::B, c: bytes::Bytes, d: http::Uri, e: std::fmt::Result, f: Renamed, g: &str)",
        ]
    );
    assert_eq!(
        names.foreign.keys().collect::<Vec<_>>(),
        ["bytes::Bytes", "http::Uri", "oa_b::words::B"]
    );
    let bounds = "use http::Uri; pub fn a<T>(b: T) where Uri: From<T>, T: Iterator<Item: Send> {}";
    assert!(listed(bounds, "").0.contains("where http::Uri: From<T>, T: Iterator<Item: Send>"));
    assert!(listed("pub fn a(b: Absent) {}", "").1.unknown.contains_key("Absent"));
}

#[test]
fn conditions_are_told_wherever_they_stand() {
    let (list, _) = listed(
        "#[cfg(feature = \"x\")] mod other; #[cfg(feature = \"x\")] pub use other::O; pub struct A;\n\
         #[cfg(unix)] impl A { pub fn b() {} } impl A { #[cfg(windows)] pub fn c() {} }",
        "pub struct O; impl Drop for O {} impl super::A { pub fn d() {} }",
    );
    let lines: Vec<&str> = list.lines().filter(|line| !line.is_empty()).skip(1).collect();
    assert_eq!(
        lines,
        [
            "struct A",
            "    #[cfg(windows)] fn c()",
            "    #[cfg(feature = \"x\")] impl A",
            "        fn d()",
            "    #[cfg(unix)] impl A",
            "        fn b()",
            "#[cfg(feature = \"x\")] struct O",
            "    impl Drop",
        ]
    );
}

#[test]
fn reexported_crates_are_listed() {
    let (list, names) =
        listed("pub use oa_b as low; pub use oa_b::words::B; pub fn a(b: B) {}", "");
    assert_eq!(
        list,
        "\n# oa_a\n\nuse oa_b::words::B\nfn a(b: oa_b::words::B)\nuse oa_b as low\n\
         \n# oa_b\n\nmod words\nstruct words::B\n"
    );
    assert!(names.foreign.is_empty());
}
