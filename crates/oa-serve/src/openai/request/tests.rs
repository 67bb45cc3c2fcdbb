use oa_types::ImageDetail;

use super::*;

fn completion(messages: Value) -> Completion {
    let body = json!({"model": "agent", "messages": messages});
    read(body.to_string().as_bytes(), &ServeLimits::default(), &RandomState::new())
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn think_tags_are_removed() {
    for (text, expected) in [
        ("<think>hm</think>\n\nHello", "Hello"),
        (" <think>a</think> <think>b</think>Hi", "Hi"),
        ("<think>cut off", ""),
        ("no <think>tag</think> in front", "no <think>tag</think> in front"),
        ("\n\n<think>a</think>\n\nHi", "Hi"),
        ("\n Hi\n", "\n Hi\n"),
        (
            "<think>one</think>Let me look.\n\n<think>two</think>It is 5.\n<think>open",
            "Let me look.\n\nIt is 5.\n<think>open",
        ),
        ("```\n<think>code</think>\n```\n<think>a</think>Hi", "```\n<think>code</think>\n```\nHi"),
    ] {
        assert_eq!(without_thinking(text), expected);
    }
}

#[test]
fn system_message_may_follow_the_prompt() {
    let completion = completion(json!([
        {"role": "user", "content": "hi"}, {"role": "system", "content": "Be brief."},
    ]));
    assert_eq!(completion.turn.prompt.expect("a prompt").text(), "hi");
    assert_eq!(completion.turn.history[0].text(), "Be brief.");
}

/// The hash of the messages before the answered calls is the one that the request before had.
#[test]
fn results_match_the_request_they_answer() {
    let hasher = RandomState::new();
    let read = |messages: Value| {
        let body = json!({"model": "agent", "messages": messages});
        read(body.to_string().as_bytes(), &ServeLimits::default(), &hasher).expect("it is valid")
    };
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "pick", "arguments": "{}"}});
    let user = json!({"role": "user", "content": "hi"});
    let first = read(json!([user]));
    let next = read(json!([
        user,
        {"role": "assistant", "content": null, "tool_calls": [call("b"), call("a")]},
        {"role": "tool", "tool_call_id": "b", "content": "1"},
        {"role": "tool", "tool_call_id": "a", "content": "2"},
    ]));
    let ids = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(next.answered, Some((first.asked, ids)));
}

#[test]
fn unreadable_parts_leave_a_note() {
    let completion = completion(json!([{"role": "user", "content": [
        {"type": "file", "file": {"filename": "plan.pdf", "file_data": "x"}},
        {"type": "image_url", "image_url": {"url": "ftp://x"}},
        {"type": "audio_url", "audio_url": {"url": "https://a.example/a.wav"}},
        {"type": "input_audio", "input_audio": {"data": "?", "format": "wav"}},
        {"type": "text", "text": "Read it."},
    ]}]));
    let expected = "[plan.pdf (file) was attached, and cannot be shown]\n\
                    [a file (image_url) was attached, and cannot be shown]\n\
                    [a file (audio_url) was attached, and cannot be shown]\n\
                    [a file (input_audio) was attached, and cannot be shown]\nRead it.";
    assert_eq!(completion.turn.prompt.expect("a prompt").text(), expected);
}

#[test]
fn audio_is_read_from_each_kind_of_part() {
    let url = "data:audio/wav;base64,aGk=";
    let completion = completion(json!([{"role": "user", "content": [
        {"type": "text", "text": "What is said?"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": url, "format": "wav"}},
        {"type": "audio_url", "audio_url": {"url": url}},
        {"type": "file", "file": {"filename": "a.wav", "file_data": url}},
    ]}]));
    let prompt = completion.turn.prompt.expect("a prompt");
    let audio: Vec<_> = prompt.content.iter().filter_map(ContentBlock::as_audio).collect();
    assert_eq!(audio.len(), 4);
    assert!(audio.iter().all(|audio| (&*audio.data, &*audio.format) == ("aGk=", "wav")));
}

/// Servers count the tokens of an image by its resolution.
#[test]
fn images_keep_their_detail() {
    let completion = completion(json!([{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "https://a.example/1", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://a.example/2", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://a.example/3", "detail": "of a later version"}},
        {"type": "image_url", "image_url": {"url": "https://a.example/4", "detail": null}},
        {"type": "image_url", "image_url": "https://a.example/5"},
    ]}]));
    let prompt = completion.turn.prompt.expect("a prompt");
    let images = prompt.content.iter().map(|block| match block {
        ContentBlock::Image(image) => {
            (image.url.rsplit('/').next().unwrap_or_default(), image.detail)
        }
        other => panic!("{other:?}"),
    });
    let expected = [
        ("1", ImageDetail::Low),
        ("2", ImageDetail::High),
        ("3", ImageDetail::Auto),
        ("4", ImageDetail::Auto),
        ("5", ImageDetail::Auto),
    ];
    assert_eq!(images.collect::<Vec<_>>(), expected);
}

#[test]
fn results_note_what_is_not_text() {
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "draw", "arguments": "{}"}});
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}});
    let completion = completion(json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "A hill. "}, image]},
    ]));
    let note = "A hill. [a file (image_url) was attached, and cannot be shown]\n";
    assert_eq!(completion.turn.answers.results[0].content, note);
}

/// A function is called by its name, and two results of one are told apart by their places.
#[test]
fn calls_of_the_older_form_get_ids() {
    let function = json!({"name": "add", "arguments": "{\"to\": 1}"});
    let call = json!({"role": "assistant", "content": null, "function_call": function});
    let result = |text: &str| json!({"role": "function", "name": "add", "content": text});
    let user = json!({"role": "user", "content": "hi"});
    let completion = completion(json!([user, call, result("2"), call, result("3")]));
    let blocks = completion.turn.history.iter().flat_map(|message| &message.content);
    let ids: Vec<_> = blocks
        .filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(format!("{} {}", call.id, call.input)),
            ContentBlock::ToolResult(result) => {
                Some(format!("{} {}", result.tool_use_id, result.content))
            }
            _ => None,
        })
        .collect();
    let expected =
        ["function_1 {\"to\":1}", "function_1 \"2\"", "function_2 {\"to\":1}", "function_2 \"3\""];
    assert_eq!(ids, expected);
}

/// Without the answer, the model would answer the earlier prompt.
#[test]
fn answers_that_refuse_are_read() {
    let parts = json!([{"type": "refusal", "refusal": "I cannot."}]);
    for refused in [json!({"content": null, "refusal": "I cannot."}), json!({"content": parts})] {
        let mut answer = refused;
        answer["role"] = "assistant".into();
        let user = json!({"role": "user", "content": "hi"});
        let completion = completion(json!([user, answer, user]));
        assert_eq!(completion.turn.history.last().map(Message::text).as_deref(), Some("I cannot."));
    }
}
