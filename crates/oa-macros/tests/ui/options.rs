//! Options that cannot be.

#![allow(unused_variables)]

extern crate oa_tools as open_agent;

use oa_macros::tool;

/// Is unknown.
#[tool(nmae = "a")]
async fn unknown() {}

/// Is unknown, too, and so is the other.
#[tool(async, retries(3))]
async fn keyword() {}

/// Is what a function without `async` is anyway.
#[tool(blocking)]
fn blocking() {}

/// Is no option at all.
#[tool("a")]
async fn text() {}

/// Is there twice.
#[tool(exclusive, name = "a", exclusive)]
async fn duplicate() {}

/// Has no value.
#[tool(name, description, category, timeout, max_parallel, crate, output_schema)]
async fn valueless() {}

/// Has a value.
#[tool(exclusive = true, cacheable = false)]
async fn valued() {}

/// Is known too late.
#[tool(name = NAME)]
async fn late() {}

/// Is no name that servers accept.
#[tool(name = "get weather")]
async fn name() {}

/// Is none.
#[tool(name = "")]
async fn no_name() {}

/// Never runs.
#[tool(max_parallel = 0)]
async fn never() {}

/// Is no path.
#[tool(crate = "my crate")]
async fn path() {}

fn main() {}
