//! Schema members keep their declaration order wherever a schema is sent.

use oa_chat::ToolMode;
use oa_client::{Client, OutputMode, ResponseFormat};
use oa_testkit::{MemoryServer, Reply, Request};
use oa_tools::{FnTool, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use suite::talk::{adder, client, echo, manual, strict, talk};

/// A model that must write the author first writes the wrong one.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the schema and whether an answer can be read are of interest")]
struct Review {
    summary: String,
    author: Option<String>,
    stars: u8,
    #[serde(default)]
    best: Vec<String>,
}

const FIELDS: [&str; 4] = ["summary", "author", "stars", "best"];
const ANSWER: &str = r#"{"summary": "Good.", "author": null, "stars": 5, "best": []}"#;

fn schema() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "summary": {"type": "string"}, "author": {"type": "string"},
            "stars": {"type": "integer"}, "best": {"type": "string"},
        },
        "required": ["summary", "stars"],
    })
}

/// Asserts that the fields are in order in the bytes after these words.
#[track_caller]
fn in_order(request: &Request, behind: &str, fields: &[&str]) {
    let body = std::str::from_utf8(request.body()).expect("nothing fails here");
    let (_, mut rest) = body.split_once(behind).unwrap_or_else(|| panic!("no {behind} in {body}"));
    for field in fields {
        let quoted = [format!("\"{field}\""), format!("\\\"{field}\\\"")];
        let place = quoted.iter().filter_map(|quoted| rest.find(quoted)).min();
        let place = place.unwrap_or_else(|| panic!("{field} is not in its place: {body}"));
        rest = &rest[place + 1..];
    }
}

/// Returns the request of a client with this tool.
async fn offered(tool: FnTool) -> MemoryServer {
    let server = strict([Reply::text("Hi.")]);
    talk(&mut client(manual(&server).tool(tool)), "Hello.").await;
    server
}

#[tokio::test]
async fn tools_keep_the_order_of_their_parameters() {
    let none = |_| async { Ok(json!(null)) };
    let built = FIELDS.iter().fold(tool("t", "T"), |tool, name| tool.param(name, "string"));
    let tools = [
        tool("t", "T").typed(|_: Review| async { Ok(json!(null)) }),
        tool("t", "T").schema(schema()).build(none),
        built.build(none),
    ];
    for tool in tools {
        let server = offered(tool).await;
        in_order(&server.requests()[0], "\"properties\":", &FIELDS);
    }
}

#[tokio::test]
async fn text_tools_keep_parameter_order() {
    let server = MemoryServer::new(Reply::text("Hi."));
    let built = FIELDS.iter().fold(tool("t", "T"), |tool, name| tool.param(name, "string"));
    let options = manual(&server).tool_mode(ToolMode::React);
    let tool = built.build(|_| async { Ok(json!(null)) });
    talk(&mut client(options.tool(tool)), "Hello.").await;
    let body = server.requests()[0].body().clone();
    let body = std::str::from_utf8(&body).unwrap();
    assert!(body.contains("t(summary, author, stars, best)"), "{body}");
}

#[tokio::test]
async fn output_types_keep_their_field_order() {
    let server = strict([Reply::text(ANSWER)]);
    client(manual(&server)).send_for::<Review>("How is it?").await.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.json()["response_format"]["json_schema"]["strict"], true);
    in_order(request, "\"properties\":", &FIELDS);
    // Strict servers require all members to be listed as required, in the same order.
    in_order(request, "\"required\":", &FIELDS);
}

#[tokio::test]
async fn output_schemas_keep_their_member_order() {
    let format = || ResponseFormat::new("review", schema());
    for output in [OutputMode::Format, OutputMode::Prompt] {
        let server =
            strict([Reply::text(ANSWER.replace("null", "\"Ada\"").replace("[]", "\"x\""))]);
        let mut client = client(manual(&server));
        client.send_for_format("How is it?", format()).mode(output).await.unwrap();
        let properties =
            if output == OutputMode::Prompt { "\\\"properties\\\":" } else { "\"properties\":" };
        in_order(&server.requests()[0], properties, &FIELDS);
    }
}

#[tokio::test]
async fn the_output_tool_keeps_field_order() {
    let server = strict([Reply::new().call("final_answer", ANSWER)]);
    client(manual(&server).tool(adder())).send_for::<Review>("How is it?").await.unwrap();
    in_order(
        &server.requests()[0],
        "\"name\":\"final_answer\"",
        &["summary", "author", "stars", "best"],
    );
}

#[tokio::test]
async fn arguments_return_in_the_models_order() {
    let server = strict([
        Reply::new().call_with_id("c1", "echo", r#"{"say": "x", "at": 1, "by": 2}"#),
        Reply::text("Done."),
    ]);
    let options = manual(&server).auto_execute_tools(true).tool(echo());
    let mut client: Client = client(options);
    talk(&mut client, "Say x.").await;
    in_order(&server.requests()[1], "\"arguments\":", &["say", "at", "by"]);
}
