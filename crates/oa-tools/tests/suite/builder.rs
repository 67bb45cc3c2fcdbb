//! The tools that builders make, and the mistakes they record.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use oa_tools::{ErrorKind, FnTool, Tool, ToolBuilder, ToolContext, tool};
use serde_json::{Value, json};

use crate::wait;

fn echo(builder: ToolBuilder) -> FnTool {
    builder.build(|args| async move { Ok(args) })
}

#[test]
fn openai_format_holds_the_schema() {
    let add = echo(
        tool("add", "Add two numbers")
            .param("a", "number")
            .describe("a", "The first")
            .param_with("b", json!({ "type": "number", "minimum": 0 })),
    );
    assert_snapshot!(add.to_openai_format(), @r#"{"type":"function","function":{"name":"add","description":"Add two numbers","parameters":{"type":"object","properties":{"a":{"type":"number","description":"The first"},"b":{"type":"number","minimum":0}},"required":["a","b"]}}}"#);
}

#[test]
fn required_parameters_keep_their_order() {
    let tool = echo(tool("t", "").param("z", "string").param("a", "string").param("m", "string"));
    assert_eq!(tool.input_schema()["required"], json!(["z", "a", "m"]));
}

#[test]
fn builder_options_apply_by_parameter_name() {
    let tool = echo(
        tool("t", "")
            .param("q", "string")
            .param("unit", "string")
            .param("n", "integer")
            .values("unit", ["c", "f"])
            .optional("unit")
            .default("n", 3),
    );
    assert_eq!(wait(tool.execute(json!({ "q": "x" }))).unwrap(), json!({ "q": "x", "n": 3 }));
    let error = wait(tool.execute(json!({ "q": "x", "unit": "k" }))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_snapshot!(error, @r#"invalid arguments for the tool t: `unit`: expected one of "c", "f", found string "k""#);
}

#[test]
fn every_constructor_makes_an_fn_tool() {
    let tools: [FnTool; 5] = [
        echo(tool("a", "")),
        tool("b", "")
            .build_with_context(|args, cx| async move { Ok(json!([args, cx.tool_name()])) }),
        tool("c", "").build_blocking(Ok),
        tool("d", "").build_blocking_with_context(|_, cx| Ok(json!(cx.is_cancelled()))),
        FnTool::new("e", "", json!({}), |args| async { Ok(args) }),
    ];
    let results = tools.map(|tool| wait(tool.execute(json!({ "x": 1 }))).unwrap());
    assert_eq!(
        results,
        [
            json!({ "x": 1 }),
            json!([{ "x": 1 }, "b"]),
            json!({ "x": 1 }),
            json!(false),
            json!({ "x": 1 })
        ]
    );
}

#[test]
fn only_blocking_tools_have_a_handler() {
    let blocks = tool("b", "").build_blocking(|args| Ok(json!({ "got": args })));
    let handler = blocks.blocking().unwrap();
    let moved = std::thread::spawn(move || handler.run(json!(1), ToolContext::new("c", "b")));
    assert_eq!(moved.join().unwrap().unwrap(), json!({ "got": 1 }));
    assert!(echo(tool("a", "")).blocking().is_none());
}

#[test]
fn arcs_forward_all_tool_settings() {
    let marked = echo(
        tool("rm", "")
            .category("files")
            .exclusive()
            .max_parallel(2)
            .cacheable()
            .timeout(Duration::from_secs(3))
            .default("x", 1)
            .param("x", "integer"),
    );
    let shared: Arc<dyn Tool> = Arc::new(Arc::new(marked));
    let through = |tool: &dyn Tool| {
        (
            tool.name().to_owned(),
            tool.category().map(str::to_owned),
            tool.is_exclusive(),
            tool.max_parallel(),
            tool.is_cacheable(),
            tool.timeout(),
            tool.check().is_err(),
            tool.blocking().is_some(),
        )
    };
    let expected = (
        "rm".to_owned(),
        Some("files".to_owned()),
        true,
        Some(2),
        true,
        Some(Duration::from_secs(3)),
        true,
        false,
    );
    assert_eq!(through(&shared), expected);
    assert_eq!(through(&Arc::clone(&shared)), expected);

    let plain: Arc<dyn Tool> = Arc::new(echo(tool("p", "").param("n", "integer").default("n", 2)));
    assert_eq!(plain.prepare(json!({})).unwrap(), json!({ "n": 2 }));
    assert_eq!(plain.spec().parameters, plain.to_openai_format()["function"]["parameters"]);
    assert_eq!(wait(Tool::execute(&Arc::clone(&plain), json!({}))).unwrap(), json!({ "n": 2 }));
}

#[track_caller]
fn mistake(tool: &FnTool) -> String {
    let error = tool.check().expect_err("a mistake was made");
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[test]
fn check_reports_builder_mistakes() {
    let of = |change: fn(ToolBuilder) -> ToolBuilder| {
        mistake(&echo(change(tool("t", "").param("a", "integer"))))
    };
    assert_snapshot!(of(|t| t.param("b", "text")), @r#"tool t: parameter b has unknown type "text"; use string, number, integer, boolean, array, object or null"#);
    assert_snapshot!(of(|t| t.param_with("b", json!({ "type": "text" }))), @r#"tool t: parameter b has unknown type "text"; use string, number, integer, boolean, array, object or null"#);
    assert_snapshot!(of(|t| t.param_with("b", 5)), @"tool t: parameter b must be a type name or a schema, not 5");
    assert_snapshot!(of(|t| t.param("a", "string")), @"tool t: parameter a is declared twice");
    assert_snapshot!(of(|t| t.default("b", 1)), @"tool t: there is no parameter b; declare it first");
    assert_snapshot!(of(|t| t.optional("b")), @"tool t: there is no parameter b; declare it first");
    assert_snapshot!(of(|t| t.values("b", [1])), @"tool t: there is no parameter b; declare it first");
    assert_snapshot!(of(|t| t.default("a", "ten")), @r#"tool t: default value of a: expected integer, found string "ten""#);
    assert_snapshot!(of(|t| t.schema(json!({}))), @"tool t: call schema() before adding parameters, because it replaces them");
    assert_snapshot!(of(|t| t.default("b", 1).param("c", "x")), @"tool t: there is no parameter b; declare it first");
    assert_snapshot!(mistake(&echo(tool("t", "").schema(json!("string")))), @"tool t: the schema must be a JSON object");
    assert_snapshot!(mistake(&echo(tool("t", "").schema(json!({ "a": "text" })))), @r#"tool t: parameter a has unknown type "text"; use string, number, integer, boolean, array, object or null"#);
}

#[test]
fn tool_names_are_validated() {
    for name in ["a", "get_weather-2", &"x".repeat(64)] {
        echo(tool(name, "")).check().unwrap();
    }
    assert_snapshot!(mistake(&echo(tool("", ""))), @"the tool name is empty");
    assert_snapshot!(mistake(&echo(tool("get weather", ""))), @r#"the tool name "get weather" may contain only a-z, A-Z, 0-9, _ and -"#);
    assert!(mistake(&echo(tool("x".repeat(65), ""))).ends_with("longer than 64 characters"));
    for name in ["a.b", "wetter_ü", "a\n"] {
        mistake(&echo(tool(name, "")));
    }
}

struct Own(Value);

impl Tool for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn description(&self) -> &str {
        "A tool of a type"
    }

    fn input_schema(&self) -> &Value {
        &self.0
    }

    fn call(&self, input: Value, _: ToolContext) -> oa_tools::ToolFuture<'_> {
        Box::pin(async move { Ok(json!([self.0["type"], input])) })
    }
}

#[test]
fn a_type_can_be_a_tool() {
    let own = Own(json!({ "type": "object", "properties": { "n": { "default": 1 } } }));
    assert_eq!(wait(own.execute(json!({}))).unwrap(), json!(["object", { "n": 1 }]));
    assert_eq!(own.check().map_err(|error| error.to_string()), Ok(()));
    assert_snapshot!(Own(json!({ "type": "string" })).check().unwrap_err(), @"the schema of tool own must describe an object");
    assert!(Own(json!(true)).check().is_err());
    assert_eq!(format!("{:?}", &own as &dyn Tool), r#"Tool { name: "own", .. }"#);
}

#[test]
fn futures_are_send() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let tool: Arc<dyn Tool> = Arc::new(echo(tool("t", "")));
    drop(is_send(tool.execute(json!({}))));
    drop(is_send(tool.call(json!({}), ToolContext::new("", "t"))));
}

#[test]
fn output_schema_is_not_sent_to_the_model() {
    let schema = json!({ "type": "object", "properties": { "sum": { "type": "number" } } });
    let add = echo(tool("add", "Adds").output_schema(schema.clone()));
    assert_eq!(Tool::output_schema(&add), Some(&schema));
    let shared: Arc<dyn Tool> = Arc::new(add.clone());
    assert_eq!(shared.output_schema(), Some(&schema));
    assert!(!add.to_openai_format().to_string().contains("sum"));
    assert_eq!(Tool::output_schema(&echo(tool("plain", "Plain"))), None);

    let error = echo(tool("add", "Adds").output_schema(json!({ "type": "number" }))).check();
    assert_eq!(
        error.unwrap_err().to_string(),
        "tool add: the output schema must describe an object"
    );
}

#[test]
fn whole_schemas_describe_objects() {
    let schema = json!({ "type": "string", "anyOf": [{ "type": "object" }] });
    let tool = tool("add", "Add").schema(schema).build(|_| async { Ok(json!(0)) });
    assert_snapshot!(tool.check().unwrap_err(), @"the schema of tool add must describe an object");
}
