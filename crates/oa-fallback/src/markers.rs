use std::sync::Arc;

use oa_types::{ToolResultBlock, ToolSpec, ToolUseBlock};

use crate::arguments;
use crate::bare::Bare;
use crate::bodies::{Named, Ready};
use crate::dialect::Dialect;
use crate::grammar::{AfterCall, Grammar, Match, ParsedCall, Position};
use crate::head::{CallHead, NoMatch};
use crate::prompt;
use crate::tools::Tools;

/// Calls as markers in the text: `[TOOL:name:arg=value, other="text, with a comma"]`.
///
/// Use this dialect for the smallest models: a call is one line without nesting, and text without commas needs no
/// quotes. The tool's schema decides the types of values.
///
/// ```
/// use std::sync::Arc;
/// use oa_fallback::{Dialect, Markers, Scanned};
/// use oa_types::ToolSpec;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}});
/// let tools = Arc::new([ToolSpec::new("weather", "Forecast", schema)]);
/// let mut scanner = Markers::new().scanner(tools);
/// scanner.push("Let me look. [TOOL:weather:city=New York, days=3] It is");
/// assert_eq!(scanner.next_item(), Some(Scanned::Text("Let me look.")));
/// let Some(Scanned::Call(call)) = scanner.next_item() else { panic!("no call") };
/// assert_eq!(json!(call.input), json!({"city": "New York", "days": 3}));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Markers {
    after: AfterCall,
}

impl Default for Markers {
    fn default() -> Self {
        Self::new()
    }
}

impl Markers {
    /// Creates the dialect in which a marker ends the answer, and the results are sent in a second request.
    #[must_use]
    pub fn new() -> Self {
        Self { after: AfterCall::Cut }
    }

    /// Creates the dialect for inline results: the model writes its whole answer, and
    /// [`inline_results`](crate::inline_results) replaces each marker with its result, without a second request.
    #[must_use]
    pub fn inline() -> Self {
        Self { after: AfterCall::Keep }
    }
}

const EXAMPLE: &str = "[TOOL:name:argument=value, other=\"text, with a comma\"]";

impl Dialect for Markers {
    fn instructions(&self, tools: &[ToolSpec]) -> String {
        if tools.is_empty() {
            return String::new();
        }
        let list = prompt::list(tools);
        match self.after {
            AfterCall::Keep => format!(
                "You can use tools. Wherever your answer needs a result, write a marker in its \
                 place:\n\n{EXAMPLE}\n\nThe marker is replaced by the result before your answer is \
                 shown, so never write the result yourself. If a tool fails you are told, as [ERROR:name] \
                 and why: then write the answer again. {RULES}\n\nTools:\n\n{list}",
            ),
            AfterCall::Cut => format!(
                "You can use tools. To use one, end your answer with a marker:\n\n{EXAMPLE}\n\nThen stop \
                 and wait: the next message has the result, as [RESULT:name] and the result. Never write \
                 a result yourself. When you need no tool, answer without a marker. \
                 {RULES}\n\nTools:\n\n{list}",
            ),
        }
    }

    fn grammar(&self, tools: Arc<[ToolSpec]>) -> Box<dyn Grammar> {
        Box::new(MarkerGrammar { tools: Tools::new(tools), after: self.after })
    }

    fn write_call(&self, call: &ToolUseBlock) -> String {
        let mut marker = format!("[TOOL:{}:", call.name);
        arguments::write(&call.input, &mut marker);
        marker.push(']');
        marker
    }

    fn write_result(&self, result: &ToolResultBlock, tool: &str) -> String {
        let kind = if result.is_error { "ERROR" } else { "RESULT" };
        format!("[{kind}:{tool}] {}", result.text())
    }

    fn writes_calls_in_place(&self) -> bool {
        self.after == AfterCall::Keep
    }

    fn stop(&self) -> Vec<String> {
        match self.after {
            AfterCall::Cut => vec!["[RESULT:".to_owned(), "[ERROR:".to_owned()],
            AfterCall::Keep => Vec::new(),
        }
    }
}

const RULES: &str = "A marker must be on one line; text with commas, brackets or line breaks is quoted as \
                     in JSON, and lists and objects are written as in JSON.";

#[derive(Debug)]
struct MarkerGrammar {
    tools: Tools,
    after: AfterCall,
}

impl Grammar for MarkerGrammar {
    fn may_begin(&self, byte: u8) -> bool {
        byte == b'['
    }

    fn begin(&self, head: &mut CallHead<'_>, _: Position) -> Result<Match, NoMatch> {
        head.literal("[TOOL:")?;
        head.blanks()?;
        let name = head.name()?;
        head.blanks()?;
        match head.peek()? {
            Some(':') => head.literal(":")?,
            Some(']') => {
                head.literal("]")?;
                let input = arguments::read("", Bare::Text, None);
                return Ok(Match::Call(Box::new(Ready(ParsedCall::of(name, input)))));
            }
            // The name of a known tool, but the rest of the marker cannot be read.
            Some(_) if self.tools.knows(name) => {
                let error = format!("expected `:` or `]` after the name: {EXAMPLE}");
                return Ok(Match::Call(Box::new(Ready(ParsedCall::malformed(Some(name), error)))));
            }
            _ => return Err(NoMatch::Mismatch),
        }
        Ok(Match::Call(Box::new(Named::in_line(name, &self.tools))))
    }

    fn after_call(&self) -> AfterCall {
        self.after
    }
}
