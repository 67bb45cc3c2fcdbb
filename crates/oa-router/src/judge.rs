//! What an error says of the server that made it, and whether another may do better.

use oa_chat::{Error, ErrorKind, TimeoutKind};

use crate::seat::Verdict;

/// Judges a failure.
///
/// | verdict | errors | the next server |
/// | --- | --- | --- |
/// | `Failed` | no connection; a connection that breaks; silence; 401, 402, 408, 409, 425, 429, 5xx; an error reported in a stream | is asked |
/// | `Unfit` | 403, 404, redirects, a 500 about a template: this server, with this request | is asked |
/// | `Refused` | other 4xx, context overflow, options, limits, `total_timeout` | is not: it would say the same, or nobody waits |
pub(crate) fn judge(error: &Error) -> Verdict {
    let failed = Verdict::Failed { retry_after: error.retry_after() };
    match error.kind() {
        ErrorKind::Timeout if error.timeout() == Some(TimeoutKind::Total) => Verdict::Refused,
        ErrorKind::Connect | ErrorKind::Stream | ErrorKind::Timeout => failed,
        // A router inside this one.
        ErrorKind::Unavailable => failed,
        ErrorKind::Api => match status(error) {
            // A 500 that will be one next time is about the request (QUIRKS row 103).
            Some(500) if error.status().is_some() && !error.is_retryable() => Verdict::Unfit,
            None | Some(401 | 402 | 408 | 409 | 425 | 429 | 500..) => failed,
            Some(403 | 404 | 300..=399) => Verdict::Unfit,
            Some(_) => Verdict::Refused,
        },
        _ => Verdict::Refused,
    }
}

/// The HTTP status, or the one that stands in an error inside a stream.
fn status(error: &Error) -> Option<u16> {
    let code = || error.api_code()?.parse().ok().filter(|code| (300..600).contains(code));
    error.status().or_else(code)
}

/// Whether another server may answer what this one did not.
pub(crate) fn may_go_on(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Failed { .. } | Verdict::Unfit)
}
