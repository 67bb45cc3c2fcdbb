use std::borrow::Cow;

use oa_types::{AudioBlock, ContentBlock, ImageBlock, Message, MessageRole, TextBlock};
use serde_json::Value;

/// Reads a message of a prompt. Content that a message cannot contain is replaced by a note.
#[must_use]
pub fn read_message(message: &Value) -> Option<Message> {
    let role = match message.get("role").and_then(Value::as_str)? {
        "assistant" => MessageRole::Assistant,
        // Some servers write `system`, which the protocol does not have. Only the program sets a system prompt.
        "system" | "user" => MessageRole::User,
        _ => return None,
    };
    let blocks = blocks_of(message.get("content")?).iter().map(|content| {
        read_block(content).unwrap_or_else(|| {
            let of = content.get("type").and_then(Value::as_str).unwrap_or("unknown");
            let mime = content.get("mimeType").and_then(Value::as_str).unwrap_or(of);
            let mime = oa_redact::Secrets::new().excerpt(mime, 80);
            ContentBlock::Text(TextBlock::new(format!("[{mime}]")))
        })
    });
    Some(Message::new(role, blocks.collect()))
}

/// Returns the blocks of a message, which may be a single one.
pub(crate) fn blocks_of(content: &Value) -> &[Value] {
    match content {
        Value::Array(blocks) => blocks,
        block => std::slice::from_ref(block),
    }
}

/// Reads a block of content: text, an image, audio, one of these embedded, or a link. `None` for everything else.
#[must_use]
pub fn read_block(content: &Value) -> Option<ContentBlock> {
    // Some servers write a text in place of a block.
    if let Some(text) = content.as_str() {
        return Some(ContentBlock::Text(TextBlock::new(text)));
    }
    let text = |name: &str| content.get(name).and_then(Value::as_str);
    let block = match text("type")? {
        "text" => TextBlock::new(text("text")?),
        "audio" => return audio(content, "data"),
        "image" => return image(content, "data"),
        "resource" => {
            let resource = content.get("resource")?;
            let uri = resource.get("uri").and_then(Value::as_str).unwrap_or("without a URI");
            match resource.get("text").and_then(Value::as_str) {
                Some(inside) => TextBlock::new(format!("[{uri}]\n{inside}")),
                None => return image(resource, "blob").or_else(|| audio(resource, "blob")),
            }
        }
        "resource_link" => {
            let name = text("name").or_else(|| text("title")).unwrap_or("unnamed");
            TextBlock::new(format!("[resource {name} {}]", text("uri").unwrap_or("without a URI")))
        }
        _ => return None,
    };
    Some(ContentBlock::Text(block))
}

/// Reads an image. Anything else is refused by its media type.
fn image(block: &Value, data: &str) -> Option<ContentBlock> {
    let data = block.get(data).and_then(Value::as_str)?;
    let mime = block.get("mimeType").and_then(Value::as_str)?;
    ImageBlock::from_base64(plain_base64(data), mime).ok().map(ContentBlock::Image)
}

/// Reads a recording. Anything else is refused by its media type.
fn audio(block: &Value, data: &str) -> Option<ContentBlock> {
    let data = block.get(data).and_then(Value::as_str)?;
    let mime = block.get("mimeType").and_then(Value::as_str)?;
    AudioBlock::from_base64(plain_base64(data), mime).ok().map(ContentBlock::Audio)
}

/// Returns the base64 of a server's data. Some servers write a data URI, or break the lines.
pub(crate) fn plain_base64(data: &str) -> Cow<'_, str> {
    let uri = data.strip_prefix("data:").and_then(|uri| uri.split_once(";base64,"));
    let data = uri.map_or(data, |(_, data)| data);
    if data.contains(['\r', '\n']) { data.replace(['\r', '\n'], "").into() } else { data.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unsupported_content_becomes_a_note() {
        let message = json!({ "role": "user", "content": [
            { "type": "text", "text": "a" },
            { "type": "image", "mimeType": "image/png", "data": "QUJD" },
            { "type": "audio", "mimeType": "audio/wav", "data": "QUJD" },
            { "type": "audio", "mimeType": "audio/wav", "data": "?" },
            { "type": "resource", "resource": { "uri": "a://b", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "a://c", "mimeType": "image/png", "blob": "QUJD" } },
            { "type": "resource_link", "uri": "a://d", "name": "plan" },
            { "type": "smell" },
        ] });
        let message = read_message(&message).unwrap();
        let texts: Vec<_> = message.content.iter().filter_map(ContentBlock::as_text).collect();
        assert_eq!(
            texts,
            ["a", "[audio/wav]", "[a://b]\ninside", "[resource plan a://d]", "[smell]"]
        );
        assert_eq!(message.content.len(), 8);
        let audio = message.content.iter().find_map(ContentBlock::as_audio).unwrap();
        assert_eq!((&*audio.format, &*audio.data), ("wav", "QUJD"));
        assert_eq!(
            read_message(&json!({ "role": "tool", "content": { "type": "text", "text": "a" } })),
            None
        );
        assert_eq!(read_message(&json!({ "role": "user" })), None);
    }

    /// As GitHub's server and others had them: the text must not be lost, and is no system prompt.
    #[test]
    fn content_may_be_a_text_with_the_role_system() {
        let read =
            |role: &str, content: Value| read_message(&json!({ "role": role, "content": content }));
        assert_eq!(read("system", json!("Be brief.")), Some(Message::user("Be brief.")));
        let blocks = vec![ContentBlock::Text(TextBlock::new("a"))];
        assert_eq!(read("assistant", json!(["a"])), Some(Message::assistant(blocks)));
    }
}
