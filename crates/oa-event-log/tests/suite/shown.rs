use oa_event_log::{ShownResult, activity, notice, state_change};
use oa_events::AgentEvent;
use oa_types::ToolResultBlock;
use serde_json::{Value, json};

fn event(event: Value) -> AgentEvent {
    serde_json::from_value(event).expect("it is an event")
}

fn tool_event(event: Value) -> AgentEvent {
    self::event(json!({"type": "tool", "data": event}))
}

#[test]
fn results_are_shown_as_text() {
    for (content, text, error) in [
        (json!("42 \"€\""), "42 \"€\"", "42 \"€\""),
        (json!(42), "42", "42"),
        (json!({"a": [1]}), r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        (json!({"error": "no"}), r#"{"error":"no"}"#, "no"),
        (json!({"error": "no", "reason": "why"}), r#"{"error":"no","reason":"why"}"#, "no: why"),
        (
            json!({"error": 5, "reason": "why"}),
            r#"{"error":5,"reason":"why"}"#,
            r#"{"error":5,"reason":"why"}"#,
        ),
    ] {
        let block = ToolResultBlock::new("call_1", content);
        let shown = ShownResult::of_block(&block);
        assert_eq!((&*shown.text(), &*shown.error()), (text, error));
    }
}

/// All other events of a turn are text, errors, or shown in other ways.
#[test]
fn notices_have_a_kind_and_a_message() {
    let how = json!({"results_cleared": 4});
    let problem = json!({"type": "late_name", "data": {"call": 0, "piece": "_now"}});
    let late = "tool call 0 got \"_now\" as a piece of its name after its arguments had begun";
    for (kind, data, message) in [
        ("answer_retry", json!("cite a source"), "cite a source"),
        (
            "context_shortened",
            json!({"before": 67, "after": 39, "how": how}),
            "from about 67 to 39 tokens",
        ),
        ("format_refused", json!("not supported"), "not supported"),
        ("problem", problem, late),
        (
            "prompt_cut",
            json!({"estimated": 90, "reported": 40}),
            "the server read 40 of about 90 tokens",
        ),
        ("steer_blocked", json!("no file names"), "no file names"),
        ("thinking_refused", json!("no thinking"), "no thinking"),
        ("tools_refused", json!("no tools"), "no tools"),
    ] {
        let event = event(json!({"type": kind, "data": data}));
        assert_eq!(notice(&event), Some((kind, message.to_owned())));
    }
    for event in [AgentEvent::AnswerStart, event(json!({"type": "turn_end", "data": "stop"}))] {
        assert_eq!(notice(&event), None);
    }
}

#[test]
fn tools_set_state_by_an_object() {
    let custom = |kind: &str, data: &Value| {
        tool_event(json!({"type": kind, "call_id": "c1", "tool_name": "f", "data": data}))
    };
    let data = json!({"count": 1});
    assert_eq!(state_change(&custom("tool_state", &data)), Some(&data));
    for other in
        [custom("tool_status2", &data), custom("tool_state", &json!([1])), AgentEvent::AnswerStart]
    {
        assert_eq!(state_change(&other), None, "{other:?}");
    }
}

#[test]
fn activity_is_of_a_call() {
    let about = |kind: &str, more: Value| {
        let mut event = json!({"type": kind, "call_id": "c1", "tool_name": "f"});
        event
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        let AgentEvent::Tool(event) = tool_event(event) else { panic!("not of a tool: {kind}") };
        activity(&event)
    };
    for (kind, data) in [
        ("progress", json!({"done": 1})),
        ("progress", json!({"done": 1, "total": 2, "message": "half"})),
        ("status", json!({"status": "reads"})),
    ] {
        let mut shown = json!({"toolCallId": "c1", "toolName": "f"});
        shown
            .as_object_mut()
            .expect("an object")
            .extend(data.as_object().expect("an object").clone());
        assert_eq!(about(&format!("tool_{kind}"), data), Some((kind, shown)));
    }
    let retry = json!({"attempt": 1, "error": "busy", "delay_us": 5});
    let shown = json!({"toolCallId": "c1", "toolName": "f", "attempt": 1, "error": "busy"});
    assert_eq!(about("tool_retry", retry), Some(("retry", shown)));
    assert_eq!(about("tool_log", json!({"level": "info", "message": "secret"})), None);
    assert_eq!(about("tool_call_start", json!({"input": {}})), None);
}
