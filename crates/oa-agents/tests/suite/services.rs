//! Whole agents inside tower middleware, and inside other agents.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oa_agents::{AgentService, AgentStream, AgentTool};
use oa_client::{AgentEvent, AgentOptions, Client, ErrorKind};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::tool;
use oa_types::{ContentBlock, FinishReason, Message};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::{Service, ServiceBuilder, ServiceExt};

use suite::talk::{auto, client, manual, stalling, strict};

const SECOND: Duration = Duration::from_secs(1);

async fn text(mut events: AgentStream) -> String {
    let mut text = String::new();
    while let Some(event) = events.next().await {
        if let AgentEvent::Block(ContentBlock::Text(block)) = event.expect("nothing fails here") {
            text += &block.text;
        }
    }
    text
}

#[tokio::test]
async fn each_prompt_starts_a_conversation() {
    let server = MemoryServer::new(
        Script::new()
            .otherwise(Reply::by(|request| {
                Reply::text(format!("{} messages", request.messages().len()))
            }))
            .strict(),
    );
    let before = vec![
        Message::user("Hello."),
        Message::assistant(vec![oa_types::TextBlock::new("Hi.").into()]),
    ];
    let mut agent =
        AgentService::new(manual(&server).build().unwrap()).with_history(before.clone());
    for _ in 0..2 {
        let events = agent.ready().await.unwrap().call(Message::user("How many?")).await.unwrap();
        assert_eq!(text(events).await, "3 messages");
    }
    // The conversation can be continued.
    let events = agent.call(Message::user("How many?")).await.unwrap();
    assert!(!events.client().history().is_empty());
    let mut client = events.into_client();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(client.ask("And now?").await.unwrap().text, "5 messages");
}

#[tokio::test(start_paused = true)]
async fn tower_layers_wrap_whole_agents() {
    let server =
        MemoryServer::new(Script::new().otherwise(Reply::text("Done.").delay_head(SECOND)));
    let agent = AgentService::new(manual(&server).build().unwrap());
    let limited = ServiceBuilder::new().concurrency_limit(2).service(agent.clone());
    let began = Instant::now();
    let asked = (0..6).map(|_| {
        let mut agent = limited.clone();
        tokio::spawn(async move {
            text(agent.ready().await.unwrap().call(Message::user("Go.")).await.unwrap()).await
        })
    });
    for answer in asked.collect::<Vec<_>>() {
        assert_eq!(answer.await.unwrap(), "Done.");
    }
    // Two at a time.
    assert_eq!(began.elapsed().as_secs(), 3);

    let hasty = ServiceBuilder::new().timeout(SECOND / 2).service(agent);
    let error = hasty.oneshot(Message::user("Go.")).await.unwrap_err();
    assert!(error.is::<tower::timeout::error::Elapsed>(), "{error}");
    assert!(server.requests().last().unwrap().aborted(), "what is dropped is closed");
}

#[tokio::test]
async fn stream_ends_with_the_turn_or_an_error() {
    let server =
        strict([Reply::error(400, "no"), Reply::text("Yes.").without_done().close_after(250)]);
    let mut agent = AgentService::new(manual(&server).build().unwrap());
    let error = agent.call(Message::user("Go.")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Api);
    let mut events = agent.call(Message::user("Go.")).await.unwrap();
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event);
    }
    assert_eq!(last.unwrap().unwrap_err().kind(), ErrorKind::Stream);
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn agent_tool_returns_its_last_text() {
    let inner_model =
        strict([Reply::text("I look. ").call("look", json!({})), Reply::text("A cat.")]);
    let outer_model = strict([
        Reply::new().call("helper", json!({"prompt": "What is there?"})),
        Reply::text("There is a cat."),
    ]);
    let look = tool("look", "Looks").build(|_| async { Ok(json!("a cat")) });
    let inner = auto(&inner_model).tool(look).build().unwrap();
    let helper = AgentTool::new("helper", "Answers questions", inner).unwrap();
    let mut outer = client(auto(&outer_model).tool(helper));
    outer.send("Ask.").await.unwrap();
    let (mut told, mut result) = (Vec::new(), None);
    while let Some(event) = outer.next_event().await.unwrap() {
        match event {
            AgentEvent::Nested(nested) => match nested.event {
                AgentEvent::Block(ContentBlock::ToolUse(call)) => told.push(call.name),
                AgentEvent::Block(ContentBlock::Text(block)) => told.push(block.text),
                _ => {}
            },
            AgentEvent::Block(ContentBlock::ToolResult(block)) => result = Some(block.content),
            _ => {}
        }
    }
    assert_eq!(result, Some(json!("A cat.")));
    assert!(told.contains(&"look".to_owned()), "{told:?}");
    assert!(told.iter().any(|said| said.contains("cat")), "{told:?}");
    assert_eq!(outer_model.requests()[1].messages()[2]["content"], "A cat.");
}

#[tokio::test(start_paused = true)]
async fn cut_off_answers_are_marked_incomplete() {
    let look = |id: &str| Reply::text("I look.").call_with_id(id, "look", json!({}));
    for (replies, text, reason) in [
        (vec![Reply::text("A c").finish("length")], "A c", "length"),
        (vec![look("c1"), look("c2")], "I look.", "max_tool_iterations"),
        (vec![look("c1"), stalling(&["A ", "c"])], "A c", "max_run_time"),
        (vec![stalling(&["A ", "c"])], "A c", "max_run_time"),
        (vec![Reply::text("A c").without_finish().without_done()], "A c", "unspecified"),
    ] {
        let inner_model = MemoryServer::new(Script::from(replies));
        let outer_model = strict([
            Reply::new().call("helper", json!({"prompt": "What is there?"})),
            Reply::text("I do not know."),
        ]);
        let tool = tool("look", "Looks").build(|_| async { Ok(json!("a cat")) });
        let inner = auto(&inner_model).tool(tool).max_tool_iterations(1).max_run_time(5);
        let helper = AgentTool::new("helper", "Answers", inner.build().unwrap()).unwrap();
        let mut outer = client(auto(&outer_model).tool(helper));
        outer.ask("Ask.").await.unwrap();
        let requests = outer_model.requests();
        let read = requests[1].messages()[2]["content"].as_str().unwrap();
        let read: serde_json::Value = serde_json::from_str(read).unwrap();
        assert_eq!(read, json!({"text": text, "incomplete": reason}));
    }
}

#[tokio::test]
async fn text_before_a_call_is_no_answer() {
    let look = Reply::text("I look.").call_with_id("c1", "look", json!({}));
    let inner_model = strict([look, Reply::new().think("Hm.")]);
    let outer_model = strict([
        Reply::new().call("helper", json!({"prompt": "What is there?"})),
        Reply::text("I do not know."),
    ]);
    let tool = tool("look", "Looks").build(|_| async { Ok(json!("a cat")) });
    let inner = auto(&inner_model).tool(tool).build().unwrap();
    let helper = AgentTool::new("helper", "Answers", inner).unwrap();
    client(auto(&outer_model).tool(helper)).ask("Ask.").await.unwrap();
    let requests = outer_model.requests();
    let read = requests[1].messages()[2]["content"].as_str().unwrap().to_owned();
    assert!(read.contains("no answer: the agent ended with stop"), "{read}");
}

#[tokio::test(start_paused = true)]
async fn outer_interrupt_stops_the_inner_agent() {
    let inner_model = MemoryServer::new(Reply::text("Never.").delay_head(SECOND * 60));
    let outer_model =
        strict([Reply::new().call("helper", json!({"prompt": "Go."})), Reply::text("Done.")]);
    let inner = manual(&inner_model).build().unwrap();
    let mut outer =
        client(auto(&outer_model).tool(AgentTool::new("helper", "Helps", inner).unwrap()));
    let handle = outer.interrupt_handle();
    tokio::spawn(async move {
        sleep(SECOND).await;
        handle.interrupt();
    });
    let began = Instant::now();
    outer.ask("Go.").await.unwrap();
    assert_eq!(began.elapsed(), SECOND);
    assert_eq!(outer.finish_reason(), Some(&FinishReason::Interrupted));
    assert!(inner_model.requests()[0].aborted());
    assert_eq!(outer.ask("On.").await.unwrap().text, "Done.");
}

#[tokio::test]
async fn inner_failures_are_results_for_the_model() {
    let inner_model =
        MemoryServer::new(Script::new().otherwise(Reply::error(400, "no such model")));
    let outer_model = strict([
        Reply::new().call("helper", json!({"prompt": "Go."})),
        Reply::new().call("helper", json!({})),
        Reply::text("It cannot be asked."),
    ]);
    let inner = manual(&inner_model).build().unwrap();
    let mut outer =
        client(auto(&outer_model).tool(AgentTool::new("helper", "Helps", inner).unwrap()));
    assert_eq!(outer.ask("Go.").await.unwrap().text, "It cannot be asked.");
    let told =
        |place: usize| outer_model.requests()[place].messages()[2 * place]["content"].clone();
    assert!(told(1).to_string().contains("no such model"), "{}", told(1));
    assert!(told(2).to_string().contains("prompt"), "{}", told(2));
    assert_eq!(inner_model.requests().len(), 1, "without a prompt it is not asked");
}

#[test]
fn agents_with_manual_tools_are_rejected() {
    let look = tool("look", "Looks").build(|_| async { Ok(json!("a cat")) });
    let idle = AgentOptions::builder().model("any").tool(look).build().unwrap();
    let error = AgentTool::new("helper", "Helps", idle).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("auto_execute_tools"), "{error}");
}

#[tokio::test]
async fn agents_in_agents_run_side_by_side() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let inner_model = MemoryServer::new(Script::new().otherwise(Reply::by(move |_| {
        Reply::text(format!("Poem {}.", counted.fetch_add(1, Ordering::Relaxed)))
    })));
    let outer_model = strict([
        (0..4).fold(Reply::new(), |reply, _| reply.call("poet", json!({"prompt": "A poem."}))),
        Reply::text("All four."),
    ]);
    let poet = AgentTool::new("poet", "Writes", manual(&inner_model).build().unwrap()).unwrap();
    let mut outer: Client = client(auto(&outer_model).tool(poet));
    assert_eq!(outer.ask("Go.").await.unwrap().text, "All four.");
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}
