//! Requests for structured output: a response format, a tool or the prompt, and options that are errors.

use std::fmt::Write;

use insta::assert_snapshot;
use oa_output::{
    ErrorKind, FormatFallback, FormatRequest, OtherTools, OutputMode, OutputOptions,
    OutputValidator, ResponseFormat,
};
use oa_tools::{Registry, tool};
use oa_types::wire::{ChatParameters, ToolChoice};
use serde_json::{Value, json};

fn validator(schema: Value, options: OutputOptions) -> OutputValidator {
    OutputValidator::new(ResponseFormat::new("count", schema), options, Box::new(|_| Ok(())))
}

fn object() -> Value {
    json!({ "type": "object", "properties": { "n": { "type": "integer" } } })
}

fn as_call() -> OutputOptions {
    let mut options = OutputOptions::default();
    options.tool = Some("final_answer".into());
    options
}

/// Beside native calls the output is a tool, because many servers cannot do both at once.
#[test]
fn mode_and_tools_choose_format_or_tool() {
    let modes = [OutputMode::Auto, OutputMode::Format, OutputMode::Prompt, OutputMode::Tool];
    let others = [OtherTools::Absent, OtherTools::Constrained, OtherTools::Native];
    let mut told = String::new();
    for mode in modes {
        for name in [None, Some("done")] {
            let mut ways = Vec::new();
            for others in others {
                let options = OutputOptions::of(mode, name.map(str::to_owned), others);
                ways.push(match options {
                    Ok(OutputOptions { tool: Some(tool), first: None, .. }) => tool,
                    Ok(OutputOptions { tool: None, first, .. }) => {
                        let first = first.map(|first| format!("{first:?}, then weaker"));
                        first.unwrap_or_else(|| "Schema".to_owned())
                    }
                    other => format!("{other:?}"),
                });
            }
            ways.dedup();
            let name = name.map(|name| format!(" {name}")).unwrap_or_default();
            writeln!(told, "{mode:?}{name}: {}", ways.join(" | ")).unwrap();
        }
    }
    assert_snapshot!(told, @r#"
    Auto: Schema, then weaker | final_answer
    Auto done: Schema, then weaker | done
    Format: Schema
    Format done: Err(Error { kind: Config, message: "tool_name has no effect where there is no output tool", model_output: None })
    Prompt: Prompt, then weaker
    Prompt done: Err(Error { kind: Config, message: "tool_name has no effect where there is no output tool", model_output: None })
    Tool: final_answer
    Tool done: done
    "#);
}

#[test]
fn requests_get_a_format_or_a_tool() {
    let mut request = ChatParameters::new("any");
    let format = validator(object(), OutputOptions::default());
    assert_eq!(format.offer(&Registry::new(), &mut request), Ok(()));
    assert_eq!(request.response_format, Some(Value::from(format.format().clone())));
    assert_eq!((request.tools.len(), &request.tool_choice), (0, &None));

    for (choice, sent) in [
        (None, ToolChoice::Required),
        (Some(ToolChoice::None), ToolChoice::Required),
        (Some(ToolChoice::Auto), ToolChoice::Auto),
    ] {
        request.tool_choice = choice;
        request.tools.clear();
        assert_eq!(validator(object(), as_call()).offer(&Registry::new(), &mut request), Ok(()));
        assert_eq!(request.tool_choice, Some(sent));
        assert_eq!(request.response_format, None);
        let [tool] = &*request.tools else { panic!("{:?}", request.tools) };
        assert_eq!((&*tool.name, &tool.parameters), ("final_answer", &object()));
    }
}

#[test]
fn contradicting_requests_are_errors() {
    let mut no_tries = OutputOptions::default();
    no_tries.tries = 0;
    let mut unnamed = OutputOptions::default();
    unnamed.tool = Some("final answer".into());
    let same = tool("final_answer", "Ends.").build(|_| async { Ok(Value::Null) });
    let tools = Registry::from_tools([same]).unwrap();
    let list = json!({ "type": "array" });
    let text = OutputOptions::default;
    let mut told = String::new();
    for (validator, body) in [
        (validator(object(), no_tries), "other"),
        (validator(list, text()), "other"),
        (validator(json!({}), as_call()), "other"),
        (validator(object(), text()), "response_format"),
        (validator(object(), as_call()), "tools"),
        (validator(object(), as_call()), "other"),
        (validator(object(), unnamed), "other"),
    ] {
        let mut request = ChatParameters::new("any");
        request.extra_body.insert(body.into(), json!(1));
        let unchanged = request.clone();
        let error = validator.offer(&tools, &mut request).unwrap_err();
        assert_eq!((error.kind, &request), (ErrorKind::Config, &unchanged));
        writeln!(told, "{error}").unwrap();
    }
    // A member that structured output does not set is free.
    for (options, body) in [(as_call(), "response_format"), (text(), "tools")] {
        let mut request = ChatParameters::new("any");
        request.extra_body.insert(body.into(), json!(1));
        let offered = validator(object(), options).offer(&Registry::new(), &mut request);
        assert_eq!(offered, Ok(()), "{body}");
    }
    assert_snapshot!(told, @r#"
    tries must be at least 1
    the schema of count does not describe an object
    the schema of count does not describe an object
    extra_body may not set "response_format" with structured output
    extra_body may not set "tools" with structured output
    a tool has the same name as the output tool: final_answer
    the tool name "final answer" may contain only a-z, A-Z, 0-9, _ and -
    "#);
}

/// If the server does not enforce the schema, the prompt contains it.
#[test]
fn weaker_formats_put_schema_into_prompt() {
    let mut options = OutputOptions::default();
    assert_eq!(validator(object(), options.clone()).fallback(), None);
    options.first = Some(FormatRequest::Object);
    let fallback = validator(object(), options).fallback().unwrap();
    assert_eq!(fallback, FormatFallback::new(FormatRequest::Object, &object()));
    assert_snapshot!(fallback.instructions, @r#"Answer with one JSON object and nothing else. It must match this JSON Schema: {"type":"object","properties":{"n":{"type":"integer"}}}"#);

    let mut request = ChatParameters::new("any");
    let format = json!({ "type": "json_schema" });
    request.response_format = Some(format.clone());
    let sent = |way: FormatRequest| {
        let mut request = request.clone();
        way.apply(&mut request);
        request.response_format
    };
    assert_eq!(sent(FormatRequest::Schema), Some(format));
    assert_eq!(sent(FormatRequest::Object), Some(json!({ "type": "json_object" })));
    assert_eq!(sent(FormatRequest::Prompt), None);
}
