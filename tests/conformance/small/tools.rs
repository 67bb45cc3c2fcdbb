//! Tools for a small model: their texts are bounded, because it may not find an end.

use open_agent::{FnTool, json, tool};
use serde_json::Value;

fn text() -> Value {
    json!({ "type": "string", "maxLength": 40 })
}

pub(crate) fn tools() -> Vec<FnTool> {
    let done = |_| async { Ok(json!("done")) };
    vec![
        tool("add", "Adds two numbers").param("a", "number").param("b", "number").build(done),
        tool("get_weather", "Tells the weather in a city").param_with("city", text()).build(done),
        tool("search", "Searches the web").param_with("query", text()).build(done),
        tool("send_email", "Sends an email to a person")
            .param_with("to", text())
            .param_with("text", text())
            .build(done),
        tool("set_timer", "Sets a timer").param("minutes", "integer").build(done),
    ]
}

/// Those of the quickstart.
pub(crate) fn calculator() -> Vec<FnTool> {
    let operation = |name, description, work: fn(f64, f64) -> f64| {
        tool(name, description).param("a", "number").param("b", "number").build(
            move |args: Value| async move {
                let number = |name: &str| args[name].as_f64().unwrap_or_default();
                Ok(json!(work(number("a"), number("b"))))
            },
        )
    };
    vec![
        operation("add", "Add two numbers", |a, b| a + b),
        operation("subtract", "Subtract b from a", |a, b| a - b),
        operation("multiply", "Multiply two numbers", |a, b| a * b),
        operation("divide", "Divide a by b", |a, b| if b == 0.0 { 0.0 } else { a / b }),
    ]
}
