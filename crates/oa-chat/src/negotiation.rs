//! Fallbacks for requests that a server rejects.

use std::mem;

use crate::error::Error;
use oa_output::FormatRequest;
use oa_types::wire::{Demands, Thinking};

/// The variable parts of a request: those that servers may reject.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Way {
    /// True if usage is requested.
    pub(crate) usage: bool,
    /// True if tools are described in the prompt, and calls are read from the text.
    pub(crate) calls_are_text: bool,
    /// True if the tool choice is sent.
    pub(crate) tool_choice: bool,
    /// The way the response format is requested.
    pub(crate) format: FormatRequest,
    /// Changes that cost nothing.
    pub(crate) demands: Demands,
}

/// A rejected part of a request, with the server's message; the request was then sent without it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The response format, or the tool choice in its place; the next weaker [`FormatRequest`] was sent, or no choice.
    Format(String),
    /// The amount of thinking, because the model has none, or always thinks; no amount was sent.
    Thinking(String),
    /// Tools; calls are in text from now on.
    Tools(String),
}

/// The parts of a request that a server may refuse and that have an alternative.
#[derive(Clone, Debug)]
pub(crate) struct Alternatives {
    /// Tools are offered, and there is a dialect for calls in text.
    pub(crate) tools: bool,
    /// There is a format fallback.
    pub(crate) format: bool,
    /// The tool choice may be left out.
    pub(crate) tool_choice: bool,
    /// Calls in text have a response format of their own, which the prompt explains.
    pub(crate) held: bool,
    /// The amount of thinking, which is a wish.
    pub(crate) thinking: Option<Thinking>,
}

/// Decides how to change a request after a rejection, without I/O.
///
/// Each rejection removes or changes one part, and no form is tried twice. So a request is sent at most 15 times: in
/// full, without usage, without tool choice, without an amount of thinking, with calls in text, with each weaker
/// response format, and with each of the other [`Demands`] met. The part named in the server's message comes first.
///
/// Send the request as [`way`](Self::way) says. Pass an error to [`refused`](Self::refused): `true` means to send
/// again. Once the server answers, [`learned`](Self::learned) returns the facts to remember about it.
#[derive(Debug)]
pub(crate) struct Negotiation {
    first: Way,
    way: Way,
    alternatives: Alternatives,
    refusals: Vec<Refusal>,
}

/// The facts to remember about a server once it has answered.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Lessons {
    pub(crate) refuses_usage: bool,
    pub(crate) refuses_tools: bool,
    pub(crate) refuses_choice: bool,
    pub(crate) format: Option<FormatRequest>,
    pub(crate) demands: Option<Demands>,
    pub(crate) refusals: Vec<Refusal>,
}

impl Way {
    /// Returns the way for an unknown server.
    pub(crate) fn first(calls_are_text: bool) -> Self {
        let (format, demands) = Default::default();
        Self { usage: true, calls_are_text, tool_choice: true, format, demands }
    }

    /// True if the envelopes are the same: each holds its requests with and without usage.
    pub(crate) fn is_like(self, other: Self) -> bool {
        let parts =
            |it: Self| (it.calls_are_text, it.tool_choice, it.format, it.demands.of_parameters());
        parts(self) == parts(other)
    }
}

impl Negotiation {
    pub(crate) fn new(first: Way, alternatives: Alternatives) -> Self {
        Self { first, way: first, alternatives, refusals: Vec::new() }
    }

    /// Returns the form of the next request.
    pub(crate) fn way(&self) -> Way {
        self.way
    }

    /// Takes an error; returns `true` if the request should be sent again in another form.
    pub(crate) fn refused(&mut self, error: &Error) -> bool {
        let Alternatives { tools, format, tool_choice, held, ref thinking } = self.alternatives;
        // The message may quote the model, whose words reject nothing.
        if error.blames_output() {
            return false;
        }
        // First drop usage, which loses only a count (QUIRKS row 74).
        if self.way.usage && error.refuses("stream_options") {
            self.way.usage = false;
            return true;
        }
        if error.adds_to(&mut self.way.demands) {
            return true;
        }
        if let Some(thinking) = thinking
            && error.adds_thinking(&mut self.way.demands, thinking)
        {
            self.refusals.push(Refusal::Thinking(error.to_string()));
            return true;
        }
        // Before a lack of tools, which these words could mean as well (QUIRKS row 130).
        if self.way.tool_choice && tool_choice && error.refuses("tool_choice") {
            self.way.tool_choice = false;
            self.refusals.push(Refusal::Format(error.to_string()));
            return true;
        }
        if !self.way.calls_are_text && tools && error.says_no_tools() {
            self.way.calls_are_text = true;
            // It may refuse to stream only calls (QUIRKS row 143), and this asks for none.
            self.way.demands.whole_answers = false;
            self.refusals.push(Refusal::Tools(error.to_string()));
            return true;
        }
        if (format || held && self.way.calls_are_text)
            && error.refuses_format()
            && let Some(next) = self.way.format.next()
        {
            // The second of two refusals is about the fallback, which the caller did not set.
            if self.way.format == self.first.format {
                self.refusals.push(Refusal::Format(error.to_string()));
            }
            self.way.format = next;
            return true;
        }
        false
    }

    /// Returns, once for each refusal, the facts that an answer to the last request proves.
    pub(crate) fn learned(&mut self) -> Option<Lessons> {
        let Self { first, way, .. } = *self;
        (way != first).then(|| Lessons {
            refuses_usage: way.usage != first.usage,
            refuses_tools: way.calls_are_text != first.calls_are_text,
            refuses_choice: way.tool_choice != first.tool_choice,
            format: (way.format != first.format).then_some(way.format),
            demands: (way.demands != first.demands).then_some(way.demands),
            refusals: mem::take(&mut self.refusals),
        })
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};
    use oa_redact::Secrets;
    use oa_types::wire::ServerError;
    use proptest::prelude::*;

    use super::*;

    /// A rejection by a status, or by an error inside the answer.
    fn error(words: &str, in_stream: bool) -> Error {
        let body = format!("{{\"error\":{{\"message\":\"{words}\"}}}}");
        if in_stream {
            let server = ServerError::from_body(body.as_bytes());
            return Error::in_stream(&server, 0, false, &Secrets::new());
        }
        let (status, headers) = (StatusCode::BAD_REQUEST, HeaderMap::new());
        Error::response(status, &headers, body.as_bytes(), &Secrets::new())
    }

    const WORDS: [&str; 14] = [
        "tiny:1b does not support thinking",
        "Reasoning is mandatory for this endpoint and cannot be disabled.",
        "Thinking mode does not support this tool_choice",
        "unknown field stream_options",
        "registry.ollama.ai/library/gemma:2b does not support tools",
        "This response_format type is unavailable now",
        "the prompt is too long",
        "messages[2]: 'name' is not supported",
        "unrecognized: max_completion_tokens",
        "reasoning_content is missing",
        "text content blocks must be non-empty",
        "Failed to initialize samplers: failed to parse grammar",
        "Unknown (built-in) filter 'upper' for type Array",
        "This model doesn't support tool use in streaming mode.",
    ];

    proptest! {
        /// Refusals in any order: each weakens or changes the request, none comes back, and an end is reached after at
        /// most 14.
        #[test]
        fn each_refusal_weakens_the_request_once(
            refusals in prop::collection::vec((0..WORDS.len(), any::<bool>()), 0..20),
            calls_are_text: bool,
            tools: bool,
            format: bool,
            tool_choice: bool,
            held: bool,
            thinking in prop_oneof![Just(None), Just(Some(Thinking::Off)), Just(Some(Thinking::On))],
        ) {
            let first = Way::first(calls_are_text);
            let alternatives =
                Alternatives { tools, format, tool_choice, held, thinking: thinking.clone() };
            let mut negotiation = Negotiation::new(first, alternatives);
            let mut asked_again = 0;
            for (refusal, in_stream) in refusals {
                let before = negotiation.way();
                let again = negotiation.refused(&error(WORDS[refusal], in_stream));
                let after = negotiation.way();
                prop_assert_eq!(again, before != after);
                prop_assert!(after.usage <= before.usage);
                prop_assert!(after.calls_are_text >= before.calls_are_text);
                prop_assert!(after.tool_choice <= before.tool_choice);
                prop_assert!(after.format >= before.format);
                let may_weaken = format || held && before.calls_are_text;
                prop_assert!(may_weaken || after.format == before.format);
                prop_assert!(tools || after.calls_are_text == before.calls_are_text);
                asked_again += u32::from(again);
            }
            prop_assert!(asked_again <= 14);
            let way = negotiation.way();
            let lessons = negotiation.learned();
            prop_assert_eq!(lessons.is_some(), asked_again > 0);
            let Some(lessons) = lessons else { return Ok(()) };
            prop_assert_eq!(lessons.refuses_usage, !way.usage);
            prop_assert_eq!(lessons.demands.unwrap_or_default(), way.demands);
            prop_assert_eq!(lessons.refuses_tools, way.calls_are_text && !calls_are_text);
            prop_assert_eq!(lessons.format.is_some(), way.format != FormatRequest::Schema);
            prop_assert_eq!(lessons.refuses_choice, !way.tool_choice);
            prop_assert!(tool_choice || way.tool_choice);
            let Demands { never_thinks, always_thinks, .. } = way.demands;
            prop_assert!(thinking.is_some() || !never_thinks && !always_thinks);
            prop_assert!(thinking == Some(Thinking::Off) || !always_thinks);
            prop_assert!(!(never_thinks && always_thinks));
            let told = [
                lessons.refuses_tools,
                lessons.refuses_choice,
                lessons.format.is_some(),
                never_thinks,
                always_thinks,
            ];
            prop_assert_eq!(lessons.refusals.len(), told.into_iter().filter(|told| *told).count());
        }
    }
}
