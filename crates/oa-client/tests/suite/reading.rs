//! Truncated or cleared results that the model continues to read.

use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client};
use oa_context::{ChangedPart, ContextPolicy};
use oa_executor::{ExecutorOptions, TruncationPolicy};
use oa_hooks::{HookDecision, Hooks};
use oa_testkit::{MemoryServer, Reply, Request, Script};
use oa_tools::{FnTool, tool};
use oa_turn::drive;
use oa_types::{ContentBlock, FinishReason, Message};
use serde_json::{Value, json};

fn log() -> FnTool {
    let text: String = (1..=300).map(|number| format!("line {number} of the log\n")).collect();
    tool("log", "Returns the log").build(move |_| std::future::ready(Ok(json!(text))))
}

fn agent(server: &MemoryServer) -> AgentOptionsBuilder {
    let executor = ExecutorOptions::new().truncation(TruncationPolicy::max_chars(500));
    AgentOptions::builder()
        .model("any")
        .transport(server.clone())
        .tool(log())
        .executor(executor)
        .auto_execute_tools(true)
        .offer_full_results(true)
}

fn client(options: AgentOptionsBuilder) -> Client {
    Client::new(options.build().expect("the options fit")).expect("the options fit")
}

fn read(input: Value) -> Reply {
    Reply::new().call_with_id("call_2", "read_result", input)
}

fn server(input: Value) -> MemoryServer {
    let replies =
        [Reply::new().call_with_id("call_1", "log", json!({})), read(input), Reply::text("Done.")];
    MemoryServer::new(replies.into_iter().fold(Script::new().strict(), Script::reply))
}

fn names(request: &Request) -> Vec<String> {
    let tools = request.json()["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap_or_default().to_owned();
    tools.iter().map(name).collect()
}

fn results(history: &[Message]) -> Vec<String> {
    let blocks = history.iter().flat_map(|message| &message.content);
    blocks
        .filter_map(|block| match block {
            ContentBlock::ToolResult(result) => {
                Some(result.content.as_str().map_or_else(|| result.content.to_string(), Into::into))
            }
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn truncated_results_offer_the_reader() {
    let server = server(json!({ "id": "call_1", "search": "line 299" }));
    let mut client = client(agent(&server));
    assert!(client.options().next_tools().names().eq(["log"]));
    client.ask("What happened?").await.unwrap();
    let requests = server.requests();
    assert_eq!(names(&requests[0]), ["log"]);
    assert_eq!(names(&requests[1]), ["log", "read_result"]);
    let results = results(client.history());
    let hint = "characters left out; to read on, call read_result with the id \"call_1\"]";
    assert!(results[0].ends_with(hint), "{}", results[0]);
    assert!(results[1].starts_with("Result \"call_1\": 1 of 300 lines contain \"line 299\":"));
    assert!(results[1].contains("\n299: line 299 of the log"), "{}", results[1]);
    server.verify();
}

/// Tools that come from an agent may hold the reader already.
#[tokio::test]
async fn tools_of_an_agent_can_be_set_again() {
    let server = server(json!({ "id": "call_1", "search": "line 299" }));
    let mut client = client(agent(&server));
    let tools: Vec<_> = client.options().tools().iter().cloned().collect();
    assert_eq!(tools.len(), 2);
    client.set_tools(tools.clone()).unwrap();
    assert_eq!(client.options().tools().iter().count(), 2);
    client.ask("What happened?").await.unwrap();
    assert_eq!(names(&server.requests()[0]), ["log"]);
    assert_eq!(names(&server.requests()[1]), ["log", "read_result"]);
    server.verify();
    let builder = AgentOptions::builder().model("any").tools(tools).auto_execute_tools(true);
    assert!(builder.offer_full_results(true).build().is_ok());
    let own = tool("read_result", "My own").build(|_| async { Ok(json!(1)) });
    let error = client.set_tools([own]).unwrap_err();
    assert_eq!(error.kind(), oa_client::ErrorKind::Config);
}

#[tokio::test]
async fn conversations_do_not_share_results() {
    let first = server(json!({ "id": "call_1" }));
    let options = agent(&first).build().unwrap();
    Client::new(options.clone()).unwrap().ask("What happened?").await.unwrap();
    let second = MemoryServer::new([read(json!({ "id": "call_1" })), Reply::text("Done.")]);
    let mut client = Client::with_transport(options, second.clone()).unwrap();
    client.ask("Read it.").await.unwrap();
    assert_eq!(names(&second.requests()[0]), ["log"]);
    assert!(
        results(client.history())[0].contains("no result is stored"),
        "{:?}",
        results(client.history())
    );
}

#[tokio::test]
async fn without_the_option_no_reader_is_offered() {
    let server = server(json!({ "id": "call_1" }));
    let mut client = client(agent(&server).offer_full_results(false));
    client.ask("What happened?").await.unwrap();
    assert_eq!(names(&server.requests()[2]), ["log"]);
    let results = results(client.history());
    assert!(results[0].ends_with("characters left out]"), "{}", results[0]);
    assert!(results[1].contains("there is no such tool"), "{}", results[1]);
}

#[test]
fn read_result_is_a_reserved_name() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::text("Hi.")));
    let clash = "offer_full_results adds a tool read_result: rename your tool with that name";
    let mine = || tool("read_result", "Reads").build(|_| async { Ok(json!(1)) });
    let error = agent(&server).tool(mine()).build().unwrap_err();
    assert_eq!(error.to_string(), clash);
    let mut client = client(agent(&server));
    assert_eq!(client.set_tools([mine()]).unwrap_err().to_string(), clash);
    client.set_tools([log()]).unwrap();
    let manual = agent(&server).executor(ExecutorOptions::new()).auto_execute_tools(false);
    assert!(manual.build().unwrap_err().to_string().contains("without auto_execute_tools"));
}

/// A hook for one tool has seen the truncated result only, so the rest stays unread.
#[tokio::test]
async fn unseen_parts_of_results_are_not_read() {
    for (tools, is_read) in [(vec!["log"], false), (vec!["log", "read_result"], true)] {
        let server = server(json!({ "id": "call_1", "search": "line 299" }));
        let hooks = Hooks::new().add_post_tool_use(|_| async { None }).for_tools(tools);
        let options = agent(&server).hooks(hooks).build().unwrap();
        let mut client = Client::new(options.clone()).unwrap();
        client.ask("What happened?").await.unwrap();
        let shown = results(client.history());
        assert_eq!(shown[1].contains("line 299 of the log"), is_read, "{shown:?}");
        let server = self::server(json!({ "id": "call_1", "search": "line 299" }));
        let options = Client::with_transport(options, server).unwrap().options().clone();
        let mut turn = options.turn();
        turn.prompt(Message::user("What happened?")).unwrap();
        drive(&mut turn, &options.steps()).await.unwrap();
        assert_eq!(results(turn.history()), shown);
    }
}

#[tokio::test]
async fn rules_and_hooks_apply_to_the_reader() {
    let server = server(json!({ "id": "call_1" }));
    let mut client = client(agent(&server).allowed_tools(["log"]));
    client.ask("What happened?").await.unwrap();
    assert_eq!(names(&server.requests()[1]), ["log"], "it may not run");
    assert!(results(client.history())[0].ends_with("characters left out]"));
    let server = self::server(json!({ "id": "call_1" }));
    let hooks = Hooks::new().add_pre_tool_use(|event| async move {
        (event.tool_name == "read_result").then(|| HookDecision::block("not today"))
    });
    let mut client = self::client(agent(&server).hooks(hooks));
    client.ask("What happened?").await.unwrap();
    assert!(results(client.history())[1].contains("not today"));
}

/// A hook may have removed a secret from the result.
#[tokio::test]
async fn replaced_results_cannot_be_read() {
    let hooks = || {
        Hooks::new().add_post_tool_use(|event| async move {
            (event.tool_name == "log")
                .then(|| HookDecision::modify_result(json!("masked"), "secrets"))
        })
    };
    let server = server(json!({ "id": "call_1" }));
    let mut client = client(agent(&server).hooks(hooks()));
    client.ask("What happened?").await.unwrap();
    assert_eq!(names(&server.requests()[1]), ["log"]);
    let found = results(client.history());
    assert_eq!(found[0], "masked");
    assert!(found[1].contains("no result is stored under the id"), "{}", found[1]);
    let server = self::server(json!({ "id": "call_1" }));
    let options = agent(&server).hooks(hooks()).build().unwrap();
    let mut turn = options.turn();
    turn.prompt(Message::user("What happened?")).unwrap();
    drive(&mut turn, &options.steps()).await.unwrap();
    assert!(results(turn.history())[1].contains("no result is stored under the id"));
}

#[tokio::test]
async fn steps_offer_the_reader() {
    let server = server(json!({ "id": "call_1", "from_line": 300 }));
    let options = agent(&server).build().unwrap();
    let mut turn = options.turn();
    turn.prompt(Message::user("What happened?")).unwrap();
    assert_eq!(drive(&mut turn, &options.steps()).await.unwrap(), FinishReason::Stop);
    assert_eq!(names(&server.requests()[0]), ["log"]);
    assert_eq!(names(&server.requests()[1]), ["log", "read_result"]);
    let results = results(turn.history());
    assert_eq!(results[1], "Result \"call_1\", lines 300 to 300 of 300:\n300: line 300 of the log");
}

#[tokio::test]
async fn cleared_results_can_be_read() {
    let page = |number: u64| {
        Reply::new().call_with_id(format!("call_{number}"), "page", json!({ "n": number }))
    };
    let replies = (1..=6).map(page).chain([
        Reply::new().call_with_id("call_7", "read_result", json!({ "id": "call_1" })),
        Reply::text("Done."),
    ]);
    let server = MemoryServer::new(replies.fold(Script::new().strict(), Script::reply));
    let page = tool("page", "Returns a page").param("n", "integer").build(|input| async move {
        Ok(json!(format!("Page {}.\n{}", input["n"], "Bees live in hives. ".repeat(40))))
    });
    let policy = ContextPolicy::new(2_000).with_trigger(0.5).with_kept_results(1);
    let options = agent(&server).tool(page).executor(ExecutorOptions::new()).context(policy);
    let mut client = client(options.max_tool_iterations(20));
    client.ask("Read all pages.").await.unwrap();
    let results = results(client.history());
    let hint = "was cleared to save space. To read it, call read_result with the id \"call_1\".]";
    assert!(results[0].contains(hint), "{}", results[0]);
    assert!(results[6].contains("\n1: Page 1.\n2: Bees live"), "{}", results[6]);
    assert_eq!(names(&server.requests()[0]), ["log", "page"]);
    server.verify();
}

#[tokio::test]
async fn a_new_reader_explains_a_cache_miss() {
    let usage = |reply: Reply, cached: u64| {
        let details = json!({ "cached_tokens": cached });
        let usage = json!({ "prompt_tokens": 5_000, "completion_tokens": 2, "total_tokens": 5_002, "prompt_tokens_details": details });
        reply.without_usage().event(json!({ "choices": [], "usage": usage }))
    };
    let replies = [
        usage(Reply::new().say("Hello."), 4_000),
        usage(Reply::new().call_with_id("call_1", "log", json!({})), 4_000),
        usage(Reply::new().say("Done."), 10),
    ];
    let server = MemoryServer::new(replies.into_iter().fold(Script::new().strict(), Script::reply));
    let mut client = client(agent(&server));
    client.ask("Hello.").await.unwrap();
    client.send("Read the log.").await.unwrap();
    let mut misses = Vec::new();
    while let Some(event) = client.next_event().await.unwrap() {
        if let AgentEvent::CacheMiss(miss) = event {
            misses.push(miss.first_changed);
        }
    }
    assert_eq!(names(&server.requests()[2]), ["log", "read_result"]);
    assert_eq!(misses, [Some(ChangedPart::BeforeMessages)]);
}
