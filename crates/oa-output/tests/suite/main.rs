//! Structured output, as callers see it.

#![cfg(feature = "schemars")]

mod reader;
mod response_format;
mod validator;
