//! Values of the wrong type are shown as such, not as part of an expansion.
#![allow(unused_variables)]

extern crate oa_tools as open_agent;

use oa_macros::tool;

/// Has a default of another type.
#[tool]
async fn default(#[default(true)] a: u8) {}

fn main() {}
