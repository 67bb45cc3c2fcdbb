use std::fmt;
use std::sync::Arc;

use oa_types::wire::ChatParameters;
use oa_types::{Message, ToolResultBlock, ToolSpec, ToolUseBlock};
use serde_json::Value;

use crate::grammar::Grammar;
use crate::scanner::Scanner;

/// A way to call tools in plain text: instructions for the model, a grammar that finds its calls, and the format of
/// calls and results when the conversation is sent.
///
/// To write your own, implement a [`Grammar`] and these five methods; the [`Scanner`] does the rest.
///
/// ```
/// use std::sync::Arc;
/// use oa_fallback::{CallBody, Dialect, BodyEnd, Match, Grammar, CallHead, Position, ParsedCall, Scanned, NoMatch};
/// use oa_types::{ToolResultBlock, ToolSpec, ToolUseBlock};
///
/// /// One call per line, such as `!roll 2d6`.
/// #[derive(Debug)]
/// struct Bang;
///
/// impl Dialect for Bang {
///     fn instructions(&self, tools: &[ToolSpec]) -> String {
///         let names: Vec<String> = tools.iter().map(|tool| format!("!{} WORDS", tool.name)).collect();
///         format!("Write one of these on a line of its own, and wait:\n{}", names.join("\n"))
///     }
///     fn grammar(&self, _: Arc<[ToolSpec]>) -> Box<dyn Grammar> {
///         Box::new(Bang)
///     }
///     fn write_call(&self, call: &ToolUseBlock) -> String {
///         format!("!{} {}", call.name, call.input["words"].as_str().unwrap_or_default())
///     }
///     fn write_result(&self, result: &ToolResultBlock, _tool: &str) -> String {
///         format!("> {}", result.text())
///     }
///     fn stop(&self) -> Vec<String> {
///         vec!["\n>".to_owned()]
///     }
/// }
///
/// impl Grammar for Bang {
///     fn may_begin(&self, byte: u8) -> bool {
///         byte == b'!'
///     }
///     fn begin(&self, head: &mut CallHead<'_>, position: Position) -> Result<Match, NoMatch> {
///         if !position.at_line_start {
///             return Err(NoMatch::Mismatch);
///         }
///         head.literal("!")?;
///         let name = head.name()?.to_owned();
///         head.literal(" ")?;
///         Ok(Match::Call(Box::new(Line(name))))
///     }
/// }
///
/// #[derive(Debug)]
/// struct Line(String);
///
/// impl CallBody for Line {
///     fn push(&mut self, text: &str) -> Option<usize> {
///         text.find('\n')
///     }
///     fn read(&self, text: &str, _: BodyEnd) -> Vec<ParsedCall> {
///         vec![ParsedCall::new(&self.0, [("words".to_owned(), text.into())].into_iter().collect())]
///     }
/// }
///
/// let mut scanner = Bang.scanner(Arc::new([]));
/// scanner.push("Let us see!\n!roll 2d6\nYou have 12!");
/// assert_eq!(scanner.next_item(), Some(Scanned::Text("Let us see!")));
/// let Some(Scanned::Call(call)) = scanner.next_item() else { panic!("no call") };
/// assert_eq!(call.input["words"], "2d6");
/// assert_eq!(scanner.next_item(), None); // text written without the result is dropped
/// ```
pub trait Dialect: fmt::Debug + Send + Sync {
    /// Returns the part of the system prompt that explains the tools and how to call them; empty without tools.
    fn instructions(&self, tools: &[ToolSpec]) -> String;

    /// Returns the grammar of calls. The schemas of these tools decide the types of values.
    fn grammar(&self, tools: Arc<[ToolSpec]>) -> Box<dyn Grammar>;

    /// Returns a call as the model should have written it, without surrounding line breaks.
    fn write_call(&self, call: &ToolUseBlock) -> String;

    /// Returns the result of a call of the tool `tool` as text, without surrounding line breaks.
    fn write_result(&self, result: &ToolResultBlock, tool: &str) -> String;

    /// Returns an answer as the model should have written it. With `None`, the default, its text and each call are
    /// written on lines of their own.
    fn write_answer(&self, _answer: &Message) -> Option<String> {
        None
    }

    /// Returns the response format that constrains answers to this dialect, given the tools, tool choice and response
    /// format of the request. With `None`, the default, the request keeps its response format, and its tool choice has
    /// no effect.
    fn response_format(&self, _parameters: &ChatParameters) -> Option<Value> {
        None
    }

    /// Returns the stop sequences for a request, which keep the model from writing results itself.
    fn stop(&self) -> Vec<String>;

    /// Returns true if [`plain_message`](crate::plain_message) writes each call at its original place in the text, and
    /// false if it writes calls after all text.
    fn writes_calls_in_place(&self) -> bool {
        false
    }

    /// Returns a scanner for one answer.
    fn scanner(&self, tools: Arc<[ToolSpec]>) -> Scanner {
        Scanner::new(self.grammar(tools))
    }
}
