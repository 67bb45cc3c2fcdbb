use oa_json::quoted;

use crate::arguments;
use crate::balance::{Balance, Lines as Across};
use crate::bodies::left_open;
use crate::grammar::{BodyEnd, CallBody, ParsedCall};
use crate::tools::Tools;

/// The labels that end an input.
const LABELS: [&str; 5] = ["observation:", "thought:", "action:", "final answer:", "question:"];

/// `Action Input: text`, up to the next label or the end of the answer.
#[derive(Debug)]
pub(super) struct Lines {
    name: Name,
    tools: Tools,
    /// The start of the line, in lower case; `None` if it is not a label.
    line: Option<String>,
}

#[derive(Debug)]
enum Name {
    /// A line that is not the name of a tool.
    None(String),
    Tool(String),
}

impl Lines {
    pub(super) fn new(name: &str, tools: &Tools) -> Self {
        Self { name: Name::Tool(name.to_owned()), tools: tools.clone(), line: None }
    }

    pub(super) fn of_no_tool(line: &str, tools: &Tools) -> Self {
        Self { name: Name::None(line.to_owned()), tools: tools.clone(), line: None }
    }
}

impl CallBody for Lines {
    fn push(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            if byte == b'\n' {
                self.line = Some(String::new());
                continue;
            }
            // Only labels at the start of a line end the input; its first line begins in the middle of one.
            let Some(line) = &mut self.line else { continue };
            // Markup and blanks before a label, or within it, do not count.
            if byte == b'*' || line.is_empty() && byte.is_ascii_whitespace() {
                continue;
            }
            line.push(char::from(byte.to_ascii_lowercase()));
            if LABELS.contains(&line.as_str()) {
                return Some(at + 1);
            }
            if !LABELS.iter().any(|label| label.starts_with(line.as_str())) {
                self.line = None;
            }
        }
        None
    }

    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall> {
        let text = match end {
            // The text ends with the next label, which is dropped.
            BodyEnd::Closed => text.rfind('\n').map_or(text, |at| &text[..at]),
            BodyEnd::Open => text,
        };
        vec![match &self.name {
            Name::None(line) => {
                ParsedCall::malformed(None, format!("{} is not the name of a tool", quoted(line)))
            }
            Name::Tool(name) => {
                ParsedCall::of(name, arguments::read_input(text, name, self.tools.schema(name)))
            }
        }]
    }
}

/// `name[text]`.
#[derive(Debug)]
pub(super) struct InBrackets {
    name: String,
    tools: Tools,
    balance: Balance,
}

impl InBrackets {
    pub(super) fn new(name: &str, tools: &Tools) -> Self {
        let balance = Balance::opened(Across::One);
        Self { name: name.to_owned(), tools: tools.clone(), balance }
    }
}

impl CallBody for InBrackets {
    fn push(&mut self, text: &str) -> Option<usize> {
        self.balance.push(text)
    }

    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall> {
        let text = text.strip_suffix(']').filter(|_| end == BodyEnd::Closed);
        vec![text.map_or_else(
            || left_open(&self.name),
            |text| {
                let schema = self.tools.schema(&self.name);
                ParsedCall::of(&self.name, arguments::read_input(text, &self.name, schema))
            },
        )]
    }
}
