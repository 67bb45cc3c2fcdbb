//! Quotations of a server that are safe to show.

use std::borrow::Cow;

use oa_aggregate::Problem;
use oa_redact::Secrets;
use oa_types::ContentBlock;
use oa_types::wire::ServerError;

use crate::error;

/// The part of a payload, a code or a type that is shown, in characters.
const SHOWN: usize = 200;

/// Masks and bounds the excerpts in a problem.
#[cold]
pub(crate) fn problem(problem: &Problem, secrets: &Secrets) -> Problem {
    match problem {
        Problem::Server(error) => Problem::Server(Box::new(server_error(error, secrets))),
        Problem::Unreadable(unreadable) => {
            let payload = secrets.excerpt(unreadable.payload(), SHOWN);
            Problem::Unreadable(unreadable.clone().with_payload(payload))
        }
        Problem::LateName { call, piece } => {
            Problem::LateName { call: *call, piece: secrets.excerpt(piece, SHOWN) }
        }
        // A problem that is not known here yet.
        other => other.clone(),
    }
}

/// Masks secrets in the quotations of broken calls: they may be a payload of the server rather than model output.
pub(crate) fn broken_calls(blocks: &mut [ContentBlock], secrets: &Secrets) {
    for block in blocks {
        if let ContentBlock::ToolUseError(error) = block
            && let Cow::Owned(masked) = secrets.mask(&error.raw_data)
        {
            error.raw_data = masked;
        }
    }
}

/// Describes a body that is not an answer: its type and [head](crate::Pipeline::head).
pub(crate) fn no_answer(
    content_type: Option<&str>,
    head: &[u8],
    received: u64,
    secrets: &Secrets,
) -> String {
    let head = error::server_error(head, secrets);
    let head = secrets.excerpt(&head.message, head.message_limit());
    let content_type = secrets.excerpt(content_type.unwrap_or("unknown type"), SHOWN);
    if head.is_empty() || content_type.starts_with("text/event-stream") {
        let colon = if head.is_empty() { "" } else { ": " };
        return format!("the stream ended without an answer after {received} bytes{colon}{head}");
    }
    format!("expected an event stream, got {received} bytes of {content_type}: {head}")
}

fn server_error(error: &ServerError, secrets: &Secrets) -> ServerError {
    let word = |word: &Option<String>| Some(secrets.excerpt(word.as_deref()?, SHOWN));
    let mut shown = error.clone();
    shown.message = secrets.excerpt(&error.message, error.message_limit());
    (shown.code, shown.kind) = (word(&error.code), word(&error.kind));
    secrets.clean_json(&mut shown.raw);
    shown
}
