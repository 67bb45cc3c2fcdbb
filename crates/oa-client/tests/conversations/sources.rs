//! Tools of a source that change between requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oa_client::{Client, ErrorKind, ResponseFormat, query_for_format};
use oa_hooks::Permission;
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_tools::{FnTool, Tool, ToolSource, tool};
use oa_types::{ContentBlock, FinishReason};
use serde_json::{Value, json};

use suite::talk::{auto, client, manual, strict, talk, told};

/// A list of names, where each tool returns its input, with a default. An empty name panics.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<(u64, Vec<&'static str>)>>);

impl Shelf {
    fn of(names: &[&'static str]) -> Self {
        let this = Self::default();
        this.put(names);
        this
    }

    fn list(&self) -> MutexGuard<'_, (u64, Vec<&'static str>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, names: &[&'static str]) {
        let mut list = self.list();
        *list = (list.0 + 1, names.to_vec());
    }
}

impl ToolSource for Shelf {
    fn revision(&self) -> u64 {
        self.list().0
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let names = self.list().1.clone();
        names.into_iter().map(|name| Arc::new(looking(name, self)) as Arc<dyn Tool>).collect()
    }
}

/// A tool that adds another one to the shelf when it is called `grow`.
fn looking(name: &'static str, shelf: &Shelf) -> FnTool {
    assert!(!name.is_empty(), "a tool without a name");
    let shelf = shelf.clone();
    let tool = tool(name, "Looks").param("at", "string").default("at", "sea");
    tool.build(move |input| {
        if name == "grow" {
            shelf.put(&["grow", "more"]);
        }
        async move { Ok(input) }
    })
}

fn names(request: &Request) -> Vec<String> {
    let tools = request.json()["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["function"]["name"].as_str().map(str::to_owned);
    tools.iter().filter_map(name).collect()
}

fn count() -> ResponseFormat {
    let n = json!({"n": {"type": "integer"}});
    ResponseFormat::new("count", json!({"type": "object", "properties": n, "required": ["n"]}))
}

fn answer() -> Reply {
    Reply::new().call("final_answer", json!({"n": 3}))
}

#[tokio::test]
async fn output_tool_survives_a_changed_source() {
    let server = strict([answer(), answer(), Reply::text("Bye.")]);
    let shelf = Shelf::of(&["look"]);
    let mut client = client(auto(&server).tool_source(shelf.clone()));
    shelf.put(&["look", "new"]);
    assert_eq!(client.send_for_format("How many?", count()).await.unwrap().value["n"], 3);
    client.set_tools([looking("own", &shelf)]).unwrap();
    assert_eq!(client.send_for_format("How many?", count()).await.unwrap().value["n"], 3);
    talk(&mut client, "Thanks.").await;
    let requests = server.requests();
    assert_eq!(names(&requests[0]), ["look", "new", "final_answer"]);
    assert_eq!(names(&requests[1]), ["own", "look", "new", "final_answer"]);
    assert_eq!(names(&requests[2]), ["own", "look", "new"]);
    assert_eq!(requests[1].json()["tool_choice"], "required");
}

#[tokio::test]
async fn output_tool_survives_a_change_between_rounds() {
    let server = strict([Reply::new().call("grow", json!({})), answer()]);
    let mut client = client(auto(&server).tool_source(Shelf::of(&["grow"])));
    assert_eq!(client.send_for_format("How many?", count()).await.unwrap().value["n"], 3);
    assert_eq!(names(&server.requests()[1]), ["grow", "more", "final_answer"]);
}

/// The tool choice of structured output, which this model rejects, is not taken for one of the options (QUIRKS row
/// 130).
#[tokio::test]
async fn a_changed_source_keeps_the_fallback() {
    let reply = Reply::by(|request| {
        if request.json().get("tool_choice").is_some() {
            return Reply::error(400, "deepseek-reasoner does not support this tool_choice");
        }
        match request.messages().last() {
            Some(last) if last["role"] == "tool" => answer(),
            _ => Reply::new().call("grow", json!({})),
        }
    });
    let server = MemoryServer::new(Script::new().strict().otherwise(reply));
    let mut client = client(auto(&server).tool_source(Shelf::of(&["grow"])));
    assert_eq!(client.send_for_format("How many?", count()).await.unwrap().value["n"], 3);
    assert_eq!(server.requests().len(), 3, "one of them was rejected");
    assert_eq!(names(&server.requests()[2]), ["grow", "more", "final_answer"]);
}

/// A tool that came during structured output is there once its call is approved.
#[tokio::test]
async fn shared_state_keeps_the_sources_tools() {
    let server = strict([
        Reply::new().call("grow", json!({})),
        Reply::new().call("more", json!({"at": "lake"})),
        Reply::text("Bye."),
    ]);
    let options = auto(&server).tool_source(Shelf::of(&["grow"]));
    let options = options.can_use_tool(|request| async move {
        if request.tool_name == "more" { Permission::Later } else { Permission::Allow }
    });
    let mut client = client(options);
    client.send_for_format("How many?", count()).await.unwrap_err();
    assert_eq!(client.finish_reason(), Some(&FinishReason::ApprovalPending));
    client.set_state(7_u8);
    let waiting = client.pending_approvals();
    client.approve(&waiting[0].id).unwrap();
    client.continue_turn().await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    let mut blocks = client.history().iter().flat_map(|message| &message.content);
    let ran = blocks.any(|block| match block {
        ContentBlock::ToolResult(result) => result.content["at"] == "lake",
        _ => false,
    });
    assert!(ran, "{:?}", client.history());
}

#[tokio::test]
async fn stale_options_offer_the_output_tool() {
    let server = strict([answer(), answer(), answer()]);
    let (full, empty) = (Shelf::of(&["look"]), Shelf::of(&[]));
    let stale = manual(&server).tool_source(full.clone()).build().unwrap();
    full.put(&["other"]);
    for _ in 0..2 {
        assert_eq!(query_for_format("How many?", &stale, count()).await.unwrap().value["n"], 3);
    }
    // The mode depends on the tools of the request, not on those of earlier ones.
    let stale = manual(&server).tool_source(empty.clone()).build().unwrap();
    empty.put(&["late"]);
    assert_eq!(query_for_format("How many?", &stale, count()).await.unwrap().value["n"], 3);
    let offered: Vec<_> = server.requests().iter().map(names).collect();
    let other = ["other", "final_answer"];
    assert_eq!(offered, [other, other, ["late", "final_answer"]]);
}

#[tokio::test]
async fn a_source_may_not_take_the_output_tools_name() {
    let server = MemoryServer::new([]);
    let shelf = Shelf::of(&["look"]);
    let mut client = client(auto(&server).tool_source(shelf.clone()));
    shelf.put(&["final_answer"]);
    let error = client.send_for_format("How many?", count()).await.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Config, 0));
}

#[tokio::test]
async fn open_calls_use_the_sources_current_tools() {
    let shelf = Shelf::of(&["look"]);
    let calling = || Reply::new().call_with_id("c1", "new", json!({}));
    let server = strict([calling(), Reply::text("Sea.")]);
    let asking = |server: &MemoryServer| {
        auto(server).tool_source(shelf.clone()).permission_mode(oa_hooks::PermissionMode::Ask)
    };
    let options = asking(&server).build().unwrap();
    shelf.put(&["look", "new"]);
    let mut client = Client::new(options.clone()).unwrap();
    talk(&mut client, "Go.").await;
    let history = client.history().to_vec();
    drop(client);
    let mut client = Client::resume(options, history).unwrap();
    assert_eq!(client.pending_approvals()[0].input, json!({"at": "sea"}));
    client.approve("c1").unwrap();
    client.continue_turn().await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(told(client.history())[2..], [r#"tool: c1={"at":"sea"}"#, "assistant: Sea."]);

    // A call that structured output has left open.
    shelf.put(&["look"]);
    let server = strict([calling(), Reply::text("Sea.")]);
    let mut client = self::client(asking(&server));
    shelf.put(&["new"]);
    assert!(client.send_for_format("How many?", count()).await.is_err());
    client.approve("c1").unwrap();
    client.continue_turn().await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(told(client.history())[2..], [r#"tool: c1={"at":"sea"}"#, "assistant: Sea."]);
}

#[tokio::test]
async fn panics_of_sources_are_errors() {
    let server = strict([Reply::new().call("look", json!({})), Reply::text("Bye.")]);
    let shelf = Shelf::of(&["look"]);
    let mut client = client(auto(&server).tool_source(shelf.clone()));
    shelf.put(&[""]);
    let error = client.send("Go.").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("a tool without a name"), "{error}");
    let new = Client::new(client.options().clone()).unwrap();
    assert!(new.options().tools().contains("look"));
    shelf.put(&["look"]);
    talk(&mut client, "Go.").await;
    assert_eq!(told(client.history()).len(), 4);
}
