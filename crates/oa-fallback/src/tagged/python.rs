//! Calls in Python: `[name(key="value"), other()]`, or one call in each line.

use oa_json::quoted;

use crate::arguments;
use crate::balance::{Balance, Lines};
use crate::bare::Bare;
use crate::bodies::left_open;
use crate::grammar::{BodyEnd, CallBody, ParsedCall};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

/// Reads a name and the bracket after it, if both come next.
pub(super) fn name<'a>(head: &mut CallHead<'a>) -> Result<Option<&'a str>, NoMatch> {
    let mut read = || {
        let name = head.name()?;
        head.literal("(")?;
        Ok(name)
    };
    match read() {
        Ok(name) => Ok(Some(name)),
        Err(NoMatch::Mismatch) => Ok(None),
        Err(more) => Err(more),
    }
}

/// Returns the name of the tool that a call in Python is about: Llama calls its own tools as `name.call(..)`.
pub(super) fn tool<'a>(name: &'a str, tools: &Tools) -> &'a str {
    let short = name.strip_suffix(".call").filter(|short| tools.knows(short));
    short.filter(|_| !tools.knows(name)).unwrap_or(name)
}

/// Reads the opening bracket of a list and the name of its first call, if both come next.
pub(super) fn list_name<'a>(head: &mut CallHead<'a>) -> Result<Option<&'a str>, NoMatch> {
    if !head.maybe("[")? {
        return Ok(None);
    }
    head.spaces()?;
    name(head)
}

/// Several calls: a list in brackets, or calls with only white space and commas between them.
#[derive(Debug)]
pub(super) struct Calls {
    tools: Tools,
    is_list: bool,
    /// Calls of other names are other code.
    is_code: bool,
    balance: Balance,
    /// True between two calls that are not in a list.
    is_between: bool,
}

impl Calls {
    pub(super) fn list(tools: &Tools) -> Self {
        Self { is_list: true, ..Self::lines(tools) }
    }

    pub(super) fn lines(tools: &Tools) -> Self {
        let balance = Balance::of_value();
        Self { tools: tools.clone(), is_list: false, is_code: false, balance, is_between: false }
    }

    /// Calls of known tools in lines, up to other code.
    pub(super) fn code(tools: &Tools) -> Self {
        Self { is_code: true, ..Self::lines(tools) }
    }
}

fn separates(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b';')
}

impl CallBody for Calls {
    fn push(&mut self, text: &str) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = text.as_bytes().get(at) {
            if self.is_between {
                match byte {
                    _ if separates(byte) => {
                        at += 1;
                        continue;
                    }
                    _ if byte.is_ascii_alphanumeric() || byte == b'_' => {}
                    _ => return Some(at),
                }
                (self.is_between, self.balance) = (false, Balance::of_value());
            }
            at += self.balance.push(&text[at..])?;
            if self.is_list {
                return Some(at);
            }
            self.is_between = true;
        }
        None
    }

    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall> {
        let mut calls = Vec::new();
        let mut rest = if self.is_list { text.trim_start_matches('[') } else { text };
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii() && separates(c as u8));
            let mut head = CallHead::new(rest, true);
            let Ok(Some(name)) = name(&mut head) else { break };
            let name = tool(name, &self.tools);
            if self.is_code && !self.tools.knows(name) {
                break;
            }
            // Without an end, calls may be missing. Only one that is not in a list is certain; code often has no end.
            let is_certain = !self.is_list && (self.is_code || calls.is_empty());
            if end == BodyEnd::Open && !is_certain {
                return vec![left_open(name)];
            }
            let body = &rest[head.at()..];
            let Some(length) = Balance::opened(Lines::Many).push(body) else {
                return vec![left_open(name)];
            };
            // `Balance` stops at any closing bracket. Behind a wrong one, nothing is certain.
            let Some(input) = body[..length].strip_suffix(')') else {
                let error = "the call does not end with `)`";
                calls.push(ParsedCall::malformed(Some(name), error));
                return calls;
            };
            let input = arguments::read(input, Bare::Words, self.tools.schema(name));
            calls.push(ParsedCall::of(name, input));
            rest = &body[length..];
        }
        if self.is_list && !matches!(rest.trim_end(), "" | "]") {
            let error = format!("expected a call before {}", quoted(rest));
            calls.push(ParsedCall::malformed(None, error));
        }
        calls
    }
}
