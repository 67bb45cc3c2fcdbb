//! Images of tool results, as stored and as sent.

use insta::assert_snapshot;
use oa_types::wire::{CallIds, MessageFormat, ResultImages, images_apart, write_message};
use oa_types::{ContentBlock, ImageBlock, Message, MessageRole, ToolResultBlock, ToolUseBlock};
use proptest::prelude::*;
use serde_json::{Value, json};

fn image(name: &str) -> ImageBlock {
    ImageBlock::from_url(format!("https://host/{name}.png")).expect("it is an address")
}

fn result(id: &str, content: Value, images: &[&str]) -> Message {
    let mut result = ToolResultBlock::new(id, content);
    result.images.extend(images.iter().map(|name| image(name)));
    Message::tool(result)
}

fn wire(messages: &[Message], format: &MessageFormat) -> String {
    let mut out = vec![b'['];
    for message in messages {
        write_message(message, format, &mut out);
    }
    out.push(b']');
    String::from_utf8(out).expect("JSON is UTF-8")
}

fn inline() -> MessageFormat {
    let mut format = MessageFormat::default();
    format.result_images = ResultImages::Inline;
    format
}

#[test]
fn images_are_stored_with_their_result() {
    let message = result("c1", json!("Here."), &["a"]);
    let stored = serde_json::to_string(&message).unwrap();
    assert_snapshot!(stored, @r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c1","content":"Here.","images":[{"url":"https://host/a.png"}]}]}"#);
    assert_eq!(serde_json::from_str::<Message>(&stored).unwrap(), message);
    let bare = serde_json::to_string(&result("c1", json!("Here."), &[])).unwrap();
    assert!(!bare.contains("images"), "{bare}");
}

#[test]
fn inline_images_are_parts_of_the_result() {
    let text = result("c1", json!("Here."), &["a", "b"]);
    assert_snapshot!(wire(&[text], &inline()), @r#"[{"role":"tool","content":[{"type":"text","text":"Here."},{"type":"image_url","image_url":{"url":"https://host/a.png"}},{"type":"image_url","image_url":{"url":"https://host/b.png"}}],"tool_call_id":"c1"}]"#);
    let blank = result("c1", json!(""), &["a"]);
    assert_snapshot!(wire(&[blank], &inline()), @r#"[{"role":"tool","content":[{"type":"image_url","image_url":{"url":"https://host/a.png"}}],"tool_call_id":"c1"}]"#);
    let none = result("c1", json!("Here."), &[]);
    assert_snapshot!(wire(&[none], &inline()), @r#"[{"role":"tool","content":"Here.","tool_call_id":"c1"}]"#);
}

#[test]
fn images_follow_the_last_result() {
    let call = |id: &str| ContentBlock::from(ToolUseBlock::new(id, "look", json!({})));
    let history = [
        Message::assistant(vec![call("c1"), call("c2"), call("c3")]),
        result("c1", json!({ "x": 1 }), &["a", "b"]),
        result("c2", json!("Nothing."), &[]),
        result("c3", json!(""), &["c"]),
        Message::user("And now?"),
    ];
    let mut format = MessageFormat::default();
    format.call_ids = CallIds::NineLetters;
    let (sent, revisions) = images_apart(&history, &[1, 2, 3, 4, 5], &format).unwrap();
    let texts: Vec<_> = sent[1..4]
        .iter()
        .map(|message| match &message.content[..] {
            [ContentBlock::ToolResult(result)] if result.images.is_empty() => &result.content,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(*texts[0], json!("{\"x\":1}\n\n(2 images follow)"));
    assert_eq!((texts[1], texts[2]), (&json!("Nothing."), &json!("1 image follows")));
    // Named as the server knows the calls.
    let written = wire(&sent[4..5], &format);
    assert_snapshot!(written, @r#"[{"role":"user","content":[{"type":"text","text":"Images of the result of look (JpvYWNe2Z):"},{"type":"image_url","image_url":{"url":"https://host/a.png"}},{"type":"image_url","image_url":{"url":"https://host/b.png"}},{"type":"text","text":"Images of the result of look (EwjrR4BFa):"},{"type":"image_url","image_url":{"url":"https://host/c.png"}}]}]"#);
    assert_eq!((&revisions[..4], revisions[5], sent.len()), (&[1, 2, 3, 4][..], 5, 6));
    assert!(images_apart(&history[2..3], &[3], &format).is_none());
}

#[test]
fn a_tool_message_with_images_is_read() {
    let json = r#"{"role": "tool", "tool_call_id": "c1", "content": [
        {"type": "text", "text": "Here."}, {"type": "image", "url": "https://host/a.png"}]}"#;
    let message: Message = serde_json::from_str(json).unwrap();
    assert_eq!(message, result("c1", json!("Here."), &["a"]));
}

fn histories() -> impl Strategy<Value = Vec<(u64, Message)>> {
    let message = prop_oneof![
        Just(Message::user("Go.")),
        Just(Message::assistant(vec![])),
        (0..4_usize, "[a-c]{0,2}")
            .prop_map(|(images, id)| { result(&id, json!(id), &["x", "y", "z"][..images.min(3)]) }),
    ];
    prop::collection::vec((0..50_u64, message), 0..12)
}

proptest! {
    #[test]
    fn every_image_is_sent_once(history in histories()) {
        let (revisions, history): (Vec<_>, Vec<_>) = history.into_iter().unzip();
        let images = |messages: &[Message]| -> Vec<ImageBlock> {
            let of = |block: &ContentBlock| match block {
                ContentBlock::Image(image) => vec![image.clone()],
                ContentBlock::ToolResult(result) => result.images.clone(),
                _ => vec![],
            };
            messages.iter().flat_map(|message| message.content.iter().flat_map(of)).collect()
        };
        let Some((sent, numbers)) = images_apart(&history, &revisions, &MessageFormat::default())
        else {
            prop_assert!(images(&history).is_empty());
            return Ok(());
        };
        prop_assert_eq!(sent.len(), numbers.len());
        prop_assert_eq!(images(&sent), images(&history));
        // Without the added messages it is the same conversation, with numbers as they were.
        let added = |number: &u64| *number >= 1 << 63;
        let left: Vec<_> = numbers.iter().zip(&sent).filter(|(number, _)| !added(number)).collect();
        prop_assert_eq!(left.len(), history.len());
        for ((number, message), (revision, old)) in left.iter().zip(revisions.iter().zip(&history)) {
            prop_assert_eq!(*number, revision);
            prop_assert_eq!(message.role, old.role);
        }
        for (place, number) in numbers.iter().enumerate().filter(|(_, number)| added(number)) {
            prop_assert_eq!(sent[place].role, MessageRole::User, "{}", number);
            prop_assert_eq!(sent[place - 1].role, MessageRole::Tool);
            prop_assert!(sent.get(place + 1).is_none_or(|next| next.role != MessageRole::Tool));
        }
    }
}
