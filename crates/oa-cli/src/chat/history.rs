//! Overviews of conversations.

use oa_markdown::{Line, Span, Style, wrap};
use open_agent::{ContentBlock, FinishReason, Message, MessageRole};

use super::view::{call_text, one_line, result_text};

/// The indent of continuation lines.
const INDENT: &str = "    ";
/// The most characters of a message in an overview.
const LONGEST: usize = 400;

/// Returns an overview of a conversation: the beginning of each message, call and result.
pub(super) fn overview(messages: &[Message], width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for message in messages {
        let sign = match message.role {
            MessageRole::User => "› ",
            MessageRole::Assistant => "  ",
            MessageRole::System => "# ",
            MessageRole::Tool => "  → ",
            _ => "  ",
        };
        let is_dim = !matches!(message.role, MessageRole::User | MessageRole::Assistant);
        let style = if is_dim { Style::DIMMED } else { Style::PLAIN };
        let (first, next) = ([Span::visible(sign, Style::DIMMED)], [Span::visible(INDENT, style)]);
        let mut show = |text| lines.extend(wrap(&[text], &first, &next, width));
        // Files belong to the text that they went with.
        if message.role == MessageRole::User {
            show(Span::new(&said(message), style));
            continue;
        }
        for block in &message.content {
            show(match block {
                ContentBlock::Text(_) => Span::new(&part(block), style),
                ContentBlock::ToolUse(call) => {
                    Span::visible(&beginning(&call_text(&call.name, &call.input)), style)
                }
                ContentBlock::ToolResult(result) => {
                    Span::visible(&result_text(&result.content), style)
                }
                _ => continue,
            });
        }
    }
    lines
}

/// Returns a message of the user on one line: the beginning of its text, and the files that went with it.
pub(super) fn said(message: &Message) -> String {
    let parts: Vec<_> = message.content.iter().map(part).filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// Returns a part of a message on one line: the beginning of a text, or the kind of anything else.
fn part(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Audio(_) => "[audio]".to_owned(),
        ContentBlock::Image(_) => "[image]".to_owned(),
        ContentBlock::Text(text) => match oa_files::name_of(&text.text) {
            Some(name) => format!("[file {}]", beginning(name)),
            None => beginning(&text.text),
        },
        _ => String::new(),
    }
}

/// Returns the beginning of a text, on one line.
fn beginning(text: &str) -> String {
    one_line(text, LONGEST)
}

/// Returns the index of the last prompt of a conversation whose turns are not known. A message that was sent while tools
/// ran, or along with a prompt, belongs to the turn of its prompt.
pub(super) fn last_prompt(messages: &[Message]) -> Option<usize> {
    let is_prompt = |index: &usize| {
        let before = index.checked_sub(1).map(|before| messages[before].role);
        messages[*index].role == MessageRole::User
            && !matches!(before, Some(MessageRole::Tool | MessageRole::User))
    };
    (0..messages.len()).rev().find(is_prompt)
}

/// Returns the reason why a turn ended early; `None` if it was complete.
pub(super) fn why_it_ended(reason: &FinishReason) -> Option<&'static str> {
    Some(match reason {
        FinishReason::ApprovalPending => "calls wait for permission",
        reason if reason.is_filtered() => "the server's content filter stopped the answer",
        FinishReason::Interrupted => "stopped",
        reason if reason.is_length() => "the answer reached the token limit (max_tokens)",
        FinishReason::MaxToolIterations => "the limit of tool rounds was reached (max_rounds)",
        FinishReason::Refusal => "the model refused",
        FinishReason::RepeatedToolCall => "the model repeated the same call too often",
        FinishReason::Unspecified => "the server did not say that the answer is complete",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_shown_as_they_were_typed() {
        // An emoji with its selector, and a joiner of Persian.
        let said = "\u{2764}\u{fe0f} \u{645}\u{6cc}\u{200c}\u{62e}";
        let lines = overview(&[Message::user(said)], 40);
        assert_eq!(lines[0].plain(), format!("› {said}"));
    }
}
