//! A conversation as text, for a model to summarize.

use oa_types::{ContentBlock, Message};
use serde_json::Value;

use crate::counter::TokenCounter;

/// Writes messages as text, in parts with a token limit. No message takes more than half a part; longer ones
/// are cut and marked.
pub(crate) fn parts<'a, C>(
    messages: impl IntoIterator<Item = &'a Message>,
    tokens: usize,
    counter: &C,
) -> Vec<String>
where
    C: TokenCounter + ?Sized,
{
    let mut parts: Vec<(String, usize)> = Vec::new();
    for message in messages {
        let mut text = told(message);
        let whole = text.len();
        text.truncate(clip(&text, tokens / 2, counter).len());
        if text.len() < whole {
            text.push_str(" […]\n");
        }
        let count = counter.count_text(&text);
        match parts.last_mut() {
            Some((part, sum)) if sum.saturating_add(count) <= tokens => {
                part.push_str(&text);
                *sum += count;
            }
            _ if text.is_empty() => {}
            _ => parts.push((text, count)),
        }
    }
    parts.into_iter().map(|(part, _)| part).collect()
}

/// Returns the start of a text, within a token limit.
pub(crate) fn clip<'a, C>(text: &'a str, tokens: usize, counter: &C) -> &'a str
where
    C: TokenCounter + ?Sized,
{
    let mut text = text;
    loop {
        let count = counter.count_text(text);
        if count <= tokens || text.is_empty() {
            return text;
        }
        // Shorten by at least a tenth, so that the loop ends.
        let share = (text.len() as f64 * tokens as f64 / count as f64) as usize;
        let mut end = share.min(text.len() - text.len().div_ceil(10));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text = &text[..end];
    }
}

fn told(message: &Message) -> String {
    let mut text = String::new();
    let speaker = message.role.as_str();
    for block in &message.content {
        let line = match block {
            ContentBlock::Text(block) if block.text.is_empty() => continue,
            ContentBlock::Text(block) => format!("{speaker}: {}\n", block.text),
            ContentBlock::Audio(_) => format!("{speaker}: (a recording)\n"),
            ContentBlock::Image(_) => format!("{speaker}: (an image)\n"),
            ContentBlock::ToolUse(call) => {
                format!("{speaker} calls {} with {}\n", call.name, call.input)
            }
            ContentBlock::ToolResult(result) => {
                let of = result.name.as_deref().unwrap_or("a call");
                let failed = if result.is_error { " (failed)" } else { "" };
                let images = if result.images.is_empty() { "" } else { " (with images)" };
                match &result.content {
                    Value::String(content) => {
                        format!("result of {of}{failed}: {content}{images}\n")
                    }
                    content => format!("result of {of}{failed}: {content}{images}\n"),
                }
            }
            // Thinking and malformed calls are not worth remembering.
            _ => continue,
        };
        text.push_str(&line);
    }
    text
}

#[cfg(test)]
mod tests {
    use oa_types::{ThinkingBlock, ToolResultBlock, ToolUseBlock};
    use serde_json::json;

    use super::*;
    use crate::counter::counter_fn;
    use crate::estimate::Estimator;

    #[test]
    fn transcript_includes_calls_and_failures() {
        let call = ToolUseBlock::new("call_1", "add", json!({"a": 1}));
        let mut result = ToolResultBlock::new("call_1", json!("too big"));
        result.is_error = true;
        let messages = [
            Message::user("Add."),
            Message::assistant(vec![ThinkingBlock::new("Hm.").into(), call.into()]),
            Message::tool(result),
        ];
        assert_eq!(
            parts(&messages, 1_000, &Estimator::new()),
            [
                "user: Add.\nassistant calls add with {\"a\":1}\nresult of a call (failed): too big\n"
            ]
        );
    }

    #[test]
    fn parts_stay_within_their_budget() {
        let counter = Estimator::new();
        let long = Message::user("木の家 and more words; ".repeat(500));
        let messages = [Message::user("a"), long.clone(), long, Message::user("b")];
        let parts = parts(&messages, 200, &counter);
        assert!(parts.iter().all(|part| counter.count_text(part) <= 210), "{parts:?}");
        assert_eq!(parts.concat().matches("[…]").count(), 2);
        assert!(parts.concat().ends_with("user: b\n"));
    }

    #[test]
    fn texts_can_be_clipped_to_nothing() {
        assert_eq!(clip("some words", 0, &Estimator::new()), "");
        assert_eq!(clip("", 0, &Estimator::new()), "");
        assert_eq!(clip("some words", 2, &Estimator::new()), "some words");
        // Even for a counter that counts tokens in an empty text.
        assert_eq!(clip("some words", 2, &counter_fn(|_: &str| 3)), "");
    }
}
