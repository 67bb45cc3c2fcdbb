use std::collections::BTreeSet;

use super::AgentEvent;

/// A new variant does not compile until it has a type here, and then needs an example.
fn type_of(event: &AgentEvent) -> &'static str {
    match event {
        AgentEvent::AnswerEnd(_) => "answer_end",
        AgentEvent::AnswerRetry(_) => "answer_retry",
        AgentEvent::AnswerStart => "answer_start",
        AgentEvent::Block(_) => "block",
        AgentEvent::CacheMiss(_) => "cache_miss",
        AgentEvent::CallDenied(_) => "call_denied",
        AgentEvent::ContextShortened(_) => "context_shortened",
        AgentEvent::FormatRefused(_) => "format_refused",
        AgentEvent::Nested(_) => "nested",
        AgentEvent::Problem(_) => "problem",
        AgentEvent::PromptCut(_) => "prompt_cut",
        AgentEvent::PromptProgress(_) => "prompt_progress",
        AgentEvent::SteerBlocked(_) => "steer_blocked",
        AgentEvent::Steered(_) => "steered",
        AgentEvent::ThinkingRefused(_) => "thinking_refused",
        AgentEvent::Tool(_) => "tool",
        AgentEvent::ToolUseDelta(_) => "tool_use_delta",
        AgentEvent::ToolsRefused(_) => "tools_refused",
        AgentEvent::TurnEnd(_) => "turn_end",
    }
}

#[test]
fn every_type_has_an_example_and_a_schema() {
    let examples = include_str!("../../schema/agent-event.md").lines();
    let mut documented = BTreeSet::new();
    for line in examples.filter(|line| line.starts_with('{')) {
        let event: AgentEvent = serde_json::from_str(line).unwrap();
        assert!(line.starts_with(&format!("{{\"type\": \"{}\"", type_of(&event))));
        documented.insert(type_of(&event).to_owned());
    }
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../schema/agent-event.json")).unwrap();
    let types = schema["oneOf"].as_array().unwrap().iter();
    let types =
        types.map(|event| event["properties"]["type"]["const"].as_str().unwrap().to_owned());
    let defined: BTreeSet<String> = types.collect();
    assert_eq!(documented, defined);
    // As many as `type_of` has arms.
    assert_eq!(defined.len(), 19);
}
