//! Classifies an error: how it counts against its server, and whether another server is tried.

use std::time::Duration;

use oa_chat::{Error, ErrorKind, TimeoutKind};

/// The result of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// A complete answer.
    Answered,
    /// The server failed, and would fail other requests too.
    Failed { retry_after: Option<Duration> },
    /// The request was dropped before its end.
    GivenUp,
    /// The server cannot answer this request, but may answer others.
    Unfit,
    /// The server rejected the request for what is in it.
    Refused,
    /// The request failed for a reason of its own, which says nothing about the server.
    Unrelated,
}

/// Classifies a failure.
///
/// | outcome | errors | another server |
/// | --- | --- | --- |
/// | `Failed` | no connection; a broken connection; silence; a success without an answer; 401, 402, 408, 409, 425, 429, 5xx; any other error that may pass; an error without a status, reported in a stream | is tried |
/// | `Unfit` | 403, 404, redirects, a 500 about a template, a 400 or 422 about what the model lacks: this server cannot answer this request | is tried |
/// | `Refused` | other 4xx, context overflow, limits | is not tried: it would fail too |
/// | `Unrelated` | options, `total_timeout` | is not tried: it would fail too, or answer too late |
pub(crate) fn classify(error: &Error) -> Outcome {
    let failed = Outcome::Failed { retry_after: error.retry_after() };
    match error.kind() {
        ErrorKind::Timeout if error.timeout() == Some(TimeoutKind::Total) => Outcome::Unrelated,
        ErrorKind::Connect | ErrorKind::Stream | ErrorKind::Timeout => failed,
        // An error of a nested router.
        ErrorKind::Unavailable => failed,
        ErrorKind::Api => match error.reported_status() {
            // A 500 that cannot be retried is caused by the request (QUIRKS row 103).
            Some(500) if error.status().is_some() && !error.is_retryable() => Outcome::Unfit,
            // Some gateways report their own failures as a 400 or 403 (QUIRKS row 145).
            _ if error.is_retryable() => failed,
            // A rejected key is a failure of this server: another has a key of its own.
            None | Some(401 | 402 | 408 | 409 | 425 | 429 | 500..) => failed,
            Some(403 | 404 | 300..=399) => Outcome::Unfit,
            Some(400 | 422) if says_unfit(error) => Outcome::Unfit,
            Some(_) => Outcome::Refused,
        },
        ErrorKind::ContextOverflow | ErrorKind::Limit => Outcome::Refused,
        // The request was never sent, or a layer in front of the server failed.
        _ => Outcome::Unrelated,
    }
}

/// Returns true if a server that rejects a request says that it has no such model, or that the model, or the server as
/// configured, is not capable of tools, images or audio. Most servers say so with 404 or 500, these with 400.
fn says_unfit(error: &Error) -> bool {
    if error.says_no_tools() || error.api_code().is_some_and(|code| CODES.contains(&code)) {
        return true;
    }
    let message = error.to_string().to_ascii_lowercase();
    let denies = |what: &&str| {
        DENIALS.iter().any(|denial| {
            message.match_indices(denial).any(|(at, _)| {
                // "does not support image input", "doesn't support vision".
                message[at + denial.len()..].trim_start().starts_with(what)
            })
        })
    };
    SENTENCES.iter().any(|sentence| message.contains(sentence)) || SENSES.iter().any(denies)
}

/// The codes of servers for a missing model.
const CODES: [&str; 3] = ["model_not_available", "model_not_found", "model_not_supported"];

const DENIALS: [&str; 3] = ["does not support", "doesn't support", "do not support"];

const SENSES: [&str; 5] = ["audio", "image", "multimodal", "multi-modal", "vision"];

const SENTENCES: [&str; 6] = [
    // LiteLLM (BerriAI/litellm #9663).
    "invalid model name passed in",
    // OpenRouter (NousResearch/hermes-agent #40087).
    "is not a valid model id",
    // vLLM (vllm-project/vllm #23402).
    "is not a multimodal model",
    // LM Studio, without a loaded model.
    "no models loaded",
    // llama.cpp, also of audio (ggml-org/llama.cpp #15377).
    "image input is not supported",
    "audio input is not supported",
];

/// Returns true if another server may be tried.
pub(crate) fn may_fail_over(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Failed { .. } | Outcome::Unfit)
}
