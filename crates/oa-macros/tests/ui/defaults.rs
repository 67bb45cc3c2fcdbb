//! Defaults that are none.

#![allow(unused_variables)]

extern crate oa_tools as open_agent;

use oa_macros::tool;
use open_agent::ToolContext;

/// Has an equals sign.
#[tool]
async fn equals(#[default = 3] a: u8) {}

/// Has nothing.
#[tool]
async fn nothing(#[default()] a: u8) {}

/// Has two.
#[tool]
async fn two(#[default(1, 2)] a: u8) {}

/// Has one twice.
#[tool]
async fn twice(#[default] #[default(3)] a: u8) {}

/// Has one for what the model does not see.
#[tool]
async fn for_state(#[default] #[state] a: &u8) {}

/// The same.
#[tool]
async fn for_context(#[default(3)] a: &ToolContext, #[serde(rename = "b")] #[state] c: &u8) {}

fn main() {}
