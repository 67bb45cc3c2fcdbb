//! Answers of a model: what the validator does with each, what history keeps of it, and the error if it was the last.

use std::fmt::Write;

use insta::assert_snapshot;
use oa_output::{
    ErrorKind, FormatFallback, OutputOptions, OutputValidator, ResponseFormat, Validation,
};
use oa_types::{
    AssistantMessage, ContentBlock, FinishReason, TextBlock, ThinkingBlock, ToolUseBlock,
    ToolUseError,
};
use serde_json::{Value, json};

/// A validator of `{"n": integer}`.
fn validator(options: OutputOptions) -> OutputValidator {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let format = ResponseFormat::new("count", schema);
    let check = format.clone();
    let check = move |value| check.check(value).map(drop).map_err(|error| error.to_string());
    OutputValidator::new(format, options, Box::new(check))
}

/// Options for an answer that is text.
fn as_text() -> OutputOptions {
    OutputOptions::default()
}

/// Options for an answer that is a call of `final_answer`.
fn as_call(runs_calls: bool) -> OutputOptions {
    let mut options = OutputOptions::default();
    (options.tool, options.runs_calls) = (Some("final_answer".into()), runs_calls);
    options
}

fn text(text: &str) -> ContentBlock {
    TextBlock::new(text).into()
}

fn thinking() -> ContentBlock {
    ThinkingBlock::new("Hm.").into()
}

/// A call of the output tool.
fn own(id: &str, input: Value) -> ContentBlock {
    ToolUseBlock::new(id, "final_answer", input).into()
}

/// A call of another tool.
fn read() -> ContentBlock {
    ToolUseBlock::new("r", "read", json!({})).into()
}

/// A call whose arguments are broken.
fn broken(id: &str, name: &str) -> ContentBlock {
    let mut error = ToolUseError::new("incomplete JSON", "{\"n\":");
    (error.id, error.name) = (Some(id.into()), Some(name.into()));
    error.into()
}

type Case<'a> = (&'a str, Vec<ContentBlock>, FinishReason);

fn stop<'a>(name: &'a str, content: Vec<ContentBlock>) -> Case<'a> {
    (name, content, FinishReason::Stop)
}

/// Validates each answer as the only one of its turn.
fn each(options: &OutputOptions, cases: Vec<Case<'_>>) -> String {
    let each = cases.into_iter().map(|case| in_turn(options, vec![case]));
    each.collect::<Vec<_>>().join("\n")
}

/// Validates answers of one turn, which ends after the last. After each: the attempts so far, what is next, and what
/// history keeps. At the end: the error, as if no answer had been valid.
fn in_turn(options: &OutputOptions, cases: Vec<Case<'_>>) -> String {
    let mut validator = validator(options.clone());
    let format = FormatFallback::instructions_for(validator.format().schema());
    let mut told = String::new();
    let mut reason = FinishReason::Stop;
    for (name, content, finish_reason) in cases {
        let mut message = AssistantMessage::new(content);
        message.finish_reason = finish_reason.clone();
        let next = match validator.validate(&mut message) {
            Validation::Unchanged => "go on".to_owned(),
            Validation::Failed => "the call failed".to_owned(),
            Validation::Correct(words) => format!("say: {}", words.replace(&format, "(FORMAT)")),
        };
        let tries = validator.tries();
        writeln!(told, "{name}, attempts {tries}: {next}").expect("memory");
        for block in &message.content {
            writeln!(told, "  {}", line(block)).expect("memory");
        }
        reason = finish_reason;
    }
    writeln!(told, "  {}", error(&mut validator, &reason)).expect("memory");
    told
}

/// A block of history in one line.
fn line(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(block) => format!("text {}", block.text),
        ContentBlock::Thinking(_) => "thinking".to_owned(),
        ContentBlock::ToolUse(call) => format!("call {} of {}", call.id, call.name),
        ContentBlock::ToolUseError(call) => {
            let (id, name) = (call.id.as_deref().unwrap_or("?"), call.name.as_deref());
            let name = name.unwrap_or("?");
            format!("failed call {id} of {name}: {} ({})", call.error, call.raw_data)
        }
        other => format!("{other:?}"),
    }
}

fn error(validator: &mut OutputValidator, reason: &FinishReason) -> String {
    let error = validator.error(reason);
    let quoted = error.model_output.as_deref().unwrap_or("nothing");
    let kind = if error.kind == ErrorKind::Interrupted { " (interrupted)" } else { "" };
    format!("error{kind}: {error}; quotes {quoted}")
}

/// A valid answer stays as it is; one that is a call becomes text, because no result follows it.
#[test]
fn valid_answers_become_text() {
    let valid = json!({ "n": 3 });
    let cases = [
        (as_text(), stop("text", vec![thinking(), text("{\"n\": 3}")])),
        (as_text(), stop("in prose", vec![text("It is {\"n\": 3}.")])),
        (as_text(), ("before the limit", vec![text("{\"n\": 3}")], FinishReason::Length)),
        (as_call(true), stop("call", vec![thinking(), text("It is."), own("a", valid.clone())])),
        (as_call(true), stop("two calls", vec![own("a", valid.clone()), own("b", valid.clone())])),
        (as_call(true), stop("text for a call", vec![text("{\"n\": 3}")])),
        (as_call(false), stop("manual call", vec![own("a", valid), text("It is.")])),
    ];
    let mut told = String::new();
    for (options, (name, content, finish_reason)) in cases {
        let mut message = AssistantMessage::new(content);
        message.finish_reason = finish_reason;
        assert_eq!(validator(options).validate(&mut message), Validation::Unchanged, "{name}");
        let blocks: Vec<_> = message.content.iter().map(line).collect();
        writeln!(told, "{name}: {}", blocks.join(", ")).unwrap();
    }
    assert_snapshot!(told, @r#"
    text: thinking, text {"n": 3}
    in prose: text It is {"n": 3}.
    before the limit: text {"n": 3}
    call: thinking, text {"n":3}
    two calls: text {"n":3}
    text for a call: text {"n": 3}
    manual call: text {"n":3}
    "#);
}

#[test]
fn invalid_answers_as_text() {
    let cases = vec![
        stop("invalid", vec![text("{\"n\": \"three\"}")]),
        stop("prose", vec![text("Three.")]),
        stop("two objects", vec![text("{\"n\": 3} or {\"n\": 4}")]),
        stop("incomplete", vec![text("{\"n\":")]),
        stop("empty", vec![]),
        ("cut off", vec![text("{\"n\": 3")], FinishReason::Length),
        ("refused", vec![text("I cannot.")], FinishReason::Refusal),
        ("filtered", vec![], FinishReason::ContentFilter),
        stop("another tool", vec![text("{\"n\": 3}"), read()]),
        stop("another tool, broken", vec![text("{\"n\": 3}"), broken("r", "read")]),
    ];
    assert_snapshot!(each(&as_text(), cases), @r#"
    invalid, attempts 1: say: No answer yet: `n`: expected integer, found string "three". (FORMAT)
      text {"n": "three"}
      error: no valid answer after 1 attempt: `n`: expected integer, found string "three"; quotes {"n": "three"}

    prose, attempts 1: say: No answer yet: there is no JSON object in the answer. (FORMAT)
      text Three.
      error: no valid answer after 1 attempt: there is no JSON object in the answer; quotes Three.

    two objects, attempts 1: say: No answer yet: there is another `{` after the JSON object. (FORMAT)
      text {"n": 3} or {"n": 4}
      error: no valid answer after 1 attempt: there is another `{` after the JSON object; quotes {"n": 3} or {"n": 4}

    incomplete, attempts 1: say: No answer yet: this is not JSON: `n`: the text ends before the value is complete. (FORMAT)
      text {"n":
      error: no valid answer after 1 attempt: this is not JSON: `n`: the text ends before the value is complete; quotes {"n":

    empty, attempts 1: say: No answer yet: there is no JSON object in the answer. (FORMAT)
      error: no valid answer after 1 attempt: there is no JSON object in the answer; quotes nothing

    cut off, attempts 1: say: No answer yet: the answer was too long and was cut off before its end; be brief: write short texts and short lists. (FORMAT)
      text {"n": 3
      error: the answer was cut off by the token limit: bound the strings and lists in its schema (maxLength, maxItems), or raise max_tokens; quotes {"n": 3

    refused, attempts 1: go on
      text I cannot.
      error: the model refused to answer; quotes I cannot.

    filtered, attempts 1: go on
      error: the model refused to answer; quotes nothing

    another tool, attempts 0: go on
      text {"n": 3}
      call r of read
      error: the model called tools, which do not run automatically here: answer its calls and continue, or set auto_execute_tools; quotes {"n": 3}

    another tool, broken, attempts 1: go on
      text {"n": 3}
      failed call r of read: incomplete JSON ({"n":)
      error: the turn ended before a valid answer: stop; quotes nothing
    "#);
}

fn invalid_calls() -> Vec<Case<'static>> {
    vec![
        stop("prose", vec![text("Three.")]),
        stop("invalid", vec![thinking(), text("Here."), own("a", json!({"n": "three"}))]),
        stop("broken", vec![thinking(), broken("a", "final_answer")]),
        ("cut off", vec![broken("a", "final_answer")], FinishReason::Length),
        stop("two answers", vec![own("a", json!({"n": 3})), own("b", json!({"n": 4}))]),
        stop("one of two broken", vec![own("a", json!({"n": 3})), broken("b", "final_answer")]),
        stop("beside another tool", vec![read(), own("a", json!({"n": 3})), text("Done.")]),
        stop("beside another tool, broken", vec![broken("r", "read"), own("a", json!({"n": 3}))]),
    ]
}

/// The turn runs calls, so that the model reads errors as results of its calls.
#[test]
fn invalid_answers_as_calls() {
    assert_snapshot!(each(&as_call(true), invalid_calls()), @r#"
    prose, attempts 1: say: No answer yet: there is no JSON object in the answer. Call final_answer with the answer.
      text Three.
      error: no valid answer after 1 attempt: there is no JSON object in the answer; quotes Three.

    invalid, attempts 1: the call failed
      thinking
      text Here.
      failed call a of final_answer: `n`: expected integer, found string "three" ({"n":"three"})
      error: no valid answer after 1 attempt: `n`: expected integer, found string "three"; quotes {"n":"three"}

    broken, attempts 1: the call failed
      thinking
      failed call a of final_answer: incomplete JSON ({"n":)
      error: no valid answer after 1 attempt: incomplete JSON; quotes {"n":

    cut off, attempts 1: the call failed
      failed call a of final_answer: the answer was too long and was cut off before its end; be brief: write short texts and short lists ({"n":)
      error: the answer was cut off by the token limit: bound the strings and lists in its schema (maxLength, maxItems), or raise max_tokens; quotes {"n":

    two answers, attempts 1: the call failed
      failed call a of final_answer: called more than once, with different arguments ({"n":3})
      error: no valid answer after 1 attempt: called more than once, with different arguments; quotes {"n":3}

    one of two broken, attempts 1: the call failed
      failed call a of final_answer: called more than once, with different arguments ({"n":3})
      error: no valid answer after 1 attempt: called more than once, with different arguments; quotes {"n":3}

    beside another tool, attempts 0: go on
      call r of read
      failed call a of final_answer: not accepted: call it alone, after the other tools have returned ({"n":3})
      text Done.
      error: the turn ended before a valid answer: stop; quotes Done.

    beside another tool, broken, attempts 0: go on
      failed call r of read: incomplete JSON ({"n":)
      failed call a of final_answer: not accepted: call it alone, after the other tools have returned ({"n":3})
      error: the turn ended before a valid answer: stop; quotes nothing
    "#);
}

/// Nothing runs calls, so that history keeps no call that nobody answers, and the model reads errors as messages.
#[test]
fn invalid_answers_as_calls_in_manual_mode() {
    assert_snapshot!(each(&as_call(false), invalid_calls()), @r#"
    prose, attempts 1: say: No answer yet: there is no JSON object in the answer. Call final_answer with the answer.
      text Three.
      error: no valid answer after 1 attempt: there is no JSON object in the answer; quotes Three.

    invalid, attempts 1: say: No answer yet: `n`: expected integer, found string "three". Call final_answer with the answer.
      thinking
      text {"n":"three"}
      error: no valid answer after 1 attempt: `n`: expected integer, found string "three"; quotes {"n":"three"}

    broken, attempts 1: say: No answer yet: incomplete JSON. Call final_answer with the answer.
      thinking
      text {"n":
      error: no valid answer after 1 attempt: incomplete JSON; quotes {"n":

    cut off, attempts 1: say: No answer yet: the answer was too long and was cut off before its end; be brief: write short texts and short lists. Call final_answer with the answer.
      text {"n":
      error: the answer was cut off by the token limit: bound the strings and lists in its schema (maxLength, maxItems), or raise max_tokens; quotes {"n":

    two answers, attempts 1: say: No answer yet: called more than once, with different arguments. Call final_answer with the answer.
      text {"n":3}
      error: no valid answer after 1 attempt: called more than once, with different arguments; quotes {"n":3}

    one of two broken, attempts 1: say: No answer yet: called more than once, with different arguments. Call final_answer with the answer.
      text {"n":3}
      error: no valid answer after 1 attempt: called more than once, with different arguments; quotes {"n":3}

    beside another tool, attempts 0: go on
      call r of read
      failed call a of final_answer: not accepted: call it alone, after the other tools have returned ({"n":3})
      text Done.
      error: the model called tools, which do not run automatically here: answer its calls and continue, or set auto_execute_tools; quotes Done.

    beside another tool, broken, attempts 1: go on
      text {"n":3}
      error: the turn ended before a valid answer: stop; quotes nothing
    "#);
}

/// A turn has three attempts by default; calls of other tools are none, and a second cut is the last.
#[test]
fn attempts_are_bounded() {
    let wrong = || vec![own("a", json!({}))];
    let cases = vec![
        stop("1", wrong()),
        stop("other tool", vec![read()]),
        stop("2", wrong()),
        stop("3", wrong()),
    ];
    assert_snapshot!(in_turn(&as_call(true), cases), @r"
    1, attempts 1: the call failed
      failed call a of final_answer: `n`: required, but missing; expected integer ({})
    other tool, attempts 1: go on
      call r of read
    2, attempts 2: the call failed
      failed call a of final_answer: `n`: required, but missing; expected integer ({})
    3, attempts 3: go on
      text {}
      error: no valid answer after 3 attempts: `n`: required, but missing; expected integer; quotes {}
    ");
    let cut = || vec![text("{\"n\": 3")];
    let cases = vec![("1", cut(), FinishReason::Length), ("2", cut(), FinishReason::Length)];
    assert_snapshot!(in_turn(&as_text(), cases), @r#"
    1, attempts 1: say: No answer yet: the answer was too long and was cut off before its end; be brief: write short texts and short lists. (FORMAT)
      text {"n": 3
    2, attempts 2: go on
      text {"n": 3
      error: the answer was cut off by the token limit: bound the strings and lists in its schema (maxLength, maxItems), or raise max_tokens; quotes {"n": 3
    "#);
    let mut once = as_text();
    once.tries = 1;
    assert_snapshot!(in_turn(&once, vec![stop("only", cut())]), @r#"
    only, attempts 1: go on
      text {"n": 3
      error: no valid answer after 1 attempt: this is not JSON: `n`: the text ends before the value is complete; quotes {"n": 3
    "#);
    // A valid answer leaves no error of an earlier one.
    let cases = vec![stop("1", cut()), stop("2", vec![text("{\"n\": 3}")])];
    assert_snapshot!(in_turn(&as_text(), cases), @r#"
    1, attempts 1: say: No answer yet: this is not JSON: `n`: the text ends before the value is complete. (FORMAT)
      text {"n": 3
    2, attempts 2: go on
      text {"n": 3}
      error: the turn ended before a valid answer: stop; quotes nothing
    "#);
}

/// The error names the end of the turn if that explains more than the last answer does.
#[test]
fn errors_name_the_end_of_the_turn() {
    let reasons = [
        FinishReason::Stop,
        FinishReason::Interrupted,
        FinishReason::MaxToolIterations,
        FinishReason::ApprovalPending,
        FinishReason::WaitsForResults,
    ];
    let other_tool = || vec![text("Wait."), read()];
    let cases = [
        ("no answer", true, None),
        ("another tool", true, Some(other_tool())),
        ("another tool that nothing runs", false, Some(other_tool())),
        ("invalid", true, Some(vec![text("Three.")])),
    ];
    let mut told = String::new();
    for (name, runs_calls, content) in cases {
        writeln!(told, "{name}").unwrap();
        for reason in &reasons {
            let mut validator = validator(as_call(runs_calls));
            if let Some(content) = &content {
                let _ = validator.validate(&mut AssistantMessage::new(content.clone()));
            }
            writeln!(told, "  {reason}: {}", error(&mut validator, reason)).unwrap();
        }
    }
    assert_snapshot!(told, @r"
    no answer
      stop: error: the turn ended before a valid answer: stop; quotes nothing
      interrupted: error (interrupted): interrupted before a valid answer; quotes nothing
      max_tool_iterations: error: the turn ended before a valid answer: max_tool_iterations; quotes nothing
      approval_pending: error: calls wait for approval, so there is no answer yet: approve or deny them, then call continue_turn; quotes nothing
      waits_for_results: error: calls wait for results, so there is no answer yet: add their results, then call continue_turn; quotes nothing
    another tool
      stop: error: the turn ended before a valid answer: stop; quotes Wait.
      interrupted: error (interrupted): interrupted before a valid answer; quotes nothing
      max_tool_iterations: error: the turn ended before a valid answer: max_tool_iterations; quotes Wait.
      approval_pending: error: calls wait for approval, so there is no answer yet: approve or deny them, then call continue_turn; quotes Wait.
      waits_for_results: error: calls wait for results, so there is no answer yet: add their results, then call continue_turn; quotes Wait.
    another tool that nothing runs
      stop: error: the model called tools, which do not run automatically here: answer its calls and continue, or set auto_execute_tools; quotes Wait.
      interrupted: error (interrupted): interrupted before a valid answer; quotes nothing
      max_tool_iterations: error: the model called tools, which do not run automatically here: answer its calls and continue, or set auto_execute_tools; quotes Wait.
      approval_pending: error: the model called tools, which do not run automatically here: answer its calls and continue, or set auto_execute_tools; quotes Wait.
      waits_for_results: error: the model called tools, which do not run automatically here: answer its calls and continue, or set auto_execute_tools; quotes Wait.
    invalid
      stop: error: no valid answer after 1 attempt: there is no JSON object in the answer; quotes Three.
      interrupted: error (interrupted): interrupted before a valid answer; quotes nothing
      max_tool_iterations: error: the turn ended before a valid answer: max_tool_iterations; quotes Three.
      approval_pending: error: calls wait for approval, so there is no answer yet: approve or deny them, then call continue_turn; quotes Three.
      waits_for_results: error: calls wait for results, so there is no answer yet: add their results, then call continue_turn; quotes Three.
    ");
}

/// Errors and answers of any length reach neither the model nor an error whole.
#[test]
fn quoted_texts_are_bounded() {
    let long = format!("{{\"n\": \"{}\"}}", "é".repeat(5000));
    let format = ResponseFormat::new("count", json!({ "type": "object" }));
    let check = |value: Value| Err(format!("no: {value}"));
    let mut validator = OutputValidator::new(format, as_call(false), Box::new(check));
    let mut message = AssistantMessage::new(vec![text(&long)]);
    let words = validator.validate(&mut message).into_correction().unwrap();
    let error = validator.error(&FinishReason::Stop);
    let quoted = error.model_output.unwrap();
    assert_eq!(message.text(), long);
    assert_eq!(quoted.chars().count(), 2003);
    assert!(quoted.ends_with("é...") && error.message.ends_with("é..."));
    assert!(words.contains("é.... Call final_answer"), "{words}");
    assert_eq!(words.matches('é').count(), error.message.matches('é').count());
    assert_eq!(error.message.matches('é').count(), 500 - "no: {\"n\":\"".len());
}

/// The request has the schema already.
#[test]
fn corrections_do_not_repeat_a_long_schema() {
    let schema = json!({ "type": "object", "description": "x".repeat(4000) });
    let format = ResponseFormat::new("long", schema);
    let mut validator = OutputValidator::new(format, as_text(), Box::new(|_| Ok(())));
    let mut message = AssistantMessage::new(vec![text("Three.")]);
    let words = validator.validate(&mut message).into_correction().unwrap();
    assert_snapshot!(words, @"No answer yet: there is no JSON object in the answer. Answer with one JSON object and nothing else.");

    // The limit counts characters, not bytes.
    let schema = json!({ "type": "object", "description": "é".repeat(3900) });
    let format = ResponseFormat::new("long", schema);
    let mut validator = OutputValidator::new(format, as_text(), Box::new(|_| Ok(())));
    let words = validator.validate(&mut message).into_correction().unwrap();
    assert_eq!(words.matches('é').count(), 3900);
}
