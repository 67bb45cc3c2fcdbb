//! Functions that a model cannot call.

#![allow(unused_variables)]

extern crate oa_tools as open_agent;

use oa_macros::tool;

/// Takes any type.
#[tool]
async fn generic<T>(a: T) {}

/// Takes any length.
#[tool]
async fn lengths<const N: usize>(a: [u8; N]) {}

/// Has a lifetime.
#[tool]
async fn lifetime<'a>(a: u8) {}

/// Runs at compile time.
#[tool]
const fn constant() {}

/// Does as it likes.
#[tool]
unsafe fn dangerous() {}

/// Is called from elsewhere.
#[tool]
extern "C" fn foreign() {}

#[tool]
async fn undocumented(a: u8) {}

///
#[tool]
async fn empty_docs() {}

/// Is not ASCII.
#[tool]
async fn größe() {}

/// Has a name of more than 64 characters.
#[tool]
async fn a_name_that_is_longer_than_any_server_accepts_is_refused_before_it_runs() {}

fn main() {
    // The names of refused tools are there, so that these are no errors of their own.
    let _ = [generic::tool(), undocumented::tool(), größe::tool()];
    let _ = undocumented(1);
}
