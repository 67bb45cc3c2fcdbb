//! The sub-agent of a call.

use oa_markdown::{Color, Line, Style};
use open_agent::{AgentEvent, ContentBlock, NestedEvent, ToolEvent};

use super::text::{call_text, denied_text, result_text};

/// The work of a sub-agent: its current activity as text, and its calls as lines.
#[derive(Debug, Default)]
pub(super) struct Inner {
    doing: Option<String>,
    /// The end of the text that the agent writes.
    text: String,
}

/// The maximum number of characters kept, from the end of the text.
const KEPT: usize = 60;

impl Inner {
    /// Returns the agent's current activity.
    pub(super) fn doing(&self) -> Option<&str> {
        self.doing.as_deref()
    }

    /// Handles an event of the agent or of its sub-agents. Returns permanent lines.
    pub(super) fn push(&mut self, nested: &NestedEvent, width: usize) -> Vec<Line> {
        let mut path = nested.agent.clone();
        let mut event = &nested.event;
        while let AgentEvent::Nested(deeper) = event {
            path.push_str(" > ");
            path.push_str(&deeper.agent);
            event = &deeper.event;
        }
        let called = |name: &str, input| format!("{path} > {}", call_text(name, input));
        let line = |sign: &str, color, call: &str, result: &str| {
            let line = Line::new("  ", Style::PLAIN).and(sign, Style::PLAIN.color(color));
            let result = format!(" → {result}");
            line.and(call, Style::PLAIN).and(&result, Style::DIMMED).cut(width)
        };
        match event {
            AgentEvent::AnswerStart => {
                self.text.clear();
                self.doing = Some(format!("{path} answers"));
            }
            AgentEvent::Block(ContentBlock::Text(text)) => {
                self.write(&text.text);
                self.doing = Some(format!("{path}: {}", self.text.trim()));
            }
            AgentEvent::Block(ContentBlock::Thinking(_)) => {
                self.doing = Some(format!("{path} thinks"));
            }
            AgentEvent::CallDenied(denied) => {
                let call = called(&denied.tool_name, &denied.input);
                return vec![line("✗ ", Color::Red, &call, &denied_text(&denied.reason))];
            }
            AgentEvent::Tool(ToolEvent::CallStart(start)) => {
                self.doing = Some(called(&start.tool_name, &start.input));
            }
            AgentEvent::Tool(ToolEvent::CallComplete(result)) => {
                self.doing = Some(format!("{path} is waiting for its model"));
                let (sign, color) =
                    if result.is_error() { ("✗ ", Color::Red) } else { ("✓ ", Color::Green) };
                let call = called(&result.tool_name, &result.input);
                return vec![line(sign, color, &call, &result_text(&result.result))];
            }
            _ => {}
        }
        vec![]
    }

    /// Adds text, and keeps its end on one line.
    fn write(&mut self, text: &str) {
        self.text.push_str(text);
        // The last line stays until the next one has text, so that the row is never empty.
        if let Some(before) = self.text.trim_end().rfind('\n') {
            self.text.drain(..=before);
        }
        let count = self.text.chars().count();
        if let Some((begin, _)) = self.text.char_indices().nth(count.saturating_sub(KEPT)) {
            self.text.drain(..begin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Inner;

    #[test]
    fn the_row_shows_the_last_line_with_text() {
        let mut inner = Inner::default();
        for (piece, shown) in [
            ("abc\ndef\n", "def"),
            ("\n \n", "def"),
            ("g", "g"),
            ("h\n\ni\n\n", "i"),
            ("j\r\nk\r\n", "k"),
        ] {
            inner.write(piece);
            assert_eq!(inner.text.trim(), shown);
        }
    }
}
