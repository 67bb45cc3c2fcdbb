use std::time::Duration;

use oa_contain::Panic;
use oa_tools::{ArgumentError, ErrorBody};
use oa_types::{ImageBlock, Outcome};
use serde_json::Value;

/// The result of a call, before truncation. The tool's name in an error body is filled in later.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// The result, or an error body in its place.
    pub(crate) result: Result<Value, ErrorBody>,
    /// The images of a successful result.
    pub(crate) images: Vec<ImageBlock>,
    pub(crate) attempts: u32,
    pub(crate) duration: Duration,
    pub(crate) cached: bool,
}

impl Ended {
    pub(crate) fn cached((result, images): (Value, Vec<ImageBlock>)) -> Box<Self> {
        let ended = Self::without_attempt(Outcome::Ok, Ok(result));
        Box::new(Self { cached: true, images, ..ended })
    }

    /// Returns the result of a call that was canceled in or after this number of attempts.
    pub(crate) fn cancelled(attempts: u32) -> Self {
        let error = match attempts {
            0 => "cancelled before it ran",
            _ => "cancelled while it ran; it may have taken effect",
        };
        let ended = Self::without_attempt(Outcome::Cancelled, Err(ErrorBody::new("", error)));
        Self { attempts, ..ended }
    }

    pub(crate) fn invalid_input(error: &ArgumentError) -> Box<Self> {
        let body = ErrorBody::new("", "invalid arguments").with_reason(error.to_string());
        Box::new(Self::without_attempt(Outcome::InvalidInput, Err(body)))
    }

    pub(crate) fn not_run(reason: impl Into<String>) -> Box<Self> {
        let body = ErrorBody::new("", "not run").with_reason(reason);
        Box::new(Self::without_attempt(Outcome::NotRun, Err(body)))
    }

    pub(crate) fn panicked(panic: &Panic) -> Box<Self> {
        Box::new(Self::without_attempt(Outcome::Panicked, Err(panic_body(panic))))
    }

    pub(crate) fn unknown_tool<'a>(available: impl Iterator<Item = &'a str>) -> Box<Self> {
        let body = ErrorBody::new("", "there is no such tool").with_available(available);
        Box::new(Self::without_attempt(Outcome::UnknownTool, Err(body)))
    }

    fn without_attempt(outcome: Outcome, result: Result<Value, ErrorBody>) -> Self {
        let (images, duration) = (Vec::new(), Duration::ZERO);
        Self { outcome, result, images, attempts: 0, duration, cached: false }
    }
}

/// Returns the error body that the model reads after a panic.
pub(crate) fn panic_body(panic: &Panic) -> ErrorBody {
    let body = ErrorBody::new("", "the tool panicked");
    match panic.excerpt().filter(|reason| !reason.is_empty()) {
        Some(reason) => body.with_reason(reason),
        None => body,
    }
}
