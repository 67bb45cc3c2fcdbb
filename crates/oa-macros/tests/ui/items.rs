//! `#[tool]` on what is no free function.

#![allow(unused_variables)]

extern crate oa_tools as open_agent;

use oa_macros::tool;

#[tool]
struct Weather;

#[tool]
impl Weather {}

/// A constant.
#[tool]
const TEN: u8 = 10;

#[tool]
mod tools {}

fn main() {}
