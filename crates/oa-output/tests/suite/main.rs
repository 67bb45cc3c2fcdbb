//! Structured output, as callers see it.

#![cfg(feature = "schemars")]

mod answers;
mod reader;
mod requests;
mod response_format;
mod validator;
