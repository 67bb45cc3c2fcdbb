//! Sub-agents: their events, their permissions, and how they end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oa_agents::AgentTool;
use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client};
use oa_executor::{ExecutorOptions, ToolEvent, TruncationPolicy};
use oa_hooks::{Hooks, Permission, ToolRule};
use oa_terminal::TerminalPrompt;
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::{Tool, tool};
use oa_types::{ContentBlock, FinishReason, Message, Outcome};
use serde_json::json;
use tokio::time::{Instant, sleep};

pub(crate) fn auto(server: &MemoryServer) -> AgentOptionsBuilder {
    AgentOptions::builder().model("any").transport(server.clone()).auto_execute_tools(true)
}

pub(crate) fn agent(name: &str, options: AgentOptionsBuilder) -> AgentTool {
    let options = options.build().expect("good options");
    AgentTool::new(name, "Helps", options).expect("a good agent")
}

pub(crate) fn ask(name: &str) -> Reply {
    Reply::new().call(name, json!({ "prompt": "Go." }))
}

/// A tool that counts how often it runs.
fn work(ran: &Arc<Mutex<usize>>) -> impl Tool + use<> {
    let ran = Arc::clone(ran);
    tool("work", "Works").build(move |_| {
        *ran.lock().expect("no test panics") += 1;
        async { Ok(json!("done")) }
    })
}

#[test]
fn permissions_may_name_tools_of_sub_agents() {
    let server = MemoryServer::new(Script::new());
    let inner = agent("inner", auto(&server).tool(work(&Arc::default())));
    let outer = agent("outer", auto(&server).tool(inner));
    let build = |rule| auto(&server).tool(outer.clone()).tool_rule(rule).build();
    for name in ["work", "inner", "outer", "wo*", "none*"] {
        assert!(build(ToolRule::deny(name)).is_ok(), "{name}");
    }
    let error = build(ToolRule::deny("wrok")).unwrap_err().to_string();
    assert_eq!(
        error,
        r#"there is no tool "wrok", which permissions refer to; a tool that is added later needs a pattern, such as "wrok*""#
    );
    let error = build(ToolRule::deny_category("files")).unwrap_err().to_string();
    assert_eq!(error, r#"no tool has the category "files", which a rule refers to"#);
    // Hooks see only the agent's own calls.
    let hooks = Hooks::new().add_pre_tool_use(|_| async { None }).for_tools(["work"]);
    let error = auto(&server).tool(outer).hooks(hooks).build().unwrap_err().to_string();
    assert_eq!(
        error,
        r#"there is no tool "work", which hooks refer to; a tool that is added later needs a pattern, such as "work*""#
    );
}

/// The events of one call of a sub-agent.
#[derive(Debug, Default)]
struct Told {
    started: bool,
    text: String,
    events: Vec<AgentEvent>,
    result: Option<String>,
}

async fn events(client: &mut Client) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Some(event) = client.next_event().await.expect("nothing fails here") {
        events.push(event);
    }
    events
}

/// Sorts the events of sub-agents by their calls, and checks that they lie between start and completion.
fn by_call(events: &[AgentEvent], calls: &[&str]) -> Vec<Told> {
    let mut told: Vec<Told> = calls.iter().map(|_| Told::default()).collect();
    let place = |id: &str| calls.iter().position(|call| *call == id).expect("a known call");
    for event in events {
        match event {
            AgentEvent::Tool(ToolEvent::CallStart(start)) => {
                told[place(&start.call_id)].started = true;
            }
            AgentEvent::Nested(nested) => {
                let told = &mut told[place(&nested.call_id)];
                assert!(told.started && told.result.is_none(), "{nested:?}");
                if let AgentEvent::Block(ContentBlock::Text(block)) = &nested.event {
                    told.text += &block.text;
                }
                told.events.push(nested.event.clone());
            }
            AgentEvent::Tool(ToolEvent::CallComplete(result)) => {
                let told = &mut told[place(&result.call_id)];
                told.result = Some(result.result.as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn parallel_sub_agents_lose_no_events() {
    let words = |word: &str| format!("{word} ").repeat(200).trim_end().to_owned();
    let tick = Duration::from_millis(5);
    let one = MemoryServer::new(Reply::text(words("one")).delay(tick));
    let two = MemoryServer::new(Reply::text(words("two")).delay(tick));
    let calls = Reply::new().call_with_id("c1", "one", json!({ "prompt": "Go." })).call_with_id(
        "c2",
        "two",
        json!({ "prompt": "Go." }),
    );
    let model = MemoryServer::new([calls, Reply::text("Both.")]);
    let options = auto(&model).tool(agent("one", auto(&one))).tool(agent("two", auto(&two)));
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.send("Go.").await.unwrap();
    let (mut all, mut order) = (Vec::new(), Vec::new());
    while let Some(event) = client.next_event().await.unwrap() {
        if let AgentEvent::Nested(nested) = &event {
            order.push(nested.agent.clone());
            // A reader slower than both, so that the queue between them is full.
            sleep(tick).await;
        }
        all.push(event);
    }
    let told = by_call(&all, &["c1", "c2"]);
    assert_eq!((&*told[0].text, &*told[1].text), (&*words("one"), &*words("two")));
    for told in &told {
        assert_eq!(told.result.as_ref(), Some(&told.text));
        assert!(matches!(told.events.first(), Some(AgentEvent::AnswerStart)));
        assert_eq!(told.events.last(), Some(&AgentEvent::TurnEnd(FinishReason::Stop)));
    }
    let changes = order.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes > 10, "they take turns: {changes}");
}

#[tokio::test]
async fn a_sub_agent_of_a_sub_agent_is_nested_twice() {
    let ran = Arc::default();
    let inner = MemoryServer::new([Reply::new().call("work", json!({})), Reply::text("Inner.")]);
    let middle = MemoryServer::new([ask("inner"), Reply::text("Middle.")]);
    let outer = MemoryServer::new([ask("middle"), Reply::text("Outer.")]);
    let asked = Arc::<Mutex<Vec<Vec<String>>>>::default();
    let paths = Arc::clone(&asked);
    let middle = auto(&middle).tool(agent("inner", auto(&inner).tool(work(&ran))));
    let options = auto(&outer).tool(agent("middle", middle)).can_use_tool(move |request| {
        paths.lock().unwrap().push([&request.agents[..], &[request.tool_name]].concat());
        async { Permission::Allow }
    });
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.send("Go.").await.unwrap();
    let mut inner = String::new();
    for event in events(&mut client).await {
        // All of it is JSON.
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<AgentEvent>(&json).unwrap(), event);
        if let AgentEvent::Nested(nested) = event
            && let AgentEvent::Nested(twice) = nested.event
            && let AgentEvent::Block(ContentBlock::Text(text)) = twice.event
        {
            assert_eq!((&*nested.agent, &*twice.agent), ("middle", "inner"));
            inner += &text.text;
        }
    }
    assert_eq!((inner.as_str(), *ran.lock().unwrap()), ("Inner.", 1));
    let asked: Vec<String> = asked.lock().unwrap().iter().map(|path| path.join(" > ")).collect();
    assert_eq!(asked, ["middle", "middle > inner", "middle > inner > work"]);
}

#[tokio::test]
async fn rules_that_deny_hold_in_sub_agents() {
    let ran = Arc::default();
    let helper =
        MemoryServer::new([Reply::new().call("work", json!({})), Reply::text("I may not.")]);
    let model = MemoryServer::new([ask("helper"), Reply::text("Well.")]);
    // The helper would allow everything itself.
    let helper = auto(&helper).tool(work(&ran)).tool_rule(ToolRule::allow("*"));
    let options = auto(&model).tool(agent("helper", helper)).tool_rule(ToolRule::deny("work"));
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.send("Go.").await.unwrap();
    let denied = events(&mut client).await.into_iter().any(|event| {
        matches!(event, AgentEvent::Nested(nested) if matches!(nested.event, AgentEvent::CallDenied(_)))
    });
    assert!(denied && *ran.lock().unwrap() == 0);
}

#[tokio::test]
async fn disallowed_tools_are_not_offered_inside() {
    let ran = Arc::default();
    let server = MemoryServer::new(Reply::text("I have no tools."));
    let model = MemoryServer::new([ask("helper"), Reply::text("Well.")]);
    let helper = agent("helper", auto(&server).tool(work(&ran)));
    let options = auto(&model).tool(helper).disallowed_tools(["work"]);
    // A name that no tool of the outer agent has: it may be one of its sub-agents.
    let mut client = Client::new(options.build().unwrap()).unwrap();
    assert_eq!(client.ask("Go.").await.unwrap().text, "Well.");
    assert!(server.requests()[0].json().get("tools").is_none());
}

#[tokio::test]
async fn a_person_at_a_terminal_reads_the_path() {
    let written = Arc::<Mutex<Vec<u8>>>::default();
    struct Screen(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no test panics").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let ran = Arc::default();
    let server = MemoryServer::new([Reply::new().call("work", json!({})), Reply::text("Done.")]);
    let model = MemoryServer::new([ask("helper"), Reply::text("Well.")]);
    let person = TerminalPrompt::new(&b"y\ny\n"[..], Screen(Arc::clone(&written)));
    let helper = agent("helper", auto(&server).tool(work(&ran)));
    let options = auto(&model).tool(helper).can_use_tool(move |request| person.ask(request));
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.ask("Go.").await.unwrap();
    let written = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    assert!(written.contains(r#"helper({"prompt":"Go."})?"#), "{written}");
    assert!(written.contains("helper > work({})?"), "{written}");
    assert_eq!(*ran.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn interrupt_stops_sub_agents_at_once() {
    let inner = MemoryServer::new(Reply::text("a b c d").delay(Duration::from_secs(60)));
    let middle = MemoryServer::new([ask("inner")]);
    let outer = MemoryServer::new([ask("middle"), Reply::text("Done.")]);
    let middle = auto(&middle).tool(agent("inner", auto(&inner)));
    let options = auto(&outer).tool(agent("middle", middle)).build().unwrap();
    let mut client = Client::new(options).unwrap();
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    client.send("Go.").await.unwrap();
    let began = Instant::now();
    let handle = client.interrupt_handle();
    loop {
        match client.next_event().await.unwrap() {
            Some(AgentEvent::Nested(nested)) if matches!(nested.event, AgentEvent::Nested(_)) => {
                handle.interrupt();
                break;
            }
            Some(_) => {}
            None => panic!("the inner agent says something"),
        }
    }
    let rest = events(&mut client).await;
    assert!(!rest.iter().any(|event| matches!(event, AgentEvent::Nested(_))), "{rest:?}");
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(inner.requests()[0].aborted());
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
    assert_eq!(client.ask("On.").await.unwrap().text, "Done.");
}

#[tokio::test]
async fn server_errors_fail_the_outer_call() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::error(400, "no such model")));
    let model = MemoryServer::new([ask("helper"), Reply::text("It failed.")]);
    let options = auto(&model).tool(agent("helper", auto(&server))).build().unwrap();
    let mut client = Client::new(options).unwrap();
    client.send("Go.").await.unwrap();
    let ended = events(&mut client).await.into_iter().find_map(|event| match event {
        AgentEvent::Tool(ToolEvent::CallComplete(result)) => Some(result),
        _ => None,
    });
    let ended = ended.unwrap();
    assert_eq!(ended.outcome, Outcome::Failed);
    assert!(ended.result.to_string().contains("no such model"), "{}", ended.result);
    assert_eq!(client.history().last().map(Message::text).as_deref(), Some("It failed."));
}

#[tokio::test]
async fn too_deep_nesting_is_an_error() {
    let inner = MemoryServer::new(Script::new().otherwise(Reply::text("Never.")));
    let middle = MemoryServer::new([ask("inner"), Reply::text("I am alone.")]);
    let outer = MemoryServer::new([ask("middle"), Reply::text("Well.")]);
    let middle_options = auto(&middle).tool(agent("inner", auto(&inner)).max_depth(1));
    let options = auto(&outer).tool(agent("middle", middle_options)).build().unwrap();
    assert_eq!(Client::new(options).unwrap().ask("Go.").await.unwrap().text, "Well.");
    assert!(inner.requests().is_empty());
    let read = middle.requests()[1].messages()[2]["content"].to_string();
    assert!(read.contains("sub-agents may be nested at most 1 deep: middle"), "{read}");
}

/// The tool that reads full results is there already when the tools are offered again, less those of the parent's list.
#[tokio::test]
async fn full_results_respect_disallowed_tools() {
    let ran = Arc::default();
    let inner = MemoryServer::new(
        Script::new().reply(Reply::new().call("work", json!({}))).otherwise(Reply::text("No.")),
    );
    let sub = auto(&inner).tool(work(&ran)).offer_full_results(true);
    let call = Reply::new().call_with_id("c1", "helper", json!({ "prompt": "Go." }));
    let outer = MemoryServer::new([call, Reply::text("Well.")]);
    let options = auto(&outer).tool(agent("helper", sub)).disallowed_tools(["work"]);
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.send("Go").await.unwrap();
    let all = events(&mut client).await;
    assert_eq!(by_call(&all, &["c1"])[0].result.as_deref(), Some("No."), "{all:?}");
    assert_eq!(*ran.lock().unwrap(), 0);
    let offered = String::from_utf8_lossy(inner.requests()[0].body()).into_owned();
    assert!(!offered.contains("Works"), "{offered}");
}

/// Both the call whose result is truncated and the one that reads it stand beside a call of a sub-agent.
#[tokio::test]
async fn full_results_are_read_beside_sub_agents() {
    let inner = MemoryServer::new(Script::new().otherwise(Reply::text("Well.")));
    let read = json!({ "id": "log", "search": "line 299" });
    let outer = MemoryServer::new([
        ask("helper").call_with_id("log", "log", json!({})),
        ask("helper").call_with_id("read", "read_result", read),
        Reply::text("Done."),
    ]);
    let text: String = (1..=300).map(|number| format!("line {number} of the log\n")).collect();
    let log = tool("log", "Logs").build(move |_| std::future::ready(Ok(json!(text))));
    let executor = ExecutorOptions::new().truncation(TruncationPolicy::max_chars(500));
    let options = auto(&outer).tool(log).tool(agent("helper", auto(&inner))).executor(executor);
    let mut client = Client::new(options.offer_full_results(true).build().unwrap()).unwrap();
    client.ask("Go").await.unwrap();
    let results = client.history().iter().flat_map(|message| &message.content);
    let found = results.filter_map(|block| match block {
        ContentBlock::ToolResult(result) if result.tool_use_id == "read" => result.content.as_str(),
        _ => None,
    });
    let found: Vec<&str> = found.collect();
    assert!(found.len() == 1 && found[0].contains("\n299: line 299 of the log"), "{found:?}");
}
