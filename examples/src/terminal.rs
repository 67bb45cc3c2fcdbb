use std::env;
use std::io::{IsTerminal, Write, stdout};

use open_agent::redact::{printable, visible};
use open_agent::{ContentBlock, ToolResultBlock, ToolUseBlock};
use serde_json::Value;

/// The longest value shown in full, in characters.
const LONGEST: usize = 72;

const BOLD: &str = "1";
const DIM: &str = "2";

/// Prints streamed text, and lines in between. Styled if the output is a terminal that can show styles, and `NO_COLOR` is
/// not set.
/// Escape sequences in the text are made visible, because models, servers and tools wrote it.
#[derive(Debug)]
pub struct Terminal {
    has_colors: bool,
    /// True if the cursor is after unfinished text.
    is_mid_line: bool,
    /// True if the last line is empty or there is none yet.
    is_after_gap: bool,
    /// The call whose failure was printed last.
    failed: Option<String>,
}

impl Terminal {
    pub fn new() -> Self {
        let is_wanted = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            has_colors: stdout().is_terminal() && is_wanted && !is_dumb,
            is_mid_line: false,
            is_after_gap: true,
            failed: None,
        }
    }

    /// Prints a piece of text immediately.
    pub fn say(&mut self, text: &str) {
        self.say_styled("", text);
    }

    /// Prints a piece of thinking immediately.
    pub fn think(&mut self, text: &str) {
        self.say_styled(DIM, text);
    }

    /// Prints a line.
    pub fn line(&mut self, text: &str) {
        self.styled_line(&printable(text));
    }

    /// Prints a line with a label of at least `width` columns.
    pub fn labeled_line(&mut self, label: &str, width: usize, text: &str) {
        let label = self.paint(DIM, &format!("{label:<width$}"));
        self.styled_line(&format!("  {label} {}", printable(text)));
    }

    /// Prints an empty line, unless there is one.
    pub fn gap(&mut self) {
        self.end_line();
        if !self.is_after_gap {
            self.line("");
        }
    }

    /// Ends a line of streamed text, if there is one.
    pub fn end_line(&mut self) {
        if self.is_mid_line {
            self.write("\n");
            self.is_mid_line = false;
        }
    }

    /// Prints a remark about the conversation.
    pub fn note(&mut self, text: &str) {
        self.styled_line(&self.paint(DIM, text));
    }

    /// Prints a headline.
    pub fn title(&mut self, text: &str) {
        self.gap();
        self.styled_line(&self.paint(BOLD, text));
    }

    /// Prints the user's prompt.
    pub fn prompt(&mut self, text: &str) {
        self.gap();
        self.styled_line(&format!("{} {}", self.paint(BOLD, ">"), printable(text)));
        self.gap();
    }

    /// Prints a block of an answer: streamed text as it is, calls and results as lines.
    pub fn block(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.say(&text.text),
            ContentBlock::Thinking(thinking) => self.think(&thinking.thinking),
            ContentBlock::ToolUse(call) => self.note(&format!("  {}", show_call(call))),
            ContentBlock::ToolUseError(error) => {
                let name = error.name.as_deref().unwrap_or("a call");
                self.note(&format!("  {}", visible(&format!("{name} failed: {}", error.error))));
                self.failed.clone_from(&error.id);
            }
            // An error for the user is followed by the result that the model reads.
            ContentBlock::ToolResult(result)
                if self.failed.as_ref() == Some(&result.tool_use_id) => {}
            ContentBlock::ToolResult(result) => self.note(&format!("  {}", show_result(result))),
            _ => {}
        }
    }

    fn say_styled(&mut self, style: &str, text: &str) {
        self.write(&self.paint(style, text));
        if let Some(last) = text.chars().last() {
            self.is_mid_line = last != '\n';
            self.is_after_gap = false;
        }
    }

    /// Prints a line whose text is already safe.
    fn styled_line(&mut self, text: &str) {
        self.end_line();
        self.write(text);
        self.write("\n");
        self.is_after_gap = text.is_empty();
    }

    /// Escapes and styles text.
    fn paint(&self, style: &str, text: &str) -> String {
        let text = printable(text);
        match style {
            "" => text.into_owned(),
            style if self.has_colors => format!("\x1b[{style}m{text}\x1b[0m"),
            _ => text.into_owned(),
        }
    }

    /// Flushes, because text without a line break would wait in a buffer. Ignores a closed output.
    fn write(&self, text: &str) {
        let mut stdout = stdout().lock();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

/// `add(a: 25, b: 17)`
fn show_call(call: &ToolUseBlock) -> String {
    let arguments = call.input.as_object().into_iter().flatten();
    let arguments: Vec<_> =
        arguments.map(|(name, value)| format!("{name}: {}", show_value(value))).collect();
    visible(&format!("{}({})", call.name, arguments.join(", "))).into_owned()
}

/// `add = 42`
fn show_result(result: &ToolResultBlock) -> String {
    let name = result.name.as_deref().unwrap_or("result");
    let shown = match result.content["error"].as_str() {
        Some(error) if result.is_error => format!("{name}: {error}"),
        _ => format!("{name} = {}", show_value(&result.content)),
    };
    visible(&shown).into_owned()
}

/// JSON on one line of limited length; integers without a decimal point.
fn show_value(value: &Value) -> String {
    let shown = match value.as_f64() {
        Some(number) => number.to_string(),
        None => value.to_string(),
    };
    match shown.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &shown[..end]),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use open_agent::{ToolResultBlock, ToolUseBlock, json};

    use super::{BOLD, LONGEST, Terminal, show_call, show_result, show_value};

    #[test]
    fn foreign_escape_sequences_are_escaped() {
        let terminal = Terminal { has_colors: true, ..Terminal::new() };
        assert_eq!(
            terminal.paint(BOLD, "a\x1b]0;b\x07\n\u{9b}2J"),
            "\x1b[1ma\\u{1b}]0;b\\u{7}\n\\u{9b}2J\x1b[0m"
        );
        assert_eq!(terminal.paint("", "\u{202e}"), "\\u{202e}");
        let call = ToolUseBlock::new("c1", "a\x1bc", json!({ "\x1b[2J": "\u{9b}\u{feff}" }));
        assert_eq!(show_call(&call), r#"a\u{1b}c(\u{1b}[2J: "\u{9b}\u{feff}")"#);
        let mut result = ToolResultBlock::new("c1", json!({ "error": "no\x1b[A" }));
        result.is_error = true;
        assert_eq!(show_result(&result), r"result: no\u{1b}[A");
    }

    #[test]
    fn calls_are_shown_with_their_arguments() {
        let call = ToolUseBlock::new("c1", "add", json!({ "a": 25, "b": 1.5, "note": "x" }));
        assert_eq!(show_call(&call), r#"add(a: 25, b: 1.5, note: "x")"#);
        assert_eq!(show_value(&json!(42.0)), "42");
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let shown = show_value(&json!("ä".repeat(2 * LONGEST)));
        assert_eq!(shown.chars().count(), LONGEST + " ...".len());
    }
}
