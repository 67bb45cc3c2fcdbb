//! A reply prepared for one request: plain data that each server plays in its own way.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};
use oa_contain::contain;

use crate::chop::Cut;
use crate::reply::{Closing, Content, Ending, Framing, Reply};
use crate::requests::Request;
use crate::wire::Completion;

/// A server's action for one request.
#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) delay: Duration,
    pub(crate) opening: Opening,
}

#[derive(Debug)]
pub(crate) enum Opening {
    Response(PlannedResponse),
    HangUp,
    Raw(Bytes),
    Reset,
    Silence,
}

/// A response with a head.
#[derive(Debug)]
pub(crate) struct PlannedResponse {
    pub(crate) closing: Closing,
    pub(crate) ending: Ending,
    pub(crate) framing: Framing,
    /// The script's headers and the content type.
    pub(crate) headers: HeaderMap,
    /// The length of the complete body.
    pub(crate) length: usize,
    pub(crate) pieces: VecDeque<Piece>,
    pub(crate) status: StatusCode,
}

#[derive(Debug)]
pub(crate) struct Piece {
    /// The length of the piece if it were not cut short.
    pub(crate) announced: usize,
    pub(crate) bytes: Bytes,
    pub(crate) delay: Duration,
}

impl Act {
    /// Prepares a reply for the chat request with this number.
    ///
    /// Returns the problem if a rule panics, or if rules return rules endlessly.
    pub(crate) fn new(reply: &Reply, request: &Request, number: usize) -> Result<Self, String> {
        let mut made;
        let mut reply = reply;
        for _ in 0..MAX_RULES {
            let Content::Rule(rule) = &reply.content else {
                return Ok(Self::of(reply, request, number));
            };
            // A copy, because `reply` may be the reply that the last rule returned, which this round
            // replaces.
            let rule = rule.clone();
            made = caught(|| rule(request)).map_err(|message| format!("its rule: {message}"))?;
            reply = &made;
        }
        Err("its rules keep returning rules".to_owned())
    }

    fn of(reply: &Reply, request: &Request, number: usize) -> Self {
        let opening = match &reply.content {
            Content::Body(body) => {
                Opening::Response(PlannedResponse::new(reply, body.clone(), None))
            }
            Content::HangUp => Opening::HangUp,
            Content::Raw(bytes) => Opening::Raw(bytes.clone()),
            Content::Reset => Opening::Reset,
            Content::Rule(_) => unreachable!("a rule was asked for a reply before"),
            Content::Silence => Opening::Silence,
            Content::Speech(speech) => {
                let body = Completion::new(speech, request, number).body();
                let kind = if request.is_stream() { EVENT_STREAM } else { JSON };
                Opening::Response(PlannedResponse::new(reply, body, Some(kind)))
            }
        };
        Self { delay: reply.delay_head, opening }
    }
}

impl PlannedResponse {
    fn new(reply: &Reply, body: Bytes, kind: Option<HeaderValue>) -> Self {
        let mut headers = reply.headers.clone();
        let kind = kind.as_ref().or_else(|| headers.get(header::CONTENT_TYPE)).cloned();
        let streams =
            kind.as_ref().is_some_and(|kind| kind.as_bytes().starts_with(EVENT_STREAM.as_bytes()));
        if let Some(kind) = kind {
            headers.entry(header::CONTENT_TYPE).or_insert(kind);
        }
        let (usual_cut, usual_framing) =
            if streams { (Cut::Events, Framing::Chunked) } else { (Cut::Whole, Framing::Length) };

        let cut = reply.cut.as_ref().unwrap_or(&usual_cut);
        // `left` is the number of bytes before the break. The body is split first and then cut, so that a
        // break does not move the pieces before it.
        let (ending, mut left) = reply.ending.unwrap_or((Ending::Whole, usize::MAX));
        let mut pieces = VecDeque::new();
        for bytes in cut.pieces(&body) {
            if left == 0 {
                break;
            }
            let announced = bytes.len();
            let bytes = bytes.slice(..announced.min(left));
            left -= bytes.len();
            let delay = match reply.delay_first {
                Some(first) if pieces.is_empty() => first,
                _ => reply.delay,
            };
            pieces.push_back(Piece { announced, bytes, delay });
        }

        Self {
            closing: reply.closing,
            ending,
            framing: reply.framing.unwrap_or(usual_framing),
            headers,
            length: body.len(),
            pieces,
            status: reply.status,
        }
    }
}

/// Runs a user's closure, and returns the message if it panics.
pub(crate) fn caught<T>(closure: impl FnOnce() -> T) -> Result<T, String> {
    contain(closure).map_err(|panic| panic.message().unwrap_or("it panicked").to_owned())
}

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const MAX_RULES: usize = 8;

#[cfg(test)]
mod tests {
    use http::{Method, Uri};

    use crate::requests::RequestParts;

    use super::*;

    fn request() -> Request {
        let asked = RequestParts {
            body: Bytes::from_static(b"{}"),
            connection: None,
            headers: HeaderMap::new(),
            method: Method::POST,
            uri: Uri::from_static("/v1/chat/completions"),
        };
        Request::new(1, asked)
    }

    fn endless(_: &Request) -> Reply {
        Reply::by(endless)
    }

    #[test]
    fn nested_rules_are_bounded() {
        let nested = Reply::by(|_| Reply::by(|_| Reply::silence()));
        let act = Act::new(&nested, &request(), 1).unwrap();
        assert!(matches!(act.opening, Opening::Silence));
        assert_eq!(
            Act::new(&Reply::by(endless), &request(), 1).unwrap_err(),
            "its rules keep returning rules"
        );
    }

    /// Checks the announced length and the content of each piece.
    #[track_caller]
    fn check(reply: Reply, expected: &[(usize, &str)]) {
        let Opening::Response(answer) = Act::new(&reply, &request(), 1).unwrap().opening else {
            panic!("an answer")
        };
        let pieces = answer.pieces.iter();
        let pieces: Vec<_> = pieces.map(|piece| (piece.announced, &*piece.bytes)).collect();
        let expected: Vec<_> = expected.iter().map(|(all, sent)| (*all, sent.as_bytes())).collect();
        assert_eq!(pieces, expected);
    }

    #[test]
    fn a_body_is_torn_where_it_ends() {
        let reply = || Reply::sse("one two").cut(Cut::At(vec![3]));
        check(reply(), &[(3, "one"), (4, " two")]);
        check(reply().close_after(0), &[]);
        check(reply().close_after(2), &[(3, "on")]);
        check(reply().close_after(3), &[(3, "one")]);
        check(reply().close_after(4), &[(3, "one"), (4, " ")]);
        check(reply().close_after(99), &[(3, "one"), (4, " two")]);
    }
}
