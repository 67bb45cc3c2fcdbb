//! Judges what an error means for the server that caused it, and whether another server may do better.

use oa_chat::{Error, ErrorKind, TimeoutKind};

use crate::seat::Verdict;

/// Judges a failure.
///
/// | verdict | errors | another server |
/// | --- | --- | --- |
/// | `Failed` | no connection; a broken connection; silence; 401, 402, 408, 409, 425, 429, 5xx; an error reported in a stream | is tried |
/// | `Unfit` | 403, 404, redirects, a 500 about a template: this server cannot answer this request | is tried |
/// | `Refused` | other 4xx, context overflow, options, limits, `total_timeout` | is not tried: it would answer the same, or too late |
pub(crate) fn judge(error: &Error) -> Verdict {
    let failed = Verdict::Failed { retry_after: error.retry_after() };
    match error.kind() {
        ErrorKind::Timeout if error.timeout() == Some(TimeoutKind::Total) => Verdict::Refused,
        ErrorKind::Connect | ErrorKind::Stream | ErrorKind::Timeout => failed,
        // An error of a nested router.
        ErrorKind::Unavailable => failed,
        ErrorKind::Api => match status(error) {
            // A 500 that cannot be retried is caused by the request (QUIRKS row 103).
            Some(500) if error.status().is_some() && !error.is_retryable() => Verdict::Unfit,
            None | Some(401 | 402 | 408 | 409 | 425 | 429 | 500..) => failed,
            Some(403 | 404 | 300..=399) => Verdict::Unfit,
            Some(_) => Verdict::Refused,
        },
        _ => Verdict::Refused,
    }
}

/// Returns the HTTP status, or the one in an error reported in a stream.
fn status(error: &Error) -> Option<u16> {
    let code = || error.api_code()?.parse().ok().filter(|code| (300..600).contains(code));
    error.status().or_else(code)
}

/// Returns true if another server may be tried.
pub(crate) fn may_go_on(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Failed { .. } | Verdict::Unfit)
}
