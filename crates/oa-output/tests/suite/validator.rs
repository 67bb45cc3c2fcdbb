//! Answers that do not match.

use oa_output::{OutputOptions, OutputValidator, ResponseFormat, Validation};
use oa_types::{AssistantMessage, ContentBlock, TextBlock, ToolUseBlock, ToolUseError};
use serde_json::{Value, json};

/// A validator of calls of the tool `final_answer`, which accepts nothing.
fn strict() -> OutputValidator {
    let format = ResponseFormat::new("count", json!({ "type": "object" }));
    let mut options = OutputOptions::default();
    options.tool = Some("final_answer".into());
    options.runs_calls = true;
    OutputValidator::new(format, options, Box::new(|_: Value| Err("too small".into())))
}

fn broken(name: &str, id: Option<&str>) -> ContentBlock {
    let mut error = ToolUseError::new("cut off", "{");
    (error.name, error.id) = (Some(name.into()), id.map(str::to_owned));
    error.into()
}

fn call(id: &str) -> ContentBlock {
    ToolUseBlock::new(id, "final_answer", json!({ "n": 1 })).into()
}

/// The ids and errors of the broken calls.
fn errors(message: &AssistantMessage) -> Vec<(Option<&str>, &str)> {
    let blocks = message.content.iter();
    blocks
        .map(|block| match block {
            ContentBlock::ToolUseError(error) => (error.id.as_deref(), &*error.error),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn other_broken_calls_do_not_take_the_error() {
    let mut message = AssistantMessage::new(vec![broken("read", None), call("a"), call("b")]);
    assert_eq!(strict().validate(&mut message), Validation::Failed);
    assert_eq!(errors(&message), [(None, "cut off"), (Some("a"), "too small")]);
}

#[test]
fn an_error_goes_to_a_call_that_gets_a_result() {
    let content = vec![broken("final_answer", None), call("a"), call("b")];
    let mut message = AssistantMessage::new(content);
    assert_eq!(strict().validate(&mut message), Validation::Failed);
    assert_eq!(errors(&message), [(Some("a"), "cut off")]);
    // Without an id there is no result, so the model needs a message.
    let mut message = AssistantMessage::new(vec![broken("final_answer", None)]);
    let correction = strict().validate(&mut message).into_correction();
    assert_eq!(
        correction.as_deref(),
        Some("No answer yet: cut off. Call final_answer with the answer.")
    );
    assert_eq!(message.text(), "{");
}

/// Templates of some models end with `<think>`, so that only its end is in the text.
#[test]
fn drafts_before_the_end_of_thinking_are_skipped() {
    let schema =
        json!({ "type": "object", "properties": { "n": { "const": 4 } }, "required": ["n"] });
    let fits = |text: &str| {
        let format = ResponseFormat::new("count", schema.clone());
        let check = format.clone();
        let check = move |value| check.check(value).map(drop).map_err(|error| error.to_string());
        let mut validator = OutputValidator::new(format, OutputOptions::default(), Box::new(check));
        let mut message = AssistantMessage::new(vec![TextBlock::new(text).into()]);
        validator.validate(&mut message) == Validation::Unchanged
    };
    assert!(fits("Perhaps {\"n\": 3}? No.\n</think>\n\n{\"n\": 4}"));
    assert!(fits("The set {a, b} has two.</think>```json\n{\"n\": 4}\n```"));
    assert!(fits("{\"n\": 4, \"tag\": \"</think>\"}"));
    assert!(!fits("{\"n\": 4}</think>{\"n\": 3}"));
    assert!(!fits("{\"n\": 3} or {\"n\": 4}"));
    assert!(!fits("{\"n\": 3}</think>{\"n\": 4} or {\"n\": 4}"));
}
