//! Contexts and state.

#![allow(unused_variables)]

extern crate oa_tools as open_agent;

use std::sync::Arc;

use oa_macros::tool;
use open_agent::ToolContext;

/// Takes two.
#[tool]
async fn two(a: &ToolContext, b: &open_agent::ToolContext) {}

/// Takes it away.
#[tool]
async fn owned(a: ToolContext) {}

/// Changes it.
#[tool]
async fn mutable(a: &mut ToolContext) {}

/// Takes state away.
#[tool]
async fn owned_state(#[state] a: Arc<u8>) {}

/// Changes state.
#[tool]
async fn mutable_state(#[state] a: &mut u8) {}

/// Takes state away, perhaps.
#[tool]
async fn optional_state(#[state] a: Option<u8>) {}

/// Says more than there is to say.
#[tool]
async fn arguments(#[state(u8)] a: &u8, #[state] #[state] b: &u8) {}

fn main() {}
