use super::*;

fn turn(body: Value) -> Result<ChatTurn, Refusal> {
    read(body.to_string().as_bytes(), &ServeLimits::default())
}

fn user(text: &str) -> Value {
    json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]})
}

/// Each step of an assistant message becomes an answer and the results of its calls.
#[test]
fn steps_become_separate_messages() {
    let call = |id: &str, state: &str| json!({"type": "tool-add", "toolCallId": id, "state": state, "input": {"a": 1}, "output": 2});
    let parts = json!([
        {"type": "step-start"}, {"type": "text", "text": "First."}, call("1", "output-available"),
        {"type": "data-mood", "data": {}}, call("2", "input-available"),
        {"type": "step-start"}, {"type": "text", "text": "Done."}, {"type": "from-later-versions"},
    ]);
    let message = json!({"id": "a", "role": "assistant", "parts": parts});
    let ChatTurn { turn, .. } =
        turn(json!({"id": "x", "messages": [user("hi"), message, user("more")]}))
            .expect("it is valid");
    let roles: Vec<_> = turn.history.iter().map(|message| message.role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(turn.history[1].content.len(), 3);
    assert_eq!(turn.prompt.expect("a prompt").text(), "more");
    assert!(turn.answers.approvals.is_empty() && turn.answers.results.is_empty());
}

#[test]
fn only_approved_true_approves() {
    for (approved, expected) in
        [(json!(true), true), (json!("true"), false), (json!(1), false), (json!(null), false)]
    {
        let part = json!({
            "type": "tool-rm", "toolCallId": "1", "state": "approval-responded", "input": {},
            "approval": {"id": "q", "approved": approved},
        });
        let message = json!({"id": "a", "role": "assistant", "parts": [part]});
        let chat =
            turn(json!({"id": "x", "messages": [user("hi"), message]})).expect("it is valid");
        assert_eq!(chat.turn.answers.approvals[0].is_approved, expected);
        assert_eq!(chat.denied.is_empty(), expected);
        assert_eq!(chat.continues.as_deref(), Some("a"));
    }
}

#[test]
fn requests_are_bounded() {
    let limits = ServeLimits { messages: 2, parts: 2, ..ServeLimits::default() };
    let read = |body: Value| {
        read(body.to_string().as_bytes(), &limits).map_err(|error| error.status.as_u16())
    };
    let many = json!({"id": "x", "messages": [user("a"), user("b"), user("c")]});
    assert_eq!(read(many).err(), Some(413));
    let part = json!({"type": "text", "text": "a"});
    let long = json!({"id": "x", "messages": [{"role": "user", "parts": [part, part, part]}]});
    assert_eq!(read(long).err(), Some(413));
    assert_eq!(read(json!({"id": "x".repeat(300), "messages": [user("a")]})).err(), Some(400));
}

#[test]
fn recordings_are_sent_as_audio() {
    let part = json!({"type": "file", "mediaType": "audio/webm", "url": "data:audio/webm;codecs=opus;base64,aGk="});
    let message = json!({"id": "1", "role": "user", "parts": [part]});
    let turn = turn(json!({"id": "chat", "messages": [message]})).expect("it is valid");
    let prompt = turn.turn.prompt.expect("a prompt");
    let audio = prompt.content[0].as_audio().expect("it is audio");
    assert_eq!((&*audio.data, &*audio.format), ("aGk=", "webm"));
}
