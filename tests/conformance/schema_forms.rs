//! Schemas that servers compile to grammars.

use open_agent::{AgentOptionsBuilder, Client, Result, ToolChoice, json, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::loops::read;
use crate::server::{Wanted, check};

#[derive(Deserialize, JsonSchema)]
struct Node {
    name: String,
    note: Option<Value>,
    pair: (i64, Value),
    children: Vec<Self>,
}

impl Node {
    fn count(&self) -> usize {
        1 + self.children.iter().map(Self::count).sum::<usize>()
    }
}

async fn has_called(options: AgentOptionsBuilder) -> Result<()> {
    let options =
        options.auto_execute_tools(true).tool_choice(ToolChoice::Required).max_tool_iterations(1);
    let mut client = Client::new(options.seed(3).build()?)?;
    client.send("Plant a tree. Use the tool.").await?;
    let (_, calls, results) = read(&mut client).await?;
    assert!(calls > 0 && results > 0, "{:?}", client.history());
    Ok(())
}

/// The type has members that may be anything, and refers to itself.
#[test]
fn typed_tools_have_schemas_that_compile() {
    check(Wanted::Tiny, async |server| {
        let plant = tool("plant", "Plants a tree")
            .typed(|node: Node| async move { Ok((node.count(), node.name, node.note, node.pair)) });
        has_called(server.options().tool(plant)).await.unwrap();
    });
}

/// None of these schemas compiles as it is, and each would make every request fail.
#[test]
fn other_schemas_are_sent_in_another_form() {
    check(Wanted::Tiny, async |server| {
        for parameter in [
            json!(true),
            json!({ "type": "array", "items": true }),
            json!({ "type": "array", "items": { "$ref": "#" } }),
            json!({ "$ref": "#/$defs/a~1b%20c" }),
        ] {
            let schema = json!({
                "type": "object",
                "properties": { "name": { "type": "string" }, "other": parameter },
                "required": ["name"],
                "$defs": { "a/b c": { "type": "integer", "minimum": 3 } },
            });
            let plant = tool("plant", "Plants a tree")
                .schema(schema)
                .build(|input| async move { Ok(input["name"].clone()) });
            let called = has_called(server.options().tool(plant)).await;
            called.unwrap_or_else(|error| panic!("{parameter}: {error}"));
        }
    });
}
