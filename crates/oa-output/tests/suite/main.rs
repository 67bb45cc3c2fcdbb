//! Structured output, as callers see it.

#![cfg(feature = "schemars")]

mod response_format;
