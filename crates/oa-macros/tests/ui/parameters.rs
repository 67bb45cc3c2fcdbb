//! Parameters that a model cannot fill in.

#![allow(unused_variables)]

extern crate oa_tools as open_agent;

use oa_macros::tool;

struct State<T>(T);
struct Point(u8, u8);

/// Borrows text.
#[tool]
async fn text(a: &str) {}

/// Borrows a list.
#[tool]
async fn list(a: &[u8]) {}

/// Borrows something.
#[tool]
async fn reference(a: u8, b: &'static Point) {}

/// Borrows deep inside.
#[tool]
async fn inside(a: Option<Vec<&'static str>>) {}

/// Changes what it is given.
#[tool]
async fn mutable(a: &mut u8) {}

/// Takes a pattern.
#[tool]
async fn pattern(Point(a, b): Point) {}

/// Takes nothing by name.
#[tool]
async fn wildcard(_: u8) {}

/// Takes state as other libraries do.
#[tool]
async fn extractor(State(a): State<u8>) {}

/// Takes any iterator.
#[tool]
async fn anonymous(a: impl Iterator<Item = u8>) {}

/// Takes any of many.
#[tool]
async fn anonymous_inside(a: Vec<impl Copy>) {}

/// Has an attribute that nobody knows.
#[tool]
async fn unknown(#[defualt(3)] a: u8, #[my::own] b: u8) {}

/// Depends on the system.
#[tool]
async fn conditional(#[cfg(unix)] a: u8) {}

/// Makes two mistakes.
#[tool]
async fn twice(a: &str, _: u8) {}

fn main() {
    let _ = [text::tool(), pattern::tool(), unknown::tool(), twice::tool()];
    let _ = unknown(1, 2);
}
