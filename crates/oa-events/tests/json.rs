//! Events as JSON: nothing is lost, and the schema in the repository describes them.

use std::sync::Arc;

use oa_events::{AgentEvent, TurnMetadata};
use oa_executor::{ExecutionResult, ToolCustom, ToolEvent};
use oa_tools::check_arguments;
use oa_types::{
    AssistantMessage, ContentBlock, Cost, Extra, ImageBlock, ImageDetail, Message, MessageRole,
    TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, ToolUseError, Usage,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const EXAMPLES: &str = include_str!("../schema/agent-event.md");

fn schema() -> Value {
    serde_json::from_str(include_str!("../schema/agent-event.json")).expect("it is JSON")
}

fn examples() -> Vec<Value> {
    let lines = EXAMPLES.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).expect("an example is JSON")).collect()
}

#[test]
fn examples_are_events_and_fit_the_schema() {
    let schema = schema();
    for example in examples() {
        let event: AgentEvent = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&event).unwrap(), example);
        check_arguments(&schema, example).unwrap();
    }
}

#[test]
fn mutated_examples_do_not_fit_the_schema() {
    let schema = schema();
    for example in examples() {
        let mut mutants = Vec::new();
        let mut mutant = |change: &dyn Fn(&mut Map<String, Value>)| {
            let mut mutant = example.clone();
            change(mutant.as_object_mut().expect("an event is an object"));
            mutants.push(mutant);
        };
        mutant(&|event| drop(event.insert("type".to_owned(), json!("another"))));
        mutant(&|event| drop(event.remove("type")));
        mutant(&|event| drop(event.insert("more".to_owned(), json!(1))));
        mutant(&|event| drop(event.insert("data".to_owned(), json!(5))));
        if example["data"].is_object() {
            mutant(&|event| event["data"]["more"] = json!(1));
        }
        if example.get("data").is_some() {
            mutant(&|event| drop(event.remove("data")));
        }
        for mutant in mutants {
            assert!(check_arguments(&schema, mutant.clone()).is_err(), "{mutant}");
        }
    }
}

/// A block of each type, with all members.
fn full_blocks() -> Vec<ContentBlock> {
    let mut image = ImageBlock::from_url("https://host/a.png").expect("it is an address");
    image.detail = ImageDetail::High;
    let mut call = ToolUseBlock::new("1", "photo", json!({}));
    call.extra = full_extra();
    let mut error = ToolUseError::new("cut off", "{");
    (error.id, error.name) = (Some("1".to_owned()), Some("photo".to_owned()));
    let mut result = ToolResultBlock::new("1", json!("1 image"));
    (result.is_error, result.name) = (true, Some("photo".into()));
    result.images.push(image.clone());
    vec![
        TextBlock::new("a").into(),
        ThinkingBlock::new("b").into(),
        image.into(),
        call.into(),
        error.into(),
        result.into(),
    ]
}

fn full_extra() -> Extra {
    serde_json::from_value(json!({ "signature": "s" })).expect("these are members")
}

/// The schema describes the events that code makes, not only those made from the schema.
#[test]
fn events_with_all_members_fit_the_schema() {
    let mut answer = AssistantMessage::new(full_blocks());
    let mut usage = Usage::default();
    usage.prompt_tokens = Some(1);
    usage.completion_tokens = Some(1);
    usage.total_tokens = Some(2);
    usage.cached_tokens = Some(1);
    usage.reasoning_tokens = Some(1);
    usage.time_to_first_token = Some(std::time::Duration::from_millis(1));
    usage.generation_time = Some(std::time::Duration::from_millis(1));
    usage.cost = Some(Cost::new(0.5).expect("it is an amount"));
    (answer.usage, answer.extra) = (Some(usage), full_extra());
    (answer.model, answer.id) = (Some("m".to_owned()), Some("i".to_owned()));
    let mut message = Message::new(MessageRole::Assistant, full_blocks());
    (message.interrupted, message.extra) = (true, full_extra());
    let complete = json!({
        "call_id": "1",
        "tool_name": "photo",
        "input": {},
        "outcome": "ok",
        "result": "1 image",
        "images": [{ "url": "https://host/a.png" }],
        "truncated": false,
        "duration_us": 12,
        "attempts": 1,
        "cached": false,
        "dropped_events": 0,
    });
    let result: ExecutionResult = serde_json::from_value(complete.clone()).unwrap();
    assert_eq!(result.images.len(), 1);
    let end = json!({
        "type": "tools_end",
        "tool_messages": [message],
        "execution_results": [complete],
    });
    let mut events: Vec<AgentEvent> = full_blocks().into_iter().map(AgentEvent::Block).collect();
    events.push(AgentEvent::AnswerEnd(Arc::new(answer)));
    events.push(AgentEvent::Steered(message));
    events.push(AgentEvent::Tool(ToolEvent::CallComplete(Arc::new(result))));
    events.push(AgentEvent::Tool(serde_json::from_value(end).unwrap()));
    for name in ["", "a b", "log", "\u{e4}"] {
        let custom = ToolCustom::new("1", "photo", name, json!(1));
        events.push(AgentEvent::Tool(ToolEvent::Custom(Box::new(custom))));
    }
    let schema = schema();
    for event in events {
        let value = serde_json::to_value(&event).unwrap();
        let checked = check_arguments(&schema, value.clone());
        assert!(checked.is_ok(), "{checked:?}: {value}");
    }
}

/// Makes an instance of a schema by the numbers of a generator.
struct Maker<'a> {
    root: &'a Value,
    state: u64,
}

impl Maker<'_> {
    fn below(&mut self, count: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) as usize % count
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn instance(&mut self, schema: &Value, depth: usize) -> Value {
        if let Some(target) = schema["$ref"].as_str() {
            return match target.strip_prefix("#/$defs/") {
                Some(name) => self.instance(&self.root["$defs"][name], depth + 1),
                // Events of sub-agents of sub-agents: not without end.
                None if depth > 8 => json!({ "type": "answer_start" }),
                None => self.instance(self.root, depth + 1),
            };
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(list) = schema["enum"].as_array().or_else(|| schema["examples"].as_array()) {
            return self.pick(list);
        }
        if let Some(list) = schema["oneOf"].as_array() {
            let place = self.below(list.len());
            return self.instance(&list[place], depth);
        }
        match schema["type"].as_str() {
            Some("string") => match schema["pattern"].as_str() {
                Some(pattern) if pattern.starts_with("^tool_") => json!("tool_preview"),
                Some(_) => self.pick(&[json!("0.000000000001"), json!("123456.000000000001")]),
                None => self.pick(&[json!("a"), json!(""), json!("zwei\n\"\u{1F600}\0")]),
            },
            Some("integer") => {
                let most = schema["maximum"].as_u64().unwrap_or(usize::MAX as u64);
                self.pick(&[json!(0), json!(7), json!(most)])
            }
            Some("number") => self.pick(&[json!(0.0), json!(0.25), json!(12.5)]),
            Some("boolean") => self.pick(&[json!(true), json!(false)]),
            Some("array") => {
                let count = self.below(3);
                (0..count).map(|_| self.instance(&schema["items"], depth + 1)).collect()
            }
            Some("object") => self.object(schema, depth),
            _ => self.pick(&[
                json!(null),
                json!(-5),
                json!("text"),
                json!(1.5e300),
                json!([1, { "type": null }]),
                json!({ "b": { "a": [] }, "type": "x", "data": 18_446_744_073_709_551_615_u64 }),
            ]),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(properties) = schema["properties"].as_object() else {
            return self.pick(&[json!({ "signature": "s", "n": [1] }), json!({})]);
        };
        let mut members = Map::new();
        for (name, property) in properties {
            let required = schema["required"]
                .as_array()
                .is_some_and(|list| list.iter().any(|required| required == name));
            if required || self.below(2) == 0 {
                members.insert(name.clone(), self.instance(property, depth + 1));
            }
        }
        members.into()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Every instance of the schema is an event, what it is written as is one too, and it comes back as it was.
    #[test]
    fn events_round_trip_through_json(seed in any::<u64>(), variant in any::<prop::sample::Index>()) {
        let schema = schema();
        let variants = schema["oneOf"].as_array().expect("a list");
        let mut maker = Maker { root: &schema, state: seed };
        let instance = maker.instance(&variants[variant.index(variants.len())], 0);
        let event: AgentEvent = serde_json::from_value(instance.clone())
            .map_err(|error| TestCaseError::fail(format!("{error}: {instance}")))?;
        let written = serde_json::to_string(&event).unwrap();
        prop_assert_eq!(&serde_json::from_str::<AgentEvent>(&written).unwrap(), &event);
        let value: Value = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(value["type"].clone(), instance["type"].clone());
        check_arguments(&schema, value).unwrap();
    }
}

#[test]
fn the_metadata_of_turns_can_be_stored() {
    let mut metadata = TurnMetadata::default();
    metadata.turns = 2;
    metadata.total_usage = Usage::tokens(20, 5);
    let stored = serde_json::to_string(&metadata).unwrap();
    assert_eq!(serde_json::from_str::<TurnMetadata>(&stored).unwrap(), metadata);
    assert_eq!(serde_json::from_str::<TurnMetadata>("{}").unwrap(), TurnMetadata::default());
}
