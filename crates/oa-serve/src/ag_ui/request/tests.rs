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
