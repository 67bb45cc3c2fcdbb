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
