use super::*;

fn input(mut body: Value) -> RunInput {
    body["threadId"] = "t".into();
    body["runId"] = "r".into();
    read(body.to_string().as_bytes(), &ServeLimits::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn front_end_result_continues_the_thread() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "pick", "arguments": "{\"a\":"}});
    let input = input(json!({"messages": [
        {"id": "1", "role": "user", "content": "hi"},
        {"id": "2", "role": "reasoning", "content": "hm"},
        {"id": "3", "role": "assistant", "toolCalls": [call]},
        {"id": "4", "role": "tool", "toolCallId": "c", "content": "teal"},
    ]}));
    assert!(input.turn.prompt.is_none());
    assert_eq!(input.turn.history.len(), 3);
    assert_eq!(input.turn.answers.results[0].content, "teal");
}

#[test]
fn only_approved_true_approves() {
    let answer = |status: &str, payload: Value| json!({"interruptId": "i", "status": status, "payload": payload});
    let input = input(json!({
        "messages": [{"id": "1", "role": "user", "content": "hi"}],
        "resume": [
            answer("resolved", json!({"approved": true})), answer("cancelled", json!({"approved": true})),
            answer("resolved", json!({"approved": "yes"})), answer("resolved", json!(true)),
        ],
    }));
    let yes: Vec<_> =
        input.turn.answers.approvals.iter().map(|answer| answer.is_approved).collect();
    assert_eq!(yes, [true, false, false, false]);
}

#[test]
fn context_items_reach_the_model() {
    let input = input(json!({
        "messages": [{"id": "1", "role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "context": [{"description": "time", "value": "noon"}],
    }));
    assert_eq!(input.turn.history[0].text(), "time: noon");
    assert_eq!(input.turn.prompt.expect("a prompt").text(), "hi");
}

#[test]
fn nameless_declarations_are_refused() {
    for (member, item) in
        [("resume", json!({"status": "resolved"})), ("tools", json!({"parameters": {}}))]
    {
        let prompt = json!({"id": "1", "role": "user", "content": "hi"});
        let body = json!({"threadId": "t", "runId": "r", "messages": [prompt], member: [item]});
        let refused = read(body.to_string().as_bytes(), &ServeLimits::default());
        let message = refused.err().map(|refusal| refusal.message).unwrap_or_default();
        assert!(message.contains("must have"), "{member}: {message}");
    }
}

#[test]
fn audio_is_sent_if_its_data_is_there() {
    let source =
        |kind: &str, value: &str| json!({"type": kind, "value": value, "mimeType": "audio/mpeg"});
    for part in [
        json!({"type": "audio", "source": source("data", "aGk=")}),
        json!({"type": "audio", "source": source("url", "data:audio/mp3;base64,aGk=")}),
        json!({"type": "binary", "mimeType": "audio/mpeg", "data": "aGk="}),
    ] {
        let message = json!({"id": "1", "role": "user", "content": [part]});
        let prompt = input(json!({"messages": [message]})).turn.prompt.expect("a prompt");
        let audio = prompt.content[0].as_audio().expect("it is audio");
        assert_eq!((&*audio.data, &*audio.format), ("aGk=", "mp3"));
    }
}

/// A model server takes the URL of any other file for that of a broken image.
#[test]
fn only_images_are_sent_as_images() {
    let source = |kind: &str, value: &str, mime: Option<&str>| {
        let mut source = json!({"type": kind, "value": value});
        if let Some(mime) = mime {
            source["mimeType"] = mime.into();
        }
        source
    };
    let (image, pdf) = ("https://a.example/a.png", "https://a.example/a.pdf");
    for (part, expected) in [
        (json!({"type": "image", "source": source("url", image, None)}), Ok(image)),
        (json!({"type": "image", "source": source("url", image, Some("image/png"))}), Ok(image)),
        (
            json!({"type": "image", "source": source("data", "aGk=", Some("image/png"))}),
            Ok("data:image/png;base64,aGk="),
        ),
        (json!({"type": "binary", "mimeType": "image/png", "url": image}), Ok(image)),
        (json!({"type": "document", "source": source("url", pdf, None)}), Err("document")),
        (
            json!({"type": "document", "source": source("url", pdf, Some("application/pdf"))}),
            Err("application/pdf"),
        ),
        (json!({"type": "audio", "source": source("url", pdf, None)}), Err("audio")),
        (
            json!({"type": "video", "source": source("url", pdf, Some("video/mp4"))}),
            Err("video/mp4"),
        ),
        (
            json!({"type": "binary", "mimeType": "application/pdf", "url": pdf}),
            Err("application/pdf"),
        ),
        (json!({"type": "image", "source": source("file", "file-1", None)}), Err("image")),
    ] {
        let message = json!({"id": "1", "role": "user", "content": [part]});
        let prompt = input(json!({"messages": [message]})).turn.prompt.expect("a prompt");
        match (&prompt.content[0], expected) {
            (ContentBlock::Image(sent), Ok(url)) => assert_eq!(sent.url, url),
            (ContentBlock::Text(note), Err(kind)) => {
                assert_eq!(
                    note.text,
                    format!("[a file ({kind}) was attached, and cannot be shown]\n")
                );
            }
            (sent, _) => panic!("{part}: {sent:?}"),
        }
    }
}

#[test]
fn results_note_what_is_not_text() {
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "draw", "arguments": "{}"}});
    let image = json!({"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}});
    let input = input(json!({"messages": [
        {"id": "1", "role": "user", "content": "hi"},
        {"id": "2", "role": "assistant", "toolCalls": [call]},
        {"id": "3", "role": "tool", "toolCallId": "c", "content": [image, {"type": "text", "text": "A hill."}]},
    ]}));
    let note = "[a file (image/png) was attached, and cannot be shown]\nA hill.";
    assert_eq!(input.turn.answers.results[0].content, note);
}
