//! Bodies that several dialects share.

use crate::arguments;
use crate::balance::{Balance, Lines};
use crate::bare::Bare;
use crate::grammar::{BodyEnd, CallBody, ParsedCall};
use crate::object;
use crate::tools::Tools;

const OPEN: &str = "the answer ended in the middle of the call";

/// A JSON object, or a list of them, each with name and arguments.
#[derive(Debug)]
pub(crate) struct Objects {
    tools: Tools,
    balance: Balance,
    /// True if each object has the name as its key and the arguments as its value.
    is_keyed: bool,
}

impl Objects {
    pub(crate) fn new(tools: &Tools) -> Self {
        Self { tools: tools.clone(), balance: Balance::of_json(), is_keyed: false }
    }

    pub(crate) fn keyed(tools: &Tools) -> Self {
        Self { is_keyed: true, ..Self::new(tools) }
    }
}

impl CallBody for Objects {
    fn push(&mut self, text: &str) -> Option<usize> {
        self.balance.push(text)
    }

    fn read(&self, text: &str, _: BodyEnd) -> Vec<ParsedCall> {
        match self.is_keyed {
            true => object::keyed_calls(text),
            false => object::calls(text, &self.tools),
        }
    }
}

/// A JSON object that is the arguments of a call.
#[derive(Debug)]
pub(crate) struct Arguments {
    name: String,
    balance: Balance,
}

impl Arguments {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), balance: Balance::of_json() }
    }
}

impl CallBody for Arguments {
    fn push(&mut self, text: &str) -> Option<usize> {
        self.balance.push(text)
    }

    fn read(&self, text: &str, _: BodyEnd) -> Vec<ParsedCall> {
        vec![ParsedCall::of(&self.name, object::arguments(text))]
    }
}

/// The rest of a call after its opening bracket: `a="b", n=3)`.
#[derive(Debug)]
pub(crate) struct Named {
    name: String,
    tools: Tools,
    bare: Bare,
    balance: Balance,
}

impl Named {
    /// Creates a body in brackets that may span several lines.
    pub(crate) fn new(name: &str, tools: &Tools) -> Self {
        let balance = Balance::opened(Lines::Many);
        Self { name: name.to_owned(), tools: tools.clone(), bare: Bare::Words, balance }
    }

    /// Creates a body on one line, where text needs no quotes.
    pub(crate) fn in_line(name: &str, tools: &Tools) -> Self {
        let balance = Balance::opened(Lines::One);
        Self { bare: Bare::Text, balance, ..Self::new(name, tools) }
    }

    fn closing(&self) -> char {
        if self.bare == Bare::Text { ']' } else { ')' }
    }
}

impl CallBody for Named {
    fn push(&mut self, text: &str) -> Option<usize> {
        self.balance.push(text)
    }

    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall> {
        // `Balance` stops at any closing bracket, and on a single line before its line break. Only its own
        // bracket closes the call.
        let closed = text.strip_suffix(self.closing());
        let input = match (closed, end) {
            (Some(text), BodyEnd::Closed) => {
                arguments::read(text, self.bare, self.tools.schema(&self.name))
            }
            (_, BodyEnd::Open) => Err(OPEN.to_owned()),
            (None, BodyEnd::Closed) => {
                Err(format!("the call does not end with `{}`", self.closing()))
            }
        };
        vec![ParsedCall::of(&self.name, input)]
    }
}

/// A call without a body.
#[derive(Debug)]
pub(crate) struct Ready(pub(crate) ParsedCall);

impl CallBody for Ready {
    fn push(&mut self, _: &str) -> Option<usize> {
        Some(0)
    }

    fn read(&self, _: &str, _: BodyEnd) -> Vec<ParsedCall> {
        vec![self.0.clone()]
    }
}

/// Returns the malformed call for one that was not closed.
pub(crate) fn left_open(name: &str) -> ParsedCall {
    ParsedCall::malformed(Some(name), OPEN)
}
