//! `<start_function_call>call:name{key:<escape>value<escape>}<end_function_call>`, and the same in the tokens of Gemma 4.

use serde_json::{Map, Value};

use crate::bodies::left_open;
use crate::closing::CallClosing;
use crate::grammar::{BodyEnd, CallBody, Match, ParsedCall, Position};
use crate::head::{CallHead, NoMatch};
use crate::object;
use crate::tools::Tools;

/// The tokens around a call, and the one before and after text in it.
const TOKENS: [(&str, &str, &str); 2] = [
    ("<start_function_call>", "<end_function_call>", "<escape>"),
    ("<|tool_call>", "<tool_call|>", "<|\"|>"),
];

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, _: &Tools) -> Result<Match, NoMatch> {
    for (open, close, quote) in TOKENS {
        if head.maybe(open)? {
            head.spaces()?;
            head.literal("call:")?;
            let name = head.name()?.to_owned();
            if head.peek()? != Some('{') {
                return Err(NoMatch::Mismatch);
            }
            let closing = CallClosing::new(close, quote, quote);
            return Ok(Match::Call(Box::new(Call { name, quote, closing })));
        }
    }
    Err(NoMatch::Mismatch)
}

#[derive(Debug)]
struct Call {
    name: String,
    quote: &'static str,
    closing: CallClosing,
}

impl CallBody for Call {
    fn push(&mut self, text: &str) -> Option<usize> {
        self.closing.push(text)
    }

    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall> {
        let text = match end {
            BodyEnd::Closed => self.closing.before(text),
            // The closing token may have stopped the server, which then does not send it.
            BodyEnd::Open => text,
        };
        let input = match self.arguments(text.trim()) {
            Err(_) if end == BodyEnd::Open => return vec![left_open(&self.name)],
            input => input,
        };
        vec![ParsedCall::of(&self.name, input)]
    }
}

impl Call {
    /// Reads the arguments: JSON with bare keys, once the text between two tokens is a JSON string.
    fn arguments(&self, text: &str) -> Result<Map<String, Value>, String> {
        let mut json = String::with_capacity(text.len());
        for (at, piece) in text.split(self.quote).enumerate() {
            match at % 2 {
                0 => json.push_str(piece),
                _ => json.push_str(&Value::from(piece).to_string()),
            }
        }
        object::arguments(&json)
    }
}
