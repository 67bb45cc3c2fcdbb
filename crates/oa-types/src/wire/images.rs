use serde_json::Value;

use crate::block::{ContentBlock, TextBlock, ToolResultBlock};
use crate::message::{Message, MessageRole};
use crate::wire::message::MessageFormat;
use crate::wire::tool_name::tool_name;

/// Moves the images of results out of their tool messages: each result says how many images follow, and after the last
/// result of an answer comes a user message with all of them. Returns `None` if no result has images.
///
/// `revisions` has a number for each message: equal numbers mean equal messages. The returned numbers mean the same.
///
/// ```
/// use oa_types::wire::{MessageFormat, images_apart};
/// use oa_types::{ImageBlock, Message, ToolResultBlock};
///
/// let mut result = ToolResultBlock::new("call_1", "The page is open.".into());
/// result.name = Some("browse".into());
/// result.images.push(ImageBlock::from_url("https://example.org/shot.png")?);
/// let history = [Message::tool(result)];
/// let (sent, _) = images_apart(&history, &[7], &MessageFormat::default()).expect("there is an image");
/// assert_eq!(sent.len(), 2);
/// assert_eq!(sent[1].text(), "Images of the result of browse (call_1):");
/// # Ok::<(), oa_types::Error>(())
/// ```
#[must_use]
pub fn images_apart(
    messages: &[Message],
    revisions: &[u64],
    format: &MessageFormat,
) -> Option<(Vec<Message>, Vec<u64>)> {
    if !messages.iter().any(has_result_images) {
        return None;
    }
    let (mut apart, mut numbers) = (Vec::new(), Vec::new());
    let mut images = Vec::new();
    // A hash of the numbers of an answer's results, and of the calls that name them, which changes when one of these
    // does.
    let mut sum = BASIS;
    for (place, message) in messages.iter().enumerate() {
        let number = revisions.get(place).copied().unwrap_or_default();
        let mut message = message.clone();
        if message.role == MessageRole::Tool {
            sum = (sum ^ number).wrapping_mul(PRIME);
            for block in &mut message.content {
                if let ContentBlock::ToolResult(result) = block {
                    let caller = take_images(result, &messages[..place], format, &mut images);
                    if let Some(number) = caller.and_then(|caller| revisions.get(caller)) {
                        sum = (sum ^ number).wrapping_mul(PRIME);
                    }
                }
            }
        }
        apart.push(message);
        numbers.push(number);
        // Nothing may stand between the results of an answer, so their images wait for the last one.
        let is_last = messages.get(place + 1).is_none_or(|next| next.role != MessageRole::Tool);
        if is_last && !images.is_empty() {
            apart.push(Message::user_with_blocks(std::mem::take(&mut images)));
            // Revisions are counters, so none of them has the high bit.
            numbers.push(sum | 1 << 63);
        }
        if is_last {
            sum = BASIS;
        }
    }
    Some((apart, numbers))
}

/// Returns true if a message has results with images.
#[must_use]
pub fn has_result_images(message: &Message) -> bool {
    results_of(message).any(has_images)
}

// FNV-1a, over numbers instead of bytes.
const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01B3;

/// Moves the images of a result, and returns the index of the message that names its tool, if it does not itself.
fn take_images(
    result: &mut ToolResultBlock,
    earlier: &[Message],
    format: &MessageFormat,
    images: &mut Vec<ContentBlock>,
) -> Option<usize> {
    let note = match result.images.len() {
        0 => return None,
        1 => "1 image follows".to_owned(),
        count => format!("{count} images follow"),
    };
    let text = result.text();
    result.content = Value::String(match text.is_empty() {
        true => note,
        false => format!("{text}\n\n({note})"),
    });
    let call = if result.name.is_none() { call_of(result, earlier) } else { None };
    let tool = result.name.as_deref().or_else(|| Some(call?.1));
    let id = format.call_ids.write(&result.tool_use_id);
    let heading = match tool {
        Some(tool) => format!("Images of the result of {} ({id}):", tool_name(tool)),
        None => format!("Images of the result of the call {id}:"),
    };
    images.push(TextBlock::new(heading).into());
    images.extend(result.images.drain(..).map(ContentBlock::Image));
    call.map(|(place, _)| place)
}

/// Returns the latest call with the id of a result: the index of its message, and its name.
fn call_of<'a>(result: &ToolResultBlock, earlier: &'a [Message]) -> Option<(usize, &'a str)> {
    let named = |block: &'a ContentBlock| match block {
        ContentBlock::ToolUse(call) if call.id == result.tool_use_id => Some(&*call.name),
        _ => None,
    };
    let mut messages = earlier.iter().enumerate().rev();
    messages
        .find_map(|(place, message)| Some((place, message.content.iter().rev().find_map(named)?)))
}

fn results_of(message: &Message) -> impl Iterator<Item = &ToolResultBlock> {
    let blocks = (message.role == MessageRole::Tool).then_some(&message.content);
    blocks.into_iter().flatten().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(result),
        _ => None,
    })
}

fn has_images(result: &ToolResultBlock) -> bool {
    !result.images.is_empty()
}
