//! Conversations that are saved while they run, and programs that crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client, ErrorKind};
use oa_hooks::{HookDecision, Hooks, Permission};
use oa_session::{
    FaultPoint, FaultStore, FollowError, JsonlStore, MemoryStore, NewSession, Operation,
    SavedSession, SessionId, SessionStore, Timestamp,
};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::tool;
use oa_types::{ContentBlock, FinishReason, Message, MessageRole};
use serde_json::{Value, json};

/// A model of three steps, two of which have calls. Its answers depend only on the request, so a program that
/// continues later gets the same ones; after a refusal it answers differently.
fn model() -> MemoryServer {
    let script = Script::new().otherwise(Reply::by(|request| {
        let messages = request.messages();
        let results = messages.iter().filter(|message| message["role"] == "tool").count();
        let last = messages.last().map(|last| last["content"].to_string()).unwrap_or_default();
        match results {
            0 => Reply::new()
                .say("Two. ")
                .call("count", json!({"n": 1}))
                .call("count", json!({"n": 2})),
            2 => Reply::new().call("count", json!({"n": 3})),
            _ if last.contains("not accepted") => Reply::text("Good."),
            _ => Reply::text("Bad."),
        }
    }));
    MemoryServer::new(script)
}

/// Each call that ran, as often as it ran.
type Runs = Arc<[AtomicUsize; 4]>;

fn options(server: &MemoryServer, runs: &Runs) -> AgentOptions {
    builder(server, runs).build().expect("the options are right")
}

fn builder(server: &MemoryServer, runs: &Runs) -> AgentOptionsBuilder {
    let runs = Arc::clone(runs);
    let count = tool("count", "Counts").param("n", "integer").build(move |args| {
        let n = args["n"].as_u64().unwrap_or_default() as usize;
        let runs = Arc::clone(&runs);
        async move {
            runs[n].fetch_add(1, Ordering::Relaxed);
            Ok(json!(n))
        }
    });
    let hooks = Hooks::new().add_answer(|event| async move {
        (event.message.text() == "Bad.").then(|| HookDecision::retry("no"))
    });
    let options = AgentOptions::builder().model("any").transport(server.clone()).hooks(hooks);
    options.tool(count).auto_execute_tools(true)
}

fn session() -> NewSession {
    NewSession::new(SessionId::new("a").expect("it is an id"), Timestamp::from_millis(0))
}

async fn opened(store: &Arc<dyn SessionStore>) -> SavedSession {
    SavedSession::open_or_create(Arc::clone(store), session()).await.expect("it can be opened")
}

/// The number of answers that were not refused.
fn assistants(messages: &[Message]) -> usize {
    let answers = messages.iter().filter(|message| message.role == MessageRole::Assistant);
    answers.filter(|answer| answer.text() != "Bad.").count()
}

fn results(messages: &[Message]) -> Vec<Value> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let results = blocks.filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(result.content.clone()),
        _ => None,
    });
    results.collect()
}

/// Runs a program that dies after this number of events: its client and everything else is dropped.
async fn die_after(events: usize, store: &Arc<dyn SessionStore>, runs: &Runs) -> Option<Died> {
    let server = model();
    let mut saved = opened(store).await;
    let mut client = Client::new(options(&server, runs)).expect("nothing fails here");
    client.send("Go.").await.expect("nothing fails here");
    let mut turn = saved.follow(&mut client);
    for _ in 0..events {
        turn.next_event().await.expect("nothing fails here")?;
    }
    let history = turn.get_ref().history().to_vec();
    Some(Died { history })
}

struct Died {
    history: Vec<Message>,
}

/// A failed turn takes its prompt back, in the store too, although the caller stops reading at the error.
#[tokio::test(start_paused = true)]
async fn failed_turns_are_saved_without_prompts() {
    let lost = || Reply::text("Lost.").close_after(0);
    let script = Script::from([Reply::text("Hi.")]).otherwise(Reply::by(move |_| lost()));
    let server = MemoryServer::new(script);
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let mut saved = opened(&store).await;
    let mut client = Client::new(options(&server, &Runs::default())).unwrap();
    client.send("One.").await.unwrap();
    saved.follow(&mut client).finish().await.unwrap();
    client.send("Two.").await.unwrap();
    let failed = saved.follow(&mut client).finish().await.unwrap_err();
    assert!(matches!(failed, FollowError::Conversation(_)), "{failed}");
    assert_eq!(client.history().len(), 2);
    assert_eq!(opened(&store).await.session().conversation(), client.history());
}

async fn killed_after_each_event(store: impl Fn() -> Arc<dyn SessionStore>) {
    for events in 0.. {
        let runs = Runs::default();
        let store = store();
        let Some(Died { history }) = die_after(events, &store, &runs).await else {
            assert!(events > 20, "{events} events");
            let saved = opened(&store).await.session().conversation();
            assert_eq!(saved.last().expect("nothing fails here").text(), "Good.");
            assert_eq!(saved.len(), 7);
            break;
        };
        // Another program.
        let before: Vec<usize> = runs.iter().map(|runs| runs.load(Ordering::Relaxed)).collect();
        let mut saved = opened(&store).await;
        let mut messages = saved.session().conversation();
        if messages.is_empty() {
            assert_eq!(events, 0, "the prompt is saved before the first event");
            messages.push(Message::user("Go."));
        }
        assert_eq!(messages[0], Message::user("Go."), "the prompt is never lost");
        assert!(!messages.iter().any(|message| message.text().contains("Bad.")), "it was refused");
        assert!(assistants(&messages) + 1 >= assistants(&history), "{events}: {messages:#?}");
        let kept = results(&messages);
        let server = model();
        let mut client = Client::with_history(options(&server, &runs), messages.clone())
            .expect("nothing fails here");
        if messages.last().expect("nothing fails here").role != MessageRole::Assistant {
            client.continue_turn().await.expect("nothing fails here");
            saved.follow(&mut client).finish().await.expect("nothing fails here");
        }
        let texts: Vec<String> = client.history().iter().map(Message::text).collect();
        assert_eq!(texts, ["Go.", "Two. ", "", "", "", "", "Good."], "{events}");
        assert_eq!(opened(&store).await.session().messages, client.history());
        for n in 1..4 {
            let after = runs[n].load(Ordering::Relaxed);
            if kept.contains(&json!(n)) {
                assert_eq!((before[n], after), (1, 1), "{events}: it was saved with its result");
            }
            assert!((1..=2).contains(&after));
        }
    }
}

#[tokio::test]
async fn crashes_lose_at_most_one_answer() {
    killed_after_each_event(|| Arc::new(MemoryStore::new())).await;
}

#[tokio::test]
async fn crashes_lose_at_most_one_answer_in_files() {
    let folder = tempfile::tempdir().expect("nothing fails here");
    let number = AtomicUsize::new(0);
    killed_after_each_event(|| {
        let name = number.fetch_add(1, Ordering::Relaxed).to_string();
        Arc::new(JsonlStore::open(folder.path().join(name)).expect("nothing fails here"))
    })
    .await;
}

/// Returns the events of the same turn without `follow`.
async fn plain_events() -> Vec<String> {
    let (server, runs) = (model(), Runs::default());
    let mut client = Client::new(options(&server, &runs)).expect("nothing fails here");
    client.send("Go.").await.expect("nothing fails here");
    let mut events = Vec::new();
    while let Some(event) = client.next_event().await.expect("nothing fails here") {
        events.push(name(&event));
    }
    events
}

fn name(event: &AgentEvent) -> String {
    match event {
        AgentEvent::AnswerEnd(_) => "AnswerEnd".to_owned(),
        AgentEvent::Tool(event) => {
            let event = format!("{event:?}");
            event.split(['(', ' ', '{']).next().unwrap_or_default().to_owned()
        }
        event => format!("{event:?}"),
    }
}

#[tokio::test]
async fn checkpoints_keep_all_events() {
    let (server, runs) = (model(), Runs::default());
    let mut client = Client::new(options(&server, &runs)).expect("nothing fails here");
    client.send("Go.").await.expect("nothing fails here");
    let mut at = Vec::new();
    while let Some(checkpoint) = client.next_checkpoint().await.expect("nothing fails here") {
        at.push((checkpoint.messages, checkpoint.steps, checkpoint.waits));
        assert_eq!(client.history().len(), checkpoint.messages);
    }
    assert_eq!(at, [(4, 1, false), (6, 2, false), (7, 4, false)]);
    assert_eq!(client.next_checkpoint().await.expect("nothing fails here"), None);
    let mut events = Vec::new();
    while let Some(event) = client.next_event().await.expect("nothing fails here") {
        events.push(name(&event));
    }
    assert_eq!(events, plain_events().await);

    // Mixed, from any event on.
    for start in 0..events.len() {
        let (server, runs) = (model(), Runs::default());
        let mut client = Client::new(options(&server, &runs)).expect("nothing fails here");
        client.send("Go.").await.expect("nothing fails here");
        let mut mixed = Vec::new();
        for _ in 0..start {
            mixed.extend(client.next_event().await.expect("nothing fails here").as_ref().map(name));
        }
        client.next_checkpoint().await.expect("nothing fails here");
        while let Some(event) = client.next_event().await.expect("nothing fails here") {
            mixed.push(name(&event));
        }
        assert_eq!(mixed, events, "from {start}");
    }
}

/// An answered call, and a turn with nothing to continue.
#[tokio::test]
async fn continuing_keeps_events_of_checkpoints() {
    let script = Script::new().reply(Reply::new().call_with_id("c1", "count", json!({"n": 1})));
    let server = MemoryServer::new(script.reply(Reply::text("One.")));
    let options = AgentOptions::builder().model("any").transport(server.clone());
    let count = tool("count", "Counts").param("n", "integer").external();
    let options = options.tool(count).build().expect("the options are right");
    let mut client = Client::new(options).expect("nothing fails here");
    client.send("Go.").await.expect("nothing fails here");
    while client.next_checkpoint().await.expect("nothing fails here").is_some() {}
    client.add_tool_result("c1", json!(1)).expect("the call is open");
    client.continue_turn().await.expect("nothing fails here");
    while client.next_checkpoint().await.expect("nothing fails here").is_some() {}
    assert!(client.continue_turn().await.is_err());
    let mut events = Vec::new();
    while let Some(event) = client.next_event().await.expect("nothing fails here") {
        events.push(event);
    }
    let ends = events.iter().filter(|event| matches!(event, AgentEvent::TurnEnd(_))).count();
    let is_call = |event: &AgentEvent| matches!(event, AgentEvent::Block(ContentBlock::ToolUse(call)) if call.id == "c1");
    assert!(ends == 2 && events.iter().any(is_call), "{events:?}");
}

#[tokio::test]
async fn followers_get_all_events() {
    let (server, runs) = (model(), Runs::default());
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let mut saved = opened(&store).await;
    let mut client = Client::new(options(&server, &runs)).expect("nothing fails here");
    client.send("Go.").await.expect("nothing fails here");
    let mut turn = saved.follow(&mut client);
    let mut events = Vec::new();
    while let Some(event) = turn.next_event().await.expect("nothing fails here") {
        if let AgentEvent::TurnEnd(_) = event {
            let saved = store.load(&session().id).await.expect("nothing fails here");
            assert_eq!(saved.messages, turn.get_ref().history(), "saved before it is told");
        }
        events.push(name(&event));
    }
    assert_eq!(events, plain_events().await);
}

#[tokio::test]
async fn errors_before_a_checkpoint_keep_events() {
    let script = Script::new().reply(Reply::new().call("count", json!({"n": 1})));
    let server =
        MemoryServer::new(script.reply(Reply::text("word ".repeat(500)).close_after(1_500)));
    let mut client = Client::new(options(&server, &Runs::default())).expect("nothing fails here");
    client.send("Go.").await.expect("nothing fails here");
    assert_eq!(client.next_checkpoint().await.expect("nothing fails here").unwrap().messages, 3);
    assert_eq!(client.next_checkpoint().await.unwrap_err().kind(), ErrorKind::Stream);
    let mut events = Vec::new();
    while let Some(event) = client.next_event().await.expect("nothing fails here") {
        events.push(name(&event));
    }
    assert!(events.iter().any(|event| event == "CallComplete"), "{events:?}");
    assert_eq!(client.history().len(), 3);
}

#[tokio::test]
async fn waiting_turns_are_saved_as_pending() {
    let (server, runs) = (model(), Runs::default());
    let ask = |request: oa_hooks::PermissionRequest| async move {
        let is_last = request.tool_input["n"] == 3;
        if is_last { Permission::Later } else { Permission::Allow }
    };
    let build = || {
        let base = options(&server, &runs);
        let count = base.tool("count").cloned().expect("nothing fails here");
        let options = AgentOptions::builder().model("any").transport(server.clone());
        let options = options.tool(count).auto_execute_tools(true).can_use_tool(ask);
        options.permission_mode(oa_hooks::PermissionMode::Ask).build().expect("nothing fails here")
    };
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let mut saved = opened(&store).await;
    let mut client = Client::new(build()).expect("nothing fails here");
    client.send("Go.").await.expect("nothing fails here");
    saved.follow(&mut client).finish().await.expect("nothing fails here");
    assert_eq!(client.finish_reason(), Some(&FinishReason::ApprovalPending));
    drop(client);

    let mut saved = opened(&store).await;
    // Only the first step is among the messages: the step with the open call is pending.
    assert_eq!(saved.session().messages.len(), 4);
    assert!(saved.session().info.is_pending);
    let mut client =
        Client::resume(build(), saved.session().conversation()).expect("nothing fails here");
    let call = client.pending_approvals()[0].id.clone();
    client.deny(&call, "no").expect("nothing fails here");
    client.continue_turn().await.expect("nothing fails here");
    saved.follow(&mut client).finish().await.expect("nothing fails here");
    assert_eq!(saved.session().messages, client.history());
    assert_eq!((client.history().len(), runs[3].load(Ordering::Relaxed)), (7, 0));
    assert!(!saved.session().info.is_pending);
}

#[tokio::test]
async fn interrupted_turns_are_saved() {
    let (server, runs) = (model(), Runs::default());
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let mut saved = opened(&store).await;
    let mut client = Client::new(options(&server, &runs)).expect("nothing fails here");
    client.send("Go.").await.expect("nothing fails here");
    let mut turn = saved.follow(&mut client);
    let mut ended = None;
    while let Some(event) = turn.next_event().await.expect("nothing fails here") {
        match event {
            AgentEvent::Block(ContentBlock::ToolUse(_)) => turn.get_mut().interrupt(),
            AgentEvent::TurnEnd(reason) => ended = Some(reason),
            _ => {}
        }
    }
    assert_eq!(ended, Some(FinishReason::Interrupted));
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    assert_eq!(saved.session().messages, client.history());
    assert_eq!(assistants(client.history()), 1);
}

#[tokio::test]
async fn store_errors_do_not_end_the_turn() {
    let is_full = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_full);
    let store = FaultStore::new(MemoryStore::new(), move |point| {
        let is_append =
            matches!(point, FaultPoint::Before(Operation::Append | Operation::AppendOnce));
        let fails = is_append && seen.load(Ordering::Relaxed);
        let full = oa_session::Error::new(oa_session::ErrorKind::Io, "the disk is full");
        async move { if fails { Err(full) } else { Ok(()) } }
    });
    let store: Arc<dyn SessionStore> = Arc::new(store);
    let (server, runs) = (model(), Runs::default());
    let mut saved = opened(&store).await;
    let mut client = Client::new(options(&server, &runs)).expect("nothing fails here");
    client.send("Go.").await.expect("nothing fails here");
    let mut turn = saved.follow(&mut client);
    is_full.store(true, Ordering::Relaxed);
    let (mut events, mut errors) = (Vec::new(), 0);
    loop {
        match turn.next_event().await {
            Ok(Some(event)) => events.push(name(&event)),
            Ok(None) => break,
            Err(FollowError::Store(error)) => {
                assert_eq!(error.kind(), oa_session::ErrorKind::Io);
                errors += 1;
                // The disk has room again once the second step is saved.
                is_full.store(errors < 3, Ordering::Relaxed);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(errors, 3, "the prompt and two steps");
    assert_eq!(events, plain_events().await);
    assert_eq!(saved.session().messages, client.history());
    assert_eq!(client.history().len(), 7);
}

#[tokio::test]
async fn failed_turns_save_what_history_has() {
    let script = Script::new().reply(Reply::text("word ".repeat(500)).close_after(1_500));
    let server = MemoryServer::new(script);
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let mut saved = opened(&store).await;
    let mut client = Client::new(options(&server, &Runs::default())).expect("nothing fails here");
    client.send("Go.").await.expect("nothing fails here");
    let mut turn = saved.follow(&mut client);
    let error = loop {
        match turn.next_event().await {
            Ok(event) => assert!(event.is_some(), "an error comes"),
            Err(error) => break error,
        }
    };
    let FollowError::Conversation(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), ErrorKind::Stream);
    assert!(turn.next_event().await.expect("nothing fails here").is_none());
    assert_eq!(saved.session().messages, client.history());
}

/// A model that asks a person and counts, and then ends.
fn asking() -> MemoryServer {
    MemoryServer::new(Script::new().strict().otherwise(Reply::by(|request| {
        let has_results = request.messages().iter().any(|message| message["role"] == "tool");
        match has_results {
            false => Reply::new().call_with_id("1", "ask", json!({})).call_with_id(
                "2",
                "count",
                json!({"n": 1}),
            ),
            true => Reply::text("Good."),
        }
    })))
}

/// A call of an external tool waits through any number of programs, each of which dies after some event.
#[tokio::test]
async fn external_calls_wait_through_restarts() {
    let asks = |runs: &Runs| {
        let ask = tool("ask", "Asks").external();
        builder(&asking(), runs).tool(ask).build().expect("the options are right")
    };
    for events in 0.. {
        let (runs, store) =
            (Runs::default(), Arc::new(MemoryStore::new()) as Arc<dyn SessionStore>);
        let mut saved = opened(&store).await;
        let mut client = Client::new(asks(&runs)).expect("nothing fails here");
        client.send("Go.").await.expect("nothing fails here");
        let mut turn = saved.follow(&mut client);
        let mut is_over = false;
        for _ in 0..events {
            is_over |= turn.next_event().await.expect("nothing fails here").is_none();
        }
        drop((client, saved));
        // Each of the other programs dies too: before the answer, and after it.
        for round in 0..3 {
            let mut saved = opened(&store).await;
            let mut messages = saved.session().conversation();
            if messages.is_empty() {
                messages.push(Message::user("Go."));
            }
            let mut client = Client::resume(asks(&runs), messages).expect("nothing fails here");
            if client.history().len() == 1 {
                client.continue_turn().await.expect("nothing fails here");
                saved.follow(&mut client).finish().await.expect("nothing fails here");
            }
            if round == 0 {
                continue;
            }
            if round == 1 {
                assert_eq!(client.pending_calls().len(), 1, "after {events} events");
                client.add_tool_result("1", json!("Yes.")).expect("it waits");
                // Once the turn goes on, the result is saved with the next answer at the latest.
                client.continue_turn().await.expect("nothing fails here");
                saved.follow(&mut client).finish().await.expect("nothing fails here");
            }
            assert!(client.pending_calls().is_empty());
            assert_eq!(client.history().last().expect("there are some").text(), "Good.");
            assert_eq!(results(client.history()), [json!("Yes."), json!(1)]);
            assert!(
                (1..=2).contains(&runs[1].load(Ordering::Relaxed)),
                "twice if it was not saved"
            );
        }
        if is_over {
            break;
        }
    }
}

/// Neither a model nor a tool can make a conversation that cannot be stored.
#[tokio::test]
async fn deep_values_can_be_saved() {
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let call = |levels| json!({ "value": nested(levels) }).to_string();
    let calls = Reply::new().call("echo", call(98)).call("echo", call(99)).call("echo", call(120));
    let server = MemoryServer::new(Script::new().strict().reply(calls).reply(Reply::text("Done.")));
    let echo = tool("echo", "Returns its arguments").schema(json!({"type": "object"}));
    let echo = echo.build(|args| async move { Ok(json!([args, args])) });
    let auto = || AgentOptions::builder().model("any").transport(server.clone());
    let options = auto().tool(echo.clone()).auto_execute_tools(true).build();
    let mut client = Client::new(options.expect("the options are right")).unwrap();
    client.ask("Go.").await.expect("nothing fails here");
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    opened(&store).await.save_now(client.history()).await.expect("it can be stored");
    assert_eq!(store.load(&session().id).await.unwrap().messages, client.history());
    let sent = server.requests()[1].messages().to_vec();
    let results: Vec<_> = sent.iter().filter(|it| it["role"] == "tool").collect();
    assert_eq!(results[0]["content"], format!("[{0},{0}]", call(98)));
    assert_eq!(results[1]["content"], format!("[{0},{0}]", call(99)));
    assert!(results[2]["content"].as_str().unwrap().contains("nested more than 100 levels"));

    // Nor a result of the caller.
    let server = MemoryServer::new([Reply::new().call_with_id("c", "echo", json!({}))]);
    let options = AgentOptions::builder().model("any").transport(server.clone()).tool(echo);
    let mut client = Client::new(options.build().expect("the options are right")).unwrap();
    client.ask("Go.").await.expect("nothing fails here");
    client.add_tool_result("c", nested(120)).expect("the call is open");
    store.delete(&session().id).await.expect("nothing fails here");
    opened(&store).await.save_now(client.history()).await.expect("it can be stored");
}

/// A function that returns the agent's error calls stores and follows turns with `?`.
#[tokio::test]
async fn errors_of_stores_become_errors_of_agents() {
    async fn run(name: &str, is_full: bool) -> oa_client::Result<()> {
        let store = FaultStore::new(MemoryStore::new(), move |point| async move {
            match point {
                FaultPoint::Before(Operation::Append) if is_full => {
                    Err(oa_session::Error::new(oa_session::ErrorKind::Io, "the disk is full"))
                }
                _ => Ok(()),
            }
        });
        let mut saved =
            SavedSession::open_or_create(Arc::new(store), NewSession::now(name)?).await?;
        let model = MemoryServer::new(Script::new().otherwise(Reply::text("Hello.")));
        let options = AgentOptions::builder().model("any").transport(model).build()?;
        let mut client = Client::resume(options, saved.session().conversation())?;
        client.send("Hi.").await?;
        let mut turn = saved.follow(&mut client);
        while turn.next_event().await?.is_some() {}
        Ok(())
    }

    run("a", false).await.unwrap();
    assert_eq!(run("", false).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    let error = run("a", true).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert_eq!(error.to_string(), "the conversation could not be saved: the disk is full");
    let cause = error.cause().and_then(|cause| cause.downcast_ref::<oa_session::Error>()).unwrap();
    assert_eq!(cause.kind(), oa_session::ErrorKind::Io);
}
