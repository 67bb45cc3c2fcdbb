use std::slice;

use oa_redact::Secrets;
use oa_tools::{ToolContext, ToolError};
use oa_types::ImageBlock;
use serde_json::{Value, json};

use crate::message::plain_base64;

/// The longest excerpt of an answer that cannot be read.
const EXCERPT: usize = 200;
/// The longest URL of media, in characters.
const URL: usize = 4_000;

/// Reads the result of a call and returns what the model gets.
///
/// Text stays text; structured content is the result if there is no text or the text only repeats it. Images are
/// attached to the result; images that cannot be attached and other media are noted in the text and emitted. Unknown
/// blocks are replaced by a note.
///
/// # Errors
///
/// The tool's error message, or a message that the answer is not a result.
pub fn read_result(
    result: &Value,
    cx: &ToolContext,
    secrets: &Secrets,
) -> Result<Value, ToolError> {
    let mut structured = result.get("structuredContent").filter(|value| !value.is_null());
    // The form before version 2024-11-05.
    if let Some(inner) = result.get("toolResult").filter(|_| result.get("content").is_none()) {
        if inner.get("content").is_some() {
            return read_result(inner, cx, secrets);
        }
        structured = structured.or(Some(inner));
    }
    let content = match result.get("content") {
        Some(Value::Array(blocks)) => blocks.as_slice(),
        // One block without its list.
        Some(block) if has_text(block) || block["type"].is_string() => slice::from_ref(block),
        // Servers in Go write an empty list as null, and some leave it out. A member with another name may be the
        // content of a server that does not know the format, which must not be lost.
        None | Some(Value::Null) if structured.is_some() || has_only_known(result) => &[],
        _ => {
            let excerpt = secrets.excerpt(&result.to_string(), EXCERPT);
            return Err(ToolError::new(format!("the answer is not a tool result: {excerpt}")));
        }
    };
    let has_failed = result.get("isError").and_then(Value::as_bool) == Some(true);
    let reader = Reader { cx, attaches: !has_failed };
    let mut pieces: Vec<String> = content.iter().filter_map(|block| reader.piece(block)).collect();
    if let Some(structured) = structured
        && !pieces.is_empty()
        && !content.iter().any(has_text)
    {
        // Notes about media and links do not replace it.
        pieces.insert(0, structured.to_string());
    }
    let text = pieces.join("\n");
    if has_failed {
        let message = match structured {
            Some(structured) if text.is_empty() => structured.to_string(),
            _ if text.is_empty() => "the tool failed without a message".to_owned(),
            _ => text,
        };
        // It is not known whether the call may be repeated.
        return Err(ToolError::new(message).retryable(false));
    }
    match structured {
        // Servers repeat structured content as text for older clients. Different text is meant for the model.
        Some(structured) if says_the_same(&text, structured) => Ok(structured.clone()),
        _ => Ok(text.into()),
    }
}

fn has_only_known(result: &Value) -> bool {
    let known = ["_meta", "content", "isError", "resultType", "structuredContent"];
    result.as_object().is_some_and(|members| members.keys().all(|name| known.contains(&&**name)))
}

/// Returns true for a block with a text of the server.
fn has_text(block: &Value) -> bool {
    block.is_string()
        || block
            .get("text")
            .or_else(|| block.pointer("/resource/text"))
            .is_some_and(Value::is_string)
}

fn says_the_same(text: &str, structured: &Value) -> bool {
    text.is_empty() || serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured)
}

struct Reader<'a> {
    cx: &'a ToolContext,
    /// False for an error result, which can only have text.
    attaches: bool,
}

impl Reader<'_> {
    /// Returns the text for one block; `None` for an image that was attached.
    fn piece(&self, block: &Value) -> Option<String> {
        let text = |name: &str| block.get(name).and_then(Value::as_str);
        Some(match text("type") {
            Some("text") => match text("text") {
                Some(text) => text.to_owned(),
                None => "[text block without text]".to_owned(),
            },
            Some(of @ ("audio" | "image")) => return self.media(block, of, text("data")),
            Some("resource") => {
                let resource = &block["resource"];
                let uri = resource["uri"].as_str().unwrap_or("without a URI");
                let inside = match (resource["text"].as_str(), resource["blob"].as_str()) {
                    (Some(text), _) => Some(text.to_owned()),
                    (None, Some(blob)) => self.media(resource, "blob", Some(blob)),
                    (None, None) => None,
                };
                match inside {
                    Some(inside) => format!("[{uri}]\n{inside}"),
                    None => format!("[{uri}]"),
                }
            }
            Some("resource_link") => {
                let name = text("name").or_else(|| text("title")).unwrap_or("unnamed");
                format!("[resource {name} {}]", text("uri").unwrap_or("without a URI"))
            }
            // Not of the protocol, but some servers write it: a text, or a block of another type or of none.
            _ if block.is_string() => block.as_str()?.to_owned(),
            _ if text("text").is_some() => text("text")?.to_owned(),
            None | Some("json") if block.get("json").is_some() => block["json"].to_string(),
            Some(other) => {
                format!("[content of an unknown type: {}]", Secrets::new().excerpt(other, 40))
            }
            None => "[content without a type]".to_owned(),
        })
    }

    /// Attaches an image. Emits other media, and returns a note about them for the text.
    fn media(&self, block: &Value, of: &str, data: Option<&str>) -> Option<String> {
        let mime = block.get("mimeType").and_then(Value::as_str).unwrap_or(of);
        let shown = Secrets::new().excerpt(mime, 80);
        let Some(data) = data else { return Some(format!("[{shown}, without data]")) };
        // Not fetched: a server may write any address.
        if data.starts_with("https://") || data.starts_with("http://") {
            return Some(format!("[{shown} {}]", Secrets::new().excerpt(data, URL)));
        }
        let data = &*plain_base64(data);
        let mut why = String::new();
        // Any other media type is refused here.
        if self.attaches
            && let Ok(image) = ImageBlock::from_base64(data, mime)
        {
            match self.cx.attach_image(image) {
                Ok(()) => return None,
                Err(error) => why = format!(": {error}"),
            }
        }
        self.cx.emit_with("mcp_content", || json!({ "type": of, "mimeType": shown, "data": data }));
        // Base64 takes four bytes for three.
        let bytes = data.trim_end_matches('=').len() * 3 / 4;
        Some(match bytes {
            0..1024 => format!("[{shown}, {bytes} bytes{why}]"),
            _ => format!("[{shown}, {} KiB{why}]", bytes.div_ceil(1024)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::mem;
    use std::sync::{Arc, Mutex, PoisonError};

    use oa_tools::Emission;

    use super::*;

    fn check(result: &Value) -> Result<Value, String> {
        let cx = ToolContext::new("c", "t");
        read_result(result, &cx, &Secrets::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn structured_content_replaces_equal_text() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        assert_eq!(check(&json!({ "content": [text("a")] })), Ok(json!("a")));
        assert_eq!(check(&json!({ "content": [text("a"), text("b")] })), Ok(json!("a\nb")));
        assert_eq!(check(&json!({ "content": [] })), Ok(json!("")));
        let both = json!({ "content": [text("{\"sum\": 3}")], "structuredContent": { "sum": 3 } });
        assert_eq!(check(&both), Ok(json!({ "sum": 3 })));
        let different = json!({ "content": [text("three")], "structuredContent": { "sum": 3 } });
        assert_eq!(check(&different), Ok(json!("three")));
        assert_eq!(check(&json!({ "structuredContent": { "sum": 3 } })), Ok(json!({ "sum": 3 })));
        let null = json!({ "content": null, "structuredContent": { "sum": 3 } });
        assert_eq!(check(&null), Ok(json!({ "sum": 3 })));
    }

    #[test]
    fn results_may_be_empty() {
        for nothing in [
            json!({}),
            json!({ "content": [] }),
            json!({ "content": null, "isError": false, "structuredContent": null }),
            json!({ "_meta": {}, "resultType": "complete" }),
        ] {
            assert_eq!(check(&nothing), Ok(json!("")), "{nothing}");
        }
        for other in [json!(null), json!([]), json!({ "result": "text" }), json!({ "text": "a" })] {
            assert!(check(&other).unwrap_err().contains(&other.to_string()), "{other}");
        }
    }

    #[test]
    fn known_blocks_are_kept_beside_unknown_ones() {
        let result = json!({ "content": [
            { "type": "text", "text": "good" },
            { "type": "hologram", "rays": 7 },
            { "type": "resource_link", "name": "plan", "uri": "file:///plan" },
            { "type": "resource", "resource": { "uri": "demo://1", "text": "inside" } },
            { "nothing": true },
            { "type": "json", "json": { "sum": 3 } },
            { "type": "json" },
        ] });
        let expected = "good\n[content of an unknown type: hologram]\n[resource plan file:///plan]\n[demo://1]\ninside\n[content without a type]\n{\"sum\":3}\n[content of an unknown type: json]";
        assert_eq!(check(&result), Ok(json!(expected)));
    }

    /// As servers write them that are not built on a library.
    #[test]
    fn text_of_malformed_blocks_is_kept() {
        let result = json!({ "content": [
            "plain",
            { "text": "without a type" },
            { "type": "application/json", "text": "{\"sum\":3}" },
            { "type": "markdown", "text": "# Plan" },
            { "json": [1] },
        ] });
        let expected = "plain\nwithout a type\n{\"sum\":3}\n# Plan\n[1]";
        assert_eq!(check(&result), Ok(json!(expected)));
        let both = json!({ "content": ["three"], "structuredContent": { "sum": 3 } });
        assert_eq!(check(&both), Ok(json!("three")));
    }

    /// The form before version 2024-11-05, which Cloudflare's servers wrote.
    #[test]
    fn result_may_be_in_an_old_member() {
        let inner = json!({ "content": [{ "type": "text", "text": "no" }], "isError": true });
        assert_eq!(check(&json!({ "toolResult": inner })), Err("no".to_owned()));
        assert_eq!(check(&json!({ "toolResult": { "sum": 3 } })), Ok(json!({ "sum": 3 })));
        assert_eq!(check(&json!({ "toolResult": "three" })), Ok(json!("three")));
        let both = json!({ "content": [], "toolResult": { "sum": 3 } });
        assert_eq!(check(&both), Ok(json!("")));
    }

    fn block(of: &str, mime: &str, data: &str) -> Value {
        json!({ "type": of, "mimeType": mime, "data": data })
    }

    /// Reads a result with these blocks. Returns the text, the attached URLs and the media types that were emitted.
    fn read_all(blocks: Value, is_error: bool) -> (Result<Value, String>, Vec<String>, Vec<Value>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let emitter = move |emission: Emission| {
            if let Emission::Custom { name, data } = emission {
                assert_eq!(name, "mcp_content");
                sink.lock().unwrap_or_else(PoisonError::into_inner).push(data);
            }
        };
        let cx = ToolContext::new("c", "t").with_emitter(Arc::new(emitter));
        let result = json!({ "content": blocks, "isError": is_error });
        let value = read_result(&result, &cx, &Secrets::new()).map_err(|error| error.to_string());
        let urls = cx.take_images().into_iter().map(|image| image.url).collect();
        let seen = mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
        (value, urls, seen)
    }

    #[test]
    fn images_are_attached_in_order() {
        let blocks = json!([
            { "type": "text", "text": "before" },
            block("image", "image/png", "QUJD"),
            { "type": "text", "text": "after" },
            { "type": "resource", "resource": { "uri": "demo://2", "mimeType": "image/gif", "blob": "QUI=" } },
        ]);
        let (text, images, emitted) = read_all(blocks, false);
        assert_eq!(text, Ok(json!("before\nafter\n[demo://2]")));
        assert_eq!(images, ["data:image/png;base64,QUJD", "data:image/gif;base64,QUI="]);
        assert_eq!(emitted, [Value::Null; 0]);
        let (text, images, _) = read_all(json!([block("image", "image/png", "QUJD")]), false);
        assert_eq!((text, images.len()), (Ok(json!("")), 1));
    }

    #[test]
    fn other_media_are_emitted_with_a_note() {
        let data = "QUJD".repeat(1_000);
        for (of, mime, data, expected) in [
            ("audio", "audio/wav", &*data, "[audio/wav, 3 KiB]"),
            ("image", "application/pdf", "QUJD", "[application/pdf, 3 bytes]"),
            ("image", "image/png", "not base64", "[image/png, 7 bytes]"),
        ] {
            let (text, images, emitted) = read_all(json!([block(of, mime, data)]), false);
            assert_eq!(text, Ok(json!(expected)));
            assert_eq!(images, [""; 0]);
            assert_eq!(emitted, [block(of, mime, data)]);
        }
        let (text, images, _) = read_all(json!([{ "type": "image" }]), false);
        assert_eq!((text, images.len()), (Ok(json!("[image, without data]")), 0));
    }

    #[test]
    fn data_may_be_a_uri_or_have_line_breaks() {
        for data in ["data:image/png;base64,QUJD", "QU\nJD\n", "data:;base64,QU\r\nJD"] {
            let (text, images, emitted) =
                read_all(json!([block("image", "image/png", data)]), false);
            assert_eq!((text, emitted), (Ok(json!("")), Vec::new()), "{data}");
            assert_eq!(images, ["data:image/png;base64,QUJD"], "{data}");
        }
        let url = "https://a.example/b.png?c=d";
        let (text, images, _) = read_all(json!([block("image", "image/png", url)]), false);
        assert_eq!((text, images.len()), (Ok(json!(format!("[image/png {url}]"))), 0));
    }

    #[test]
    fn notes_do_not_replace_structured_content() {
        let audio = block("audio", "audio/wav", "QUJD");
        let link = json!({ "type": "resource_link", "name": "plan", "uri": "file:///plan" });
        let mut result = json!({ "content": [audio, link], "structuredContent": { "sum": 3 } });
        let all = "{\"sum\":3}\n[audio/wav, 3 bytes]\n[resource plan file:///plan]";
        assert_eq!(check(&result), Ok(json!(all)));
        result["isError"] = json!(true);
        assert_eq!(check(&result), Err(all.to_owned()));
        let inside = json!({ "type": "resource", "resource": { "uri": "a:b", "text": "inside" } });
        let result = json!({ "content": [inside], "structuredContent": { "sum": 3 } });
        assert_eq!(check(&result), Ok(json!("[a:b]\ninside")));
    }

    #[test]
    fn image_over_the_limit_becomes_a_note() {
        let one = block("image", "image/png", "QUJD");
        let blocks = vec![one.clone(); ToolContext::MAX_IMAGES + 1];
        let (text, images, emitted) = read_all(json!(blocks), false);
        let note =
            "[image/png, 3 bytes: the image cannot be attached: a result has at most 16 images]";
        assert_eq!(text, Ok(json!(note)));
        assert_eq!(images.len(), ToolContext::MAX_IMAGES);
        assert_eq!(emitted, [one]);
    }

    #[test]
    fn error_results_attach_no_images() {
        let one = block("image", "image/png", "QUJD");
        let blocks = json!([{ "type": "text", "text": "the page is broken" }, one]);
        let (text, images, emitted) = read_all(blocks, true);
        assert_eq!(text, Err("the page is broken\n[image/png, 3 bytes]".to_owned()));
        assert_eq!(images, [""; 0]);
        assert_eq!(emitted, [one]);
    }

    #[test]
    fn tool_errors_keep_their_text() {
        let failed =
            json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true });
        assert_eq!(check(&failed), Err("no such file".to_owned()));
        assert_eq!(
            check(&json!({ "content": [], "isError": true })),
            Err("the tool failed without a message".to_owned())
        );
        assert_eq!(
            check(&json!({ "content": null, "isError": true })),
            Err("the tool failed without a message".to_owned())
        );
        assert!(check(&json!(5)).unwrap_err().contains("not a tool result: 5"));
        let other = json!({ "content": { "sum": 3 } });
        assert!(check(&other).unwrap_err().contains("not a tool result"));
    }

    #[test]
    fn content_may_be_one_block_without_a_list() {
        assert_eq!(check(&json!({ "content": "sunny" })), Ok(json!("sunny")));
        assert_eq!(check(&json!({ "content": "" })), Ok(json!("")));
        let failed = json!({ "content": "no such city", "isError": true });
        assert_eq!(check(&failed), Err("no such city".to_owned()));
        let both = json!({ "content": "{\"sum\": 3}", "structuredContent": { "sum": 3 } });
        assert_eq!(check(&both), Ok(json!({ "sum": 3 })));
        let one = json!({ "content": { "type": "text", "text": "sunny" } });
        assert_eq!(check(&one), Ok(json!("sunny")));
        let link = json!({ "type": "resource_link", "name": "plan", "uri": "file:///plan" });
        assert_eq!(check(&json!({ "content": link })), Ok(json!("[resource plan file:///plan]")));
    }
}
