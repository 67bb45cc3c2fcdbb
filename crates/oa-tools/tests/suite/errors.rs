//! Errors of handlers.

use std::error::Error as StdError;
use std::{fmt, io};

use oa_tools::{ErrorBody, ErrorKind, ToolError, tool};
use serde_json::json;

use crate::wait;

#[derive(Debug)]
struct Layered(&'static str, Option<Box<dyn StdError + Send + Sync>>);

impl fmt::Display for Layered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl StdError for Layered {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.1.as_deref().map(|source| source as _)
    }
}

fn layered() -> Layered {
    let inner = Layered("connection refused", Some(Box::new(io::Error::other("os error 111"))));
    Layered("cannot reach the database", Some(Box::new(inner)))
}

#[test]
fn errors_and_strings_become_tool_errors() {
    fn of(cause: u8) -> Result<(), ToolError> {
        match cause {
            0 => Err("text")?,
            1 => Err(String::from("string"))?,
            2 => Err(io::Error::other("io"))?,
            3 => Err(Box::<dyn StdError + Send + Sync>::from("boxed"))?,
            4 => Err(ToolError::new("own"))?,
            _ => Err(layered())?,
        }
        Ok(())
    }
    let shown = [0, 1, 2, 3, 4, 5].map(|cause| of(cause).unwrap_err().to_string());
    assert_eq!(
        shown,
        [
            "text",
            "string",
            "io",
            "boxed",
            "own",
            "cannot reach the database: connection refused: os error 111"
        ]
    );
}

#[test]
fn message_and_causes_are_kept_apart() {
    let error = ToolError::from(layered()).context("search failed");
    assert_eq!(error.message(), "search failed");
    assert_eq!(error.causes(), ["cannot reach the database", "connection refused", "os error 111"]);
    // A cause already contained in its parent's message is not repeated.
    let twice = Layered("failed: refused", Some("refused".into()));
    assert_eq!(ToolError::from(twice).to_string(), "failed: refused");
}

#[test]
fn endless_source_chains_are_cut() {
    #[derive(Debug)]
    struct Circle;
    impl fmt::Display for Circle {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("again")
        }
    }
    impl StdError for Circle {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(self)
        }
    }
    assert_eq!(ToolError::from(Circle).causes().len(), 16);
}

#[test]
fn handlers_may_set_a_retry_hint() {
    assert_eq!(ToolError::new("x").retry_hint(), None);
    assert_eq!(ToolError::new("x").retryable(true).retry_hint(), Some(true));
    assert_eq!(ToolError::from("x").retryable(false).retry_hint(), Some(false));
}

#[test]
fn execute_returns_a_std_error() {
    let fails = tool("f", "").build(|_| async {
        let _: u16 = "x".parse()?;
        Ok(json!(null))
    });
    let error: Box<dyn StdError + Send + Sync> =
        Box::new(wait(fails.execute(json!({}))).unwrap_err());
    assert_eq!(error.to_string(), "invalid digit found in string");
    let error = wait(fails.execute(json!([]))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn error_bodies_hold_known_fields() {
    let body = ErrorBody::new("add", "invalid arguments").with_reason("`a`: required, but missing");
    assert_eq!(
        body.to_value(),
        json!({ "error": "invalid arguments", "tool": "add", "reason": "`a`: required, but missing" })
    );
    let none: [&str; 0] = [];
    assert_eq!(ErrorBody::new("x", "e").with_available(none).to_value()["available"], json!([]));
}
