//! Images in results, as sent to servers.

use std::sync::{Arc, Mutex};

use oa_client::{AgentOptions, AgentOptionsBuilder, Client, ErrorKind, query, query_for_format};
use oa_hooks::{HookDecision, Hooks};
use oa_output::ResponseFormat;
use oa_testkit::{MemoryServer, Reply, Script, Strict};
use oa_tools::{FnTool, ToolContext, tool};
use oa_turn::drive;
use oa_types::wire::ResultImages;
use oa_types::{ContentBlock, ImageBlock, Message};
use serde_json::{Value, json};

fn image(name: &str) -> ImageBlock {
    ImageBlock::from_url(format!("https://host/{name}.png")).expect("it is an address")
}

fn camera() -> FnTool {
    tool("camera", "Takes a picture").param("of", "string").build_with_context(
        |args, cx: ToolContext| async move {
            cx.attach_image(image(args["of"].as_str().unwrap_or_default()))?;
            Ok(json!("A picture."))
        },
    )
}

/// A model that takes two pictures, says something, and is asked again.
fn model(rules: Strict) -> MemoryServer {
    let picture = |reply: Reply, of: &str| reply.call_with_id(of, "camera", json!({ "of": of }));
    let script = Script::new().strict_by(rules);
    let script = script.reply(picture(picture(Reply::new(), "cat"), "dog"));
    MemoryServer::new(script.reply(Reply::text("Two pets.")).otherwise(Reply::text("Fine.")))
}

fn agent(server: &MemoryServer) -> AgentOptionsBuilder {
    let options = AgentOptions::builder().model("any").transport(server.clone());
    options.tool(camera()).auto_execute_tools(true)
}

fn part(name: &str) -> Value {
    json!({ "type": "image_url", "image_url": { "url": format!("https://host/{name}.png") } })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The messages of a request from the results on.
fn after_calls(server: &MemoryServer, request: usize) -> Vec<Value> {
    let request = &server.requests()[request];
    let messages = request.messages().iter();
    messages.skip_while(|message| message["role"] != "tool").cloned().collect()
}

#[tokio::test]
async fn images_follow_results_in_a_user_message() {
    let server = model(Strict::new());
    let mut client = Client::new(agent(&server).build().unwrap()).unwrap();
    client.ask("Look around.").await.unwrap();
    client.ask("Thanks.").await.unwrap();
    let result = |id: &str| {
        json!({
            "role": "tool", "content": "A picture.\n\n(1 image follows)", "tool_call_id": id, "name": "camera",
        })
    };
    let parts = json!([
        text("Images of the result of camera (cat):"),
        part("cat"),
        text("Images of the result of camera (dog):"),
        part("dog"),
    ]);
    let images = json!({ "role": "user", "content": parts });
    assert_eq!(after_calls(&server, 1), [result("cat"), result("dog"), images.clone()]);
    assert_eq!(after_calls(&server, 2)[..3], [result("cat"), result("dog"), images]);
    server.verify();
    // History has them where they belong, and a stored one is the same.
    let [ContentBlock::ToolResult(result)] = &client.history()[2].content[..] else { panic!() };
    assert_eq!((&result.content, &result.images[..]), (&json!("A picture."), &[image("cat")][..]));
    let stored = serde_json::to_string(client.history()).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Message>>(&stored).unwrap(), client.history());
}

#[tokio::test]
async fn result_images_can_be_inline() {
    let server = model(Strict::new().allow_result_images());
    let options = agent(&server).result_images(ResultImages::Inline).build().unwrap();
    Client::new(options).unwrap().ask("Look around.").await.unwrap();
    let result = |id: &str| {
        let content = [text("A picture."), part(id)];
        json!({ "role": "tool", "content": content, "tool_call_id": id, "name": "camera" })
    };
    assert_eq!(after_calls(&server, 1), [result("cat"), result("dog")]);
}

#[tokio::test]
async fn steps_send_the_same_images() {
    let (server, driven) = (model(Strict::new()), model(Strict::new()));
    let mut client = Client::new(agent(&server).build().unwrap()).unwrap();
    client.ask("Look around.").await.unwrap();
    let options = agent(&driven).build().unwrap();
    let mut turn = options.turn();
    turn.prompt(Message::user("Look around.")).unwrap();
    drive(&mut turn, &options.steps()).await.unwrap();
    assert_eq!(after_calls(&server, 1), after_calls(&driven, 1));
    assert_eq!(after_calls(&driven, 1).len(), 3);
}

#[tokio::test]
async fn a_changed_result_loses_its_images() {
    let server = model(Strict::new());
    let seen = Arc::<Mutex<Vec<ImageBlock>>>::default();
    let log = Arc::clone(&seen);
    let hooks = Hooks::new().add_post_tool_use(move |event| {
        log.lock().unwrap().extend(event.images.clone());
        async move {
            let is_cat = event.tool_use_id == "cat";
            is_cat.then(|| HookDecision::modify_result(json!("Hidden."), "private"))
        }
    });
    let options = agent(&server).hooks(hooks).build().unwrap();
    Client::new(options).unwrap().ask("Look around.").await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [image("cat"), image("dog")]);
    let sent = after_calls(&server, 1);
    assert_eq!(sent[0]["content"], "Hidden.");
    assert_eq!(
        sent[2]["content"],
        json!([text("Images of the result of camera (dog):"), part("dog")])
    );
}

#[tokio::test]
async fn callers_add_results_with_images() {
    let server = model(Strict::new());
    let options = AgentOptions::builder().model("any").transport(server.clone()).tool(camera());
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.ask("Look around.").await.unwrap();
    for call in client.pending_calls() {
        // As a caller that runs tools itself.
        let cx = client.tool_context(&call);
        let tool = Arc::clone(client.get_tool(&call.name).unwrap());
        let content = tool.call(call.input.clone(), cx.clone()).await.unwrap();
        client.add_tool_result_with_images(&call.id, content, cx.take_images()).unwrap();
    }
    client.continue_turn().await.unwrap();
    assert_eq!(after_calls(&server, 1).len(), 3);
    assert_eq!(after_calls(&server, 1)[2]["content"][1], part("cat"));
}

#[tokio::test]
async fn every_way_to_ask_takes_images() {
    let answer = || Reply::text(r#"{"pets": 2}"#);
    let server = MemoryServer::new(Script::new().otherwise(answer()));
    let options = AgentOptions::builder().model("any").transport(server.clone()).build().unwrap();
    let schema = json!({ "type": "object", "properties": { "pets": { "type": "integer" } } });
    let format = || ResponseFormat::new("pets", schema.clone());
    let prompt = || Message::user_with_image("How many?", image("pets"));
    let mut client = Client::new(options.clone()).unwrap();
    client.ask(prompt()).await.unwrap();
    client.send_for_format(prompt(), format()).await.unwrap();
    query(prompt(), &options).await.unwrap().text().await.unwrap();
    query_for_format(prompt(), &options, format()).await.unwrap();
    assert_eq!(server.requests().len(), 4);
    for request in server.requests() {
        let last = request.messages().last().unwrap();
        assert_eq!(last["content"], json!([text("How many?"), part("pets")]));
    }
    let theirs = Message::assistant(vec!["Two.".into()]);
    for error in
        [client.ask(theirs.clone()).await.unwrap_err(), query(theirs, &options).await.unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
}
