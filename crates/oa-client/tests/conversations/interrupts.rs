//! Interrupts: whatever is in progress ends immediately, and the conversation continues.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use oa_client::{AgentEvent, AgentOptions, Client, InterruptHandle};
use oa_executor::{ExecutionMode, ExecutorOptions};
use oa_hooks::{HookDecision, Hooks};
use oa_testkit::{Cut, MemoryServer, Reply, Script, SocketServer};
use oa_tools::tool;
use oa_types::{ContentBlock, FinishReason};
use serde_json::json;
use tokio::time::Instant;

use suite::talk::{
    Alive, Log, adder, auto, client, echo, hanging, interrupt_after, line, manual, read, slow,
    stalling, strict, talk, told,
};

const SECOND: Duration = Duration::from_secs(1);
/// The time after which a test over a real socket fails instead of hanging. Nothing but the interrupt ends its waits:
/// the server stays silent and the tool never returns.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends a prompt, interrupts it after a second, and reads to the end.
async fn interrupted(client: &mut Client) -> Vec<String> {
    let start = Instant::now();
    interrupt_after(client, SECOND);
    let seen = talk(client, "Go.").await;
    assert_eq!(start.elapsed(), SECOND, "it ends at once");
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    assert_eq!(client.receive().await.expect("an interrupt is no error"), None);
    seen
}

#[tokio::test(start_paused = true)]
async fn received_text_stays_and_is_marked() {
    let server = strict([stalling(&["Hello, ", "wor"]), Reply::text("Hello.")]);
    let mut client = client(manual(&server));
    assert_eq!(interrupted(&mut client).await, ["Hello, wor"]);
    assert_eq!(told(client.history()), ["user: Go.", "assistant: Hello, wor (interrupted)"]);
    assert!(server.requests()[0].aborted(), "the server is to stop");
    // The mark is stored with the history but never sent.
    let kept = |place: usize| serde_json::to_value(&client.history()[place]).unwrap();
    assert_eq!((&kept(1)["interrupted"], kept(0).get("interrupted")), (&json!(true), None));
    assert_eq!(talk(&mut client, "Again.").await, ["Hello."]);
    let sent = server.requests()[1].messages()[1].clone();
    assert_eq!(sent, json!({"role": "assistant", "content": "Hello, wor"}));
    // Nothing is ever prefilled.
    assert!(client.continue_turn().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn dropped_guard_interrupts_its_turn() {
    let server = strict([stalling(&["Hel"]), Reply::text("Hello.")]);
    let mut client = client(manual(&server));
    let guard = client.interrupt_handle().interrupt_on_drop();
    client.send("Go.").await.unwrap();
    client.receive().await.unwrap();
    drop(guard);
    assert_eq!(client.receive().await.unwrap(), None);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    assert!(server.requests()[0].aborted());

    // Without a run, and after `disarm`, nothing happens.
    drop(client.interrupt_handle().interrupt_on_drop());
    let guard = client.interrupt_handle().interrupt_on_drop();
    client.send("Again.").await.unwrap();
    guard.disarm();
    assert_eq!(client.collect_reply().await.unwrap().text, "Hello.");
}

#[tokio::test(start_paused = true)]
async fn interrupted_answers_have_no_old_usage() {
    let server = strict([Reply::text("Hello.").usage(7, 3), stalling(&["Hel"])]);
    let mut client = client(manual(&server));
    talk(&mut client, "Hi.").await;
    assert_eq!(client.usage().and_then(|usage| usage.prompt_tokens), Some(7));
    interrupted(&mut client).await;
    assert_eq!((client.usage(), client.turn_metadata().usage), (None, None));
    assert_eq!(client.turn_metadata().total_usage.prompt_tokens, Some(7));
}

/// Nor that of an earlier answer in the same turn.
#[tokio::test(start_paused = true)]
async fn interrupted_steps_have_no_old_usage() {
    let sum = Reply::new().call("add", json!({"a": 1, "b": 2})).usage(7, 3);
    let server = strict([sum, stalling(&["Hel"])]);
    let mut client = client(auto(&server));
    interrupted(&mut client).await;
    assert_eq!((client.usage(), client.turn_metadata().usage), (None, None));
    assert_eq!(client.turn_metadata().total_usage.prompt_tokens, Some(7));
}

#[tokio::test(start_paused = true)]
async fn unreceived_text_is_not_recorded() {
    let all = Reply::text("one two three four").cut(Cut::Whole);
    let server = strict([all, Reply::text("Done.")]);
    let mut client = client(manual(&server));
    client.send("Count.").await.unwrap();
    assert_eq!(client.receive().await.unwrap().map(|block| line(&block)).as_deref(), Some("one"));
    client.interrupt();
    assert_eq!(client.receive().await.unwrap(), None);
    assert_eq!(told(client.history())[1..], ["assistant: one (interrupted)"]);
    assert_eq!(talk(&mut client, "On.").await, ["Done."]);
}

#[tokio::test(start_paused = true)]
async fn interrupted_sends_keep_the_prompt() {
    let server = strict([Reply::silence(), Reply::text("Hello.")]);
    let mut client = client(manual(&server));
    interrupt_after(&client, SECOND);
    client.send("Hello?").await.unwrap();
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    assert_eq!(client.receive().await.unwrap(), None);
    assert!(server.requests()[0].aborted());
    // Two consecutive prompts are one user message on the wire.
    assert_eq!(talk(&mut client, "Are you there?").await, ["Hello."]);
    let sent = server.requests()[1].messages().to_vec();
    assert_eq!(sent, [json!({"role": "user", "content": "Hello?\nAre you there?"})]);
    let history = ["user: Hello?", "user: Are you there?", "assistant: Hello."];
    assert_eq!(told(client.history()), history);
}

#[tokio::test(start_paused = true)]
async fn unanswered_prompts_can_be_continued() {
    let server = strict([Reply::silence(), Reply::text("Hello.")]);
    let mut client = client(manual(&server));
    assert!(interrupted(&mut client).await.is_empty());
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn partial_thinking_and_calls_are_dropped() {
    let chunk = |delta| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
    let call = |function| json!({"tool_calls": [{"index": 0, "id": "c", "function": function}]});
    let thinking = chunk(json!({"reasoning_content": "hm"}));
    let arguments = chunk(call(json!({"name": "add", "arguments": "{\"a\""})));
    for said in [thinking, arguments] {
        let body = format!("{said}data: [DONE]\n\n");
        let server = strict([Reply::sse(body).stall_after(said.len()), Reply::text("Hello.")]);
        let mut client = client(auto(&server).tool(adder()));
        interrupted(&mut client).await;
        assert_eq!(told(client.history()), ["user: Go."]);
        assert_eq!(talk(&mut client, "Again.").await, ["Hello."]);
    }
}

#[tokio::test(start_paused = true)]
async fn running_tools_are_signaled_and_dropped() {
    let alive = Alive::default();
    let server = strict([
        Reply::new().call_with_id("1", "hangs", json!({})).call_with_id(
            "2",
            "echo",
            json!({"say": "quick"}),
        ),
        Reply::text("Hello."),
    ]);
    let mut client = client(auto(&server).tool(hanging("hangs", &alive)).tool(echo()));
    assert_eq!(interrupted(&mut client).await.len(), 2, "two calls, no result");
    assert_eq!((alive.now(), alive.ever(), alive.told()), (0, 1, 1));
    let cancelled = r#"tool: 1!{"error":"cancelled: the user interrupted while it ran; it may have taken effect","tool":"hangs"}"#;
    // What was done is done.
    assert_eq!(told(client.history())[2..], [cancelled, r#"tool: 2="quick""#]);
    assert_eq!(talk(&mut client, "Again.").await, ["Hello."]);
}

#[tokio::test]
async fn blocking_tools_are_not_awaited() {
    let (started, begun) = std::sync::mpsc::channel();
    let (ended, end) = std::sync::mpsc::channel();
    let blocking = tool("blocks", "Blocks").build_blocking_with_context(move |_, context| {
        started.send(()).expect("the test waits");
        while !context.is_cancelled() {
            std::thread::yield_now();
        }
        ended.send(()).expect("the test waits");
        Ok(json!(null))
    });
    let server = strict([Reply::new().call("blocks", json!({})), Reply::text("Hello.")]);
    let mut client = client(auto(&server).tool(blocking));
    client.send("Go.").await.unwrap();
    let handle = client.interrupt_handle();
    std::thread::spawn(move || {
        begun.recv().expect("the tool starts");
        handle.interrupt();
    });
    assert_eq!(read(&mut client).await.len(), 1);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    end.recv().expect("the tool was told");
    assert_eq!(talk(&mut client, "Again.").await, ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn no_tool_starts_after_an_interrupt() {
    // While the calls are shown, before any runs.
    let alive = Alive::default();
    let calls =
        || Reply::new().call("hangs", json!({})).call("hangs", json!({})).call("hangs", json!({}));
    let server = strict([calls(), Reply::text("Hello.")]);
    let mut early = client(auto(&server).tool(hanging("hangs", &alive)));
    early.send("Go.").await.unwrap();
    let shown = early.receive().await.unwrap();
    assert!(matches!(shown, Some(ContentBlock::ToolUse(_))));
    early.interrupt();
    assert_eq!(early.receive().await.unwrap(), None);
    assert_eq!((alive.ever(), early.history().len()), (0, 5));
    assert_eq!(talk(&mut early, "Again.").await, ["Hello."]);

    // Sequentially, while the first runs.
    let server = strict([calls(), Reply::text("Hello.")]);
    let executor = ExecutorOptions::new().mode(ExecutionMode::Sequential);
    let mut late = client(auto(&server).tool(hanging("hangs", &alive)).executor(executor));
    interrupted(&mut late).await;
    assert_eq!((alive.ever(), alive.now()), (1, 0));
    let told = told(late.history());
    assert!(told[2].contains("while it ran; it may have taken effect"), "{told:#?}");
    assert!(told[3..].iter().all(|line| line.contains("cancelled before it ran")), "{told:#?}");
    assert_eq!(talk(&mut late, "Again.").await, ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn running_hooks_are_dropped() {
    type Add = fn(Hooks, Alive) -> Hooks;
    let places: [(&str, Add); 3] = [
        ("prompt", |hooks, alive| hooks.add_user_prompt_submit(move |_| hang_once(&alive))),
        ("pre", |hooks, alive| hooks.add_pre_tool_use(move |_| hang_once(&alive))),
        ("post", |hooks, alive| hooks.add_post_tool_use(move |_| hang_once(&alive))),
    ];
    for (place, add) in places {
        let alive = Alive::default();
        let call = Reply::new().call_with_id("c", "add", json!({"a": 1, "b": 2}));
        let replies = if place == "prompt" { vec![] } else { vec![call] };
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let server = MemoryServer::new(script.reply(Reply::text("Hello.")).strict());
        let mut client =
            client(auto(&server).tool(adder()).hooks(add(Hooks::new(), alive.clone())));
        interrupted(&mut client).await;
        assert_eq!((alive.now(), alive.ever()), (0, 1), "{place}");
        let kept = match place {
            "prompt" => vec![],
            "pre" => vec![r#"tool: c!{"error":"cancelled: the user interrupted","tool":"add"}"#],
            _ => vec!["tool: c=3.0"],
        };
        assert_eq!(told(client.history()).iter().skip(2).collect::<Vec<_>>(), kept, "{place}");
        // A prompt that its hooks have not accepted is gone.
        assert_eq!(client.history().is_empty(), place == "prompt");
        assert_eq!(talk(&mut client, "Again.").await, ["Hello."], "{place}");
    }
}

/// Hangs the first time, and decides nothing.
fn hang_once<T: Send>(alive: &Alive) -> impl Future<Output = Option<T>> + Send + use<T> {
    let guard = (alive.ever() == 0).then(|| alive.enter(|| false));
    async move {
        if guard.is_some() {
            std::future::pending::<()>().await;
        }
        None
    }
}

#[tokio::test(start_paused = true)]
async fn interrupted_reviews_are_repeated() {
    let (alive, log) = (Alive::default(), Log::default());
    let (hangs, noted) = (alive.clone(), log.clone());
    let hooks = Hooks::new().add_post_tool_use(move |event| {
        let (hang, log) = (hang_once::<()>(&hangs), noted.clone());
        async move {
            hang.await;
            log.note(event.tool_result.to_string());
            Some(HookDecision::modify_result(json!("masked"), ""))
        }
    });
    let call = Reply::new().call_with_id("c", "add", json!({"a": 1, "b": 2}));
    let server = strict([call, Reply::text("Hello.")]);
    let mut client = client(auto(&server).tool(adder()).hooks(hooks));
    interrupted(&mut client).await;
    assert_eq!(talk(&mut client, "Again.").await, ["Hello."]);
    assert_eq!(log.lines(), ["3.0"]);
    assert_eq!(server.requests()[1].messages()[2]["content"], "masked");
}

#[tokio::test(start_paused = true)]
async fn later_rounds_can_be_interrupted() {
    let call = |id| Reply::new().call_with_id(id, "add", json!({"a": 1, "b": 2}));
    // The second request is not answered.
    let server = strict([call("c"), Reply::silence(), Reply::text("Hello.")]);
    let mut silent = client(auto(&server).tool(adder()));
    assert_eq!(interrupted(&mut silent).await.len(), 2);
    assert_eq!(told(silent.history())[2..], ["tool: c=3.0"]);
    assert_eq!(talk(&mut silent, "Again.").await, ["Hello."]);

    // Between two calls of `receive`, after the results were seen.
    let server = strict([call("c"), Reply::text("Hello.")]);
    let mut early = client(auto(&server).tool(adder()));
    early.send("Go.").await.unwrap();
    while !matches!(early.receive().await.unwrap(), Some(ContentBlock::ToolResult(_))) {}
    early.interrupt();
    assert_eq!(early.receive().await.unwrap(), None);
    assert_eq!((server.requests().len(), early.history().len()), (1, 3));
    early.continue_turn().await.unwrap();
    assert_eq!(read(&mut early).await, ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn pending_interrupts_act_at_the_next_send() {
    let stalled = stalling(&["Hel", "lo"]).cut(Cut::Whole);
    let server = strict([stalled, Reply::text("Hello."), Reply::text("Done.")]);
    let mut client = client(manual(&server));
    client.send("Hi.").await.unwrap();
    client.receive().await.unwrap();
    client.interrupt();
    assert_eq!(talk(&mut client, "Again.").await, ["Hello."]);
    assert_eq!(told(client.history())[1], "assistant: Hel (interrupted)", "what was received");
    // It does not affect the next prompt, and has no effect when idle.
    client.interrupt();
    assert_eq!(talk(&mut client, "On.").await, ["Done."]);
}

#[tokio::test(start_paused = true)]
async fn open_calls_are_canceled_in_manual_mode() {
    let calls =
        Reply::new().call_with_id("1", "echo", json!({})).call_with_id("2", "echo", json!({}));
    let server = strict([calls, Reply::text("Done.")]);
    let mut client = client(manual(&server).tool(echo()));
    client.send("Go.").await.unwrap();
    client.receive().await.unwrap();
    client.interrupt();
    assert_eq!(client.receive().await.unwrap(), None);
    let told = told(client.history());
    assert_eq!(told.len(), 4, "both are answered as cancelled: {told:?}");
    assert!(told[3].contains("cancelled"));
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
}

#[tokio::test]
async fn tools_and_hooks_can_interrupt() {
    let given: Arc<OnceLock<InterruptHandle>> = Arc::default();
    let handle = Arc::clone(&given);
    let quitter = tool("quit", "Quits").build(move |_| {
        handle.get().expect("it was given").interrupt();
        async { Ok(json!("quit")) }
    });
    let handle = Arc::clone(&given);
    let hooks = Hooks::new().add_pre_tool_use(move |event| {
        if event.tool_name == "echo" {
            handle.get().expect("it was given").interrupt();
        }
        async { None }
    });
    let calls = ["quit", "echo"].map(|name| Reply::new().call(name, json!({})));
    let [quit, echoing] = calls;
    let server = strict([quit, echoing, Reply::text("Done.")]);
    let mut client = client(auto(&server).tool(quitter).tool(echo()).hooks(hooks));
    given.set(client.interrupt_handle()).unwrap();
    // The tool had finished immediately, and its result stays.
    for (place, stands) in [("quit", r#"="quit""#), ("echo", "cancelled")] {
        assert_eq!(talk(&mut client, "Go.").await.len(), 1, "the call of {place}, and no result");
        assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
        let last = told(client.history()).pop().unwrap();
        assert!(last.contains(stands), "{last}");
    }
    assert_eq!(talk(&mut client, "On.").await, ["Done."]);
}

#[tokio::test(start_paused = true)]
async fn final_text_only_records_no_partial_text() {
    let server = strict([stalling(&["Hel"]), Reply::text("Hello.")]);
    let mut client = client(auto(&server).tool(echo()).final_text_only(true));
    assert!(interrupted(&mut client).await.is_empty());
    assert_eq!(client.history().len(), 1);
    assert_eq!(talk(&mut client, "On.").await, ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn interrupted_tools_leave_no_events() {
    let server =
        strict([Reply::new().call("slow", json!({})), Reply::text("Hello."), Reply::text("On.")]);
    let mut client = client(auto(&server).tool(slow("slow", SECOND * 60)));
    interrupt_after(&client, SECOND);
    client.send("Go.").await.unwrap();
    let mut last = None;
    while let Some(event) = client.next_event().await.unwrap() {
        last = Some(event);
    }
    assert_eq!(last, Some(AgentEvent::TurnEnd(FinishReason::Interrupted)));
    client.send("Again.").await.unwrap();
    assert_eq!(client.next_event().await.unwrap(), Some(AgentEvent::AnswerStart));
    assert_eq!(read(&mut client).await, ["Hello."]);
    assert_eq!(talk(&mut client, "Go on.").await, ["On."]);
}

/// Interrupts a wait from another thread, and returns how long it took to end.
async fn time_to_end<T>(
    handle: InterruptHandle,
    waiting: impl Future<Output = T>,
) -> (T, Duration) {
    let interrupt = async {
        std::thread::spawn(move || {
            let time = std::time::Instant::now();
            handle.interrupt();
            time
        })
    };
    // The wait is polled first.
    let (output, thread) = tokio::join!(tokio::time::timeout(PATIENCE, waiting), interrupt);
    (output.expect("an interrupt ends it"), thread.join().expect("it interrupts").elapsed())
}

#[tokio::test]
async fn interrupts_close_the_connection() {
    let script = Script::from([stalling(&["Hello, "]), Reply::silence(), Reply::text("Hello.")]);
    let server = SocketServer::start(script.strict()).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url()).timeout(3_600);
    let mut client = client(options);

    client.send("Hi.").await.unwrap();
    client.receive().await.unwrap();
    let (block, took) = time_to_end(client.interrupt_handle(), client.receive()).await;
    assert_eq!(block.unwrap(), None);
    println!("in the middle of text: receive returned {took:?} after the interrupt");
    assert_eq!(server.wait_for_abort(PATIENCE).await.number(), 1);
    server.wait_for_close(PATIENCE).await;
    assert_eq!(client.history().len(), 2);

    let handle = client.interrupt_handle();
    let mut send = Box::pin(client.send("Still there?"));
    tokio::select! {
        _ = &mut send => panic!("nobody answers"),
        () = server.wait_until(PATIENCE, |requests| requests.len() == 2) => {}
    }
    let (sent, took) = time_to_end(handle, send).await;
    sent.unwrap();
    println!("before the head: send returned {took:?} after the interrupt");
    assert_eq!(client.receive().await.unwrap(), None);
    server.wait_until(PATIENCE, |requests| requests.iter().all(|one| one.aborted())).await;
    server.wait_for_close(PATIENCE).await;

    assert_eq!(talk(&mut client, "Again.").await, ["Hello."]);
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn sleeping_tools_do_not_delay_interrupts() {
    let alive = Alive::default();
    let script = Script::from([Reply::new().call("hangs", json!({})), Reply::text("Hello.")]);
    let server = SocketServer::start(script.strict()).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url());
    let mut client = client(options.tool(hanging("hangs", &alive)).auto_execute_tools(true));
    client.send("Go.").await.unwrap();
    let mut event = client.next_event().await.unwrap();
    while !matches!(event, Some(AgentEvent::Tool(_))) {
        event = client.next_event().await.unwrap();
    }
    let (block, took) = time_to_end(client.interrupt_handle(), client.receive()).await;
    assert_eq!(block.unwrap(), None);
    println!("in a tool: receive returned {took:?} after the interrupt");
    assert_eq!(alive.now(), 0);
    assert_eq!(talk(&mut client, "Again.").await, ["Hello."]);
}
