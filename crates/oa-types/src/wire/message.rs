use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::block::{ContentBlock, ToolResultBlock, ToolUseBlock};
use crate::ids::nine_letters;
use crate::image::{ImageBlock, ImageDetail};
use crate::message::{Message, MessageRole};
use crate::wire::tool_name::tool_name;

/// The message format that a server expects. The defaults work with every local server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct MessageFormat {
    /// The content of an assistant message that has calls but no text.
    pub empty_content: EmptyContent,
    /// The member in which reasoning is sent back, if at all.
    pub thinking: ThinkingReplay,
    /// The format of call ids.
    pub call_ids: CallIds,
    /// The names of the tools in results.
    pub result_names: ResultNames,
    /// Where the images of results are sent. [`write_message`] writes them only where they are inline.
    pub result_images: ResultImages,
}

/// The format of call ids (QUIRKS row 91).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum CallIds {
    /// Unchanged.
    #[default]
    AsTheyAre,
    /// Nine letters and digits. Any other id is replaced by a hash of it, always the same one.
    NineLetters,
    /// Unchanged up to 64 characters; a longer id is replaced by nine letters and digits.
    UpTo64,
}

impl CallIds {
    pub(super) fn write(self, id: &str) -> Cow<'_, str> {
        let is_taken = match self {
            Self::AsTheyAre => true,
            Self::NineLetters => {
                id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
            }
            Self::UpTo64 => id.len() <= 64 || id.chars().count() <= 64,
        };
        if is_taken {
            return Cow::Borrowed(id);
        }
        // A function of the id alone, so a call and its result agree without a table.
        // FNV-1a, finished like SplitMix64 so that ids that differ in one digit differ everywhere.
        let mut number = id.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        Cow::Owned(nine_letters(number ^ (number >> 27)))
    }
}

/// The content of a message without text (QUIRKS rows 83 and 84).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum EmptyContent {
    /// The member is omitted.
    Absent,
    /// `""`.
    #[default]
    Empty,
    /// `null`.
    Null,
}

/// The member in which the model's reasoning is sent back to it (QUIRKS row 94).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ThinkingReplay {
    /// Not sent.
    #[default]
    Drop,
    /// `reasoning`.
    Reasoning,
    /// `reasoning_content`.
    ReasoningContent,
    /// `reasoning_content`, which every answer with calls has: one without thinking gets a space, because some servers
    /// treat an empty text as missing.
    RequiredReasoningContent,
}

/// The names of the tools in results (QUIRKS row 92).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ResultNames {
    /// The member is omitted.
    Absent,
    /// `name`, if it is known.
    #[default]
    Known,
}

/// The place where the images of tool results are sent (QUIRKS row 97).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ResultImages {
    /// In a user message after the results of the same answer; see [`images_apart`](super::images_apart). Every server accepts it.
    #[default]
    Follow,
    /// In the tool message, whose content is then a list of parts. Many servers reject that, or drop the images.
    Inline,
}

/// Appends a message to a JSON list of messages: one object, or one for each tool result, separated by commas.
/// A leading comma is added unless `out` is empty or ends with `[`.
///
/// Results in a message of the user come before its text, because they must follow their calls.
///
/// Empty and blank messages are omitted, because servers reject them (QUIRKS rows 85 and 86). Audio and images are written
/// for users, and images in results if the format has them inline; for other formats call
/// [`images_apart`](super::images_apart) first.
pub fn write_message(message: &Message, format: &MessageFormat, out: &mut Vec<u8>) {
    let mut results = message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(result),
        _ => None,
    });
    if message.role != MessageRole::Assistant {
        results.by_ref().for_each(|result| write_result(result, format, out));
    }
    match message.role {
        MessageRole::Assistant => write_assistant(message, format, out),
        MessageRole::System => {
            if let Some(content) = instructions(message) {
                write(&Plain { role: "system", content: Content::Text(content) }, out);
            }
        }
        MessageRole::User => {
            let content = content(&message.content);
            if !content.is_blank() {
                write(&Plain { role: "user", content }, out);
            }
        }
        MessageRole::Tool => {}
    }
    results.for_each(|result| write_result(result, format, out));
}

/// Returns the text of a system message as it is sent, one block per line; `None` if it is blank.
#[must_use]
pub fn instructions(message: &Message) -> Option<Cow<'_, str>> {
    Some(joined_text(&message.content)).filter(|text| !is_blank(text))
}

/// A message with nothing but content.
#[derive(Serialize)]
struct Plain<'a> {
    role: &'static str,
    content: Content<'a>,
}

/// A message in the wire format, members in the order of the servers' documentation.
#[derive(Serialize)]
struct Wire<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reasoning: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reasoning_content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reasoning_text: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    tool_call_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl Wire<'_> {
    fn new(role: MessageRole) -> Self {
        Self {
            role: role.as_str(),
            content: None,
            reasoning: Cow::default(),
            reasoning_content: Cow::default(),
            reasoning_text: Cow::default(),
            tool_calls: Vec::new(),
            tool_call_id: Cow::default(),
            name: None,
            extra: Map::new(),
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Null,
    Parts(Vec<Part<'a>>),
    Text(Cow<'a, str>),
}

impl Content<'_> {
    fn is_blank(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Parts(parts) => parts.is_empty(),
            Self::Text(text) => is_blank(text),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    ImageUrl { image_url: ImageUrl<'a> },
    InputAudio { input_audio: InputAudio<'a> },
    Text { text: &'a str },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<ImageDetail>,
}

#[derive(Serialize)]
struct InputAudio<'a> {
    data: &'a str,
    format: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

fn write_assistant(message: &Message, format: &MessageFormat, out: &mut Vec<u8>) {
    let text = message.text();
    let tool_calls: Vec<Call<'_>> =
        message.content.iter().filter_map(|block| tool_call(block, format)).collect();
    // Models often write a line break before a call. Servers reject content that is only whitespace.
    let says_nothing = is_blank(&text);
    if says_nothing && tool_calls.is_empty() {
        return;
    }
    let content = match format.empty_content {
        EmptyContent::Absent if says_nothing => None,
        EmptyContent::Empty if says_nothing => Some(Content::Text(Cow::default())),
        EmptyContent::Null if says_nothing => Some(Content::Null),
        _ => Some(Content::Text(text.into())),
    };
    let thinking = || -> Cow<'_, str> {
        let thoughts = message.content.iter().filter_map(|block| match block {
            ContentBlock::Thinking(block) => Some(&*block.thinking),
            _ => None,
        });
        thoughts.collect::<String>().into()
    };
    let has_calls = !tool_calls.is_empty();
    let mut wire = Wire { content, tool_calls, ..Wire::new(MessageRole::Assistant) };
    match format.thinking {
        ThinkingReplay::Drop => {}
        ThinkingReplay::Reasoning => wire.reasoning = thinking(),
        ThinkingReplay::ReasoningContent => wire.reasoning_content = thinking(),
        ThinkingReplay::RequiredReasoningContent => {
            let thinking = Some(thinking()).filter(|thinking| !has_calls || !is_blank(thinking));
            wire.reasoning_content = thinking.unwrap_or(Cow::Borrowed(" "));
        }
    }
    // The signature covers the reasoning text, so both go back together (QUIRKS row 105).
    if message.extra.contains_key("reasoning_opaque") {
        wire.reasoning_text = thinking();
    }
    wire.extra = without(
        &message.extra,
        &[
            "role",
            "content",
            "reasoning",
            "reasoning_content",
            "reasoning_text",
            "tool_calls",
            "tool_call_id",
            "name",
        ],
    );
    write(&wire, out);
}

fn tool_call<'a>(block: &'a ContentBlock, format: &MessageFormat) -> Option<Call<'a>> {
    let ContentBlock::ToolUse(ToolUseBlock { id, name, input, extra }) = block else { return None };
    // Arguments are a string of valid JSON (QUIRKS row 93).
    let arguments = if input.is_object() { input.to_string() } else { "{}".to_owned() };
    let extra = without(extra, &["id", "type", "function"]);
    let id = format.call_ids.write(id);
    Some(Call {
        id,
        kind: "function",
        function: Function { name: tool_name(name), arguments },
        extra,
    })
}

fn write_result(result: &ToolResultBlock, format: &MessageFormat, out: &mut Vec<u8>) {
    let text = result.text();
    let content = match format.result_images {
        ResultImages::Inline if !result.images.is_empty() => {
            let words = (!is_blank(&text)).then_some(Part::Text { text: &text });
            Content::Parts(words.into_iter().chain(result.images.iter().map(image_part)).collect())
        }
        _ => Content::Text(Cow::Borrowed(&text)),
    };
    let name = result.name.as_deref();
    let wire = Wire {
        content: Some(content),
        tool_call_id: format.call_ids.write(&result.tool_use_id),
        name: name.filter(|_| format.result_names == ResultNames::Known).map(tool_name),
        ..Wire::new(MessageRole::Tool)
    };
    write(&wire, out);
}

fn image_part(image: &ImageBlock) -> Part<'_> {
    let detail = Some(image.detail).filter(|detail| *detail != ImageDetail::Auto);
    Part::ImageUrl { image_url: ImageUrl { url: &image.url, detail } }
}

/// A plain string unless there are images or audio (QUIRKS row 97).
fn content(blocks: &[ContentBlock]) -> Content<'_> {
    if !blocks.iter().any(ContentBlock::is_media) {
        return Content::Text(joined_text(blocks));
    }
    let parts = blocks.iter().filter_map(|block| match block {
        ContentBlock::Audio(audio) => {
            let input_audio = InputAudio { data: &audio.data, format: &audio.format };
            Some(Part::InputAudio { input_audio })
        }
        ContentBlock::Image(image) => Some(image_part(image)),
        ContentBlock::Text(block) if !is_blank(&block.text) => {
            Some(Part::Text { text: &block.text })
        }
        _ => None,
    });
    Content::Parts(parts.collect())
}

fn joined_text(blocks: &[ContentBlock]) -> Cow<'_, str> {
    let mut texts = blocks.iter().filter_map(ContentBlock::as_text);
    let first = Cow::Borrowed(texts.next().unwrap_or_default());
    texts.fold(first, |joined, text| joined + "\n" + text)
}

fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

/// Drops members that are written anyway, since a JSON object must not repeat a member, and nulls.
fn without(extra: &Map<String, Value>, written: &[&str]) -> Map<String, Value> {
    let is_sent = |(member, value): &(&String, &Value)| {
        !written.contains(&member.as_str()) && !value.is_null()
    };
    let members = extra.iter().filter(is_sent);
    members.map(|(member, value)| (member.clone(), value.clone())).collect()
}

fn write(value: &impl Serialize, out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'[')) {
        out.push(b',');
    }
    serde_json::to_writer(out, value).expect("values with text keys always serialize");
}
