//! Errors, broken streams and dropped futures: the parts that are kept, the parts that are removed, and recovery.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame};
use oa_chat::{Provider, RetryConfig};
use oa_client::{AgentEvent, AgentOptions, Client, ErrorKind};
use oa_hooks::{HookDecision, Hooks};
use oa_testkit::{Cut, MemoryServer, Reply, Script, SocketServer};
use oa_types::FinishReason;
use oa_types::wire::Thinking;
use serde_json::json;
use tokio::time::Instant;
use tower::service_fn;

use suite::talk::{
    Alive, adder, auto, client, echo, hanging, interrupt_after, line, manual, poll_times, read,
    read_on, slow, stalling, strict, talk, told,
};

const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn failed_sends_take_their_prompt_back() {
    let failures = [
        Reply::error(400, "no such model"),
        Reply::error(401, "no key"),
        Reply::hang_up(),
        Reply::reset(),
    ];
    for failure in failures {
        let server = strict([Reply::text("Hello."), failure, Reply::text("Good.")]);
        let mut client = client(manual(&server));
        talk(&mut client, "Hi.").await;
        let before = told(client.history());
        client.send("How are you?").await.unwrap_err();
        assert_eq!(told(client.history()), before);
        assert_eq!((client.finish_reason(), client.turn_metadata().turns), (None, 1));
        assert_eq!(read(&mut client).await.len(), 0, "there is nothing to receive");
        assert_eq!(talk(&mut client, "How are you?").await, ["Good."]);
        assert_eq!(client.history().len(), 4);
    }
}

#[tokio::test]
async fn unanswered_prompts_are_taken_back() {
    let role = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]});
    let error = json!({"error": {"message": "out of memory"}});
    let failures = [
        Reply::sse(format!("data: {role}\n\n")).reset_after(9),
        Reply::sse(""),
        Reply::sse(format!("data: {error}\n\n")),
        Reply::sse(format!("data: {role}\n\ndata: {error}\n\n")),
    ];
    for failure in failures {
        let server = strict([failure.clone(), Reply::text("Hello.")]);
        let mut client = client(manual(&server));
        client.send("Hi.").await.unwrap();
        let (seen, error) = read_on(&mut client).await;
        assert!(seen.is_empty() && error.is_some(), "{failure:?}");
        assert_eq!(told(client.history()), [""; 0], "{failure:?}");
        assert_eq!(client.turn_metadata().turns, 0);
        assert_eq!(talk(&mut client, "Hi.").await, ["Hello."]);
    }
}

#[tokio::test]
async fn broken_answers_can_be_requested_again() {
    let broken = Reply::text("one two three").cut(Cut::Events).reset_after(700);
    let server = strict([broken, Reply::text("four")]);
    let mut client = client(manual(&server));
    client.send("Count.").await.unwrap();
    let (seen, error) = read_on(&mut client).await;
    let error = error.unwrap();
    assert_eq!((error.kind(), error.received()), (ErrorKind::Stream, Some(700)));
    assert!(seen[0].starts_with("one"), "{seen:?}");
    assert_eq!(client.finish_reason(), None);
    assert_eq!(client.message().map(|message| message.text()), seen.first().cloned());
    assert_eq!(told(client.history()), ["user: Count."]);
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["four"]);
}

#[tokio::test(start_paused = true)]
async fn silence_after_an_error_is_not_awaited() {
    let piece = |word: &str| {
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": word}}]});
        format!("data: {chunk}\n\n")
    };
    let error = json!({"error": {"message": "out of memory"}});
    let said = format!("{}data: {error}\n\n{}", piece("one"), piece("two"));
    let silent = Reply::sse(format!("{said}{}", piece("never said"))).stall_after(said.len());
    let server = strict([silent, Reply::text("Hello.")]);
    let mut client = client(manual(&server));
    client.send("Count.").await.unwrap();
    let begin = Instant::now();
    let (seen, error) = read_on(&mut client).await;
    assert_eq!(seen, ["onetwo"], "what comes behind it is told all the same");
    let error = error.unwrap();
    assert_eq!((error.kind(), begin.elapsed()), (ErrorKind::Api, Duration::from_secs(1)));
    assert_eq!(talk(&mut client, "And now?").await, ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn errors_keep_the_rounds_before_them() {
    for failure in [
        Reply::error(400, "broken"),
        Reply::hang_up(),
        Reply::silence(),
        stalling(&[]),
        Reply::text("Well").reset_after(20),
        Reply::sse("data: {\"error\":{\"message\":\"out of memory\"}}\n\n"),
    ] {
        let server = strict([
            Reply::new().call_with_id("c", "add", json!({"a": 1, "b": 2})),
            failure,
            Reply::text("It is 3."),
        ]);
        let mut client = client(auto(&server).tool(adder()));
        client.send("Add.").await.unwrap();
        let (seen, error) = read_on(&mut client).await;
        assert!(error.is_some(), "{seen:?}");
        assert_eq!(told(client.history())[2..], ["tool: c=3.0"]);
        client.continue_turn().await.unwrap();
        assert_eq!(read(&mut client).await, ["It is 3."]);
    }
}

#[tokio::test]
async fn new_prompts_follow_a_failed_round() {
    let server = strict([
        Reply::new().call_with_id("c", "add", json!({"a": 1, "b": 2})),
        Reply::error(400, "broken"),
        Reply::text("Hello again."),
    ]);
    let mut client = client(auto(&server).tool(adder()));
    client.send("Add.").await.unwrap();
    assert_eq!(read_on(&mut client).await.1.unwrap().kind(), ErrorKind::Api);
    assert_eq!(talk(&mut client, "Hi.").await, ["Hello again."]);
}

#[tokio::test]
async fn streams_without_any_end_are_unspecified() {
    let server = strict([Reply::text("Hello").without_done().without_finish()]);
    let mut client = client(auto(&server));
    assert_eq!(talk(&mut client, "Hi.").await, ["Hello"]);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Unspecified));
    // Nothing is ever prefilled.
    assert_eq!(client.continue_turn().await.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn refusals_are_text_with_a_finish_reason() {
    let server = strict([Reply::new().refuse("I will not.")]);
    let mut client = client(manual(&server));
    assert_eq!(talk(&mut client, "Do it.").await, ["I will not."]);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Refusal));
    assert_eq!(told(client.history())[1], "assistant: I will not.");
}

#[tokio::test]
async fn unreadable_payloads_are_events() {
    let piece = |word: &str| json!({"choices": [{"index": 0, "delta": {"content": word}}]});
    let body = format!("data: {}\n\ndata: {{oops\n\ndata: {}\n\n", piece("one"), piece(" two"));
    let server = strict([Reply::sse(body + "data: [DONE]\n\n")]);
    let mut client = client(manual(&server));
    client.send("Count.").await.unwrap();
    let (mut text, mut problems) = (String::new(), 0);
    while let Some(event) = client.next_event().await.unwrap() {
        match event {
            AgentEvent::Block(block) => text += &line(&block),
            AgentEvent::Problem(_) => problems += 1,
            _ => {}
        }
    }
    assert_eq!((&*text, problems), ("one two", 1));
}

#[tokio::test]
async fn prompts_must_be_nonempty_user_messages() {
    let server = strict([Reply::new().call_with_id("c", "echo", json!({})), Reply::text("Done.")]);
    let mut client = client(manual(&server).tool(echo()));
    talk(&mut client, "Go.").await;
    let kind = |result: oa_client::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(client.send("  \n").await), ErrorKind::InvalidInput);
    let wrong = [
        oa_types::Message::user(""),
        oa_types::Message::assistant(vec![oa_types::TextBlock::new("Hi.").into()]),
        oa_types::Message::system("Be brief."),
        oa_types::Message::user_with_blocks(vec![]),
        oa_types::Message::user_with_blocks(vec![
            oa_types::ToolUseBlock::new("c", "echo", json!({})).into(),
        ]),
    ];
    for prompt in wrong {
        assert_eq!(kind(client.send_message(prompt).await), ErrorKind::InvalidInput);
    }
    // The open call is still waiting.
    client.add_tool_result("c", json!("x")).unwrap();
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
}

#[tokio::test]
async fn dropped_sends_take_their_prompt_back() {
    let waits: [fn() -> (Reply, Hooks); 2] = [
        || (Reply::silence(), Hooks::new()),
        || {
            let hook = Hooks::new().add_user_prompt_submit(|event| async move {
                if event.prompt == "Hello?" {
                    std::future::pending::<()>().await;
                }
                None::<HookDecision<_>>
            });
            (Reply::silence(), hook)
        },
    ];
    for (place, wait) in waits.into_iter().enumerate() {
        for times in 0..4 {
            let (reply, hooks) = wait();
            let asked = place == 0 && times > 0;
            let replies = if asked { vec![reply] } else { vec![] };
            let script = replies.into_iter().fold(Script::new(), Script::reply);
            let server = MemoryServer::new(script.reply(Reply::text("Good.")).strict());
            let mut client = client(manual(&server).hooks(hooks).max_turns(1));
            assert!(poll_times(client.send("Hello?"), times).is_none());
            assert_eq!((client.history().len(), client.turn_metadata().turns), (0, 0));
            if asked {
                assert!(server.requests()[0].aborted());
            }
            assert_eq!(talk(&mut client, "How are you?").await, ["Good."]);
        }
    }
}

#[tokio::test]
async fn dropped_continuations_can_be_repeated() {
    let server = strict([
        Reply::new().call_with_id("c", "echo", json!({})),
        Reply::silence(),
        Reply::silence(),
        Reply::text("Done."),
    ]);
    let mut client = client(manual(&server).tool(echo()));
    talk(&mut client, "Go.").await;
    client.add_tool_result("c", json!("x")).unwrap();
    assert!(poll_times(client.continue_turn(), 3).is_none());
    assert!(poll_times(client.send(""), 3).is_none());
    assert_eq!(client.history().len(), 3);
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Done."]);
}

/// Reads to the end, dropping each `receive` after a number of polls and calling it again.
async fn read_in_drops(client: &mut Client, times: usize) -> (Vec<String>, Vec<String>) {
    client.send("Go.").await.expect("it is answered");
    let mut seen = Vec::new();
    loop {
        match poll_times(client.receive(), times) {
            Some(Ok(Some(block))) => seen.push(line(&block)),
            Some(Ok(None)) => return (seen, told(client.history())),
            Some(Err(error)) => panic!("{error}"),
            // No other task is left to wake, so time passes.
            None => tokio::time::advance(Duration::from_millis(10)).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_receives_lose_nothing() {
    let ten = Duration::from_millis(10);
    let server = || {
        strict([
            Reply::new()
                .think("hm")
                .say("one two three")
                .call_with_id("1", "slow", json!({}))
                .call_with_id("2", "add", json!({"a": 1, "b": 2}))
                .delay(ten),
            Reply::text("four five").delay(ten).delay_head(ten),
        ])
    };
    let hooks = || {
        Hooks::new()
            .add_pre_tool_use(move |_| async move {
                tokio::time::sleep(ten).await;
                None
            })
            .add_post_tool_use(move |_| async move {
                tokio::time::sleep(ten).await;
                None
            })
    };
    let made = || {
        let server = server();
        client(auto(&server).tool(slow("slow", ten * 5)).tool(adder()).hooks(hooks()))
    };
    let mut whole = made();
    whole.send("Go.").await.unwrap();
    let mut expected = Vec::new();
    while let Some(block) = whole.receive().await.unwrap() {
        expected.push(line(&block));
    }
    let expected = (expected, told(whole.history()));
    assert_eq!(expected.0.len(), 1 + 3 + 2 + 2 + 2);
    for times in 1..=4 {
        assert_eq!(read_in_drops(&mut made(), times).await, expected, "dropped after {times}");
    }
}

#[tokio::test]
async fn a_dropped_client_closes_its_connection() {
    let server = SocketServer::start(stalling(&["Hello"])).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url());
    let mut client = client(options);
    client.send("Hi.").await.unwrap();
    client.receive().await.unwrap();
    drop(client);
    assert_eq!(server.wait_for_abort(PATIENCE).await.number(), 1);
    server.wait_for_close(PATIENCE).await;
}

#[tokio::test]
async fn a_dropped_client_cancels_its_tools() {
    let alive = Alive::default();
    let server = strict([Reply::new().call("hangs", json!({})).call("hangs", json!({}))]);
    let mut client = client(auto(&server).tool(hanging("hangs", &alive)));
    client.send("Go.").await.unwrap();
    for _ in 0..2 {
        client.receive().await.unwrap();
    }
    assert!(poll_times(client.receive(), 3).is_none());
    assert_eq!((alive.now(), alive.told()), (2, 0));
    drop(client);
    assert_eq!((alive.now(), alive.told()), (0, 2));
}

#[tokio::test]
async fn block_streams_end_after_an_error() {
    let server = strict([Reply::text("one two").reset_after(400), Reply::text("Good.")]);
    let mut client = client(manual(&server));
    client.send("Hi.").await.unwrap();
    let mut stream = client.stream();
    let mut ends = Vec::new();
    for _ in 0..5 {
        ends.push(suite::talk::next(&mut stream).await.map(|block| block.is_ok()));
    }
    assert_eq!(ends.iter().filter(|end| **end == Some(false)).count(), 1);
    assert_eq!(ends.last(), Some(&None));
    assert_eq!(talk(&mut client, "Hi.").await, ["Good."]);
}

#[tokio::test]
async fn errors_count_among_unreadable_payloads() {
    let text = json!({"choices": [{"index": 0, "delta": {"content": "Half an ans"}}]});
    let error = json!({"error": {"message": "out of memory", "code": 500}});
    let pings = "data: ping\n\n".repeat(100);
    let stream = format!("{pings}data: {text}\n\n{pings}data: {error}\n\ndata: [DONE]\n\n");
    let mut client = client(manual(&strict([Reply::sse(stream)])));
    let error = client.ask("Go.").await.unwrap_err();
    assert_eq!((error.kind(), error.api_code()), (ErrorKind::Api, Some("500")));
}

#[tokio::test(start_paused = true)]
async fn unread_events_do_not_leak_into_next_turn() {
    let server = strict([Reply::silence(), Reply::text("Hello.")]);
    let mut client = client(manual(&server));
    interrupt_after(&client, Duration::from_secs(1));
    client.send("One.").await.unwrap();
    client.send("Two.").await.unwrap();
    let mut ends = Vec::new();
    while let Some(event) = client.next_event().await.unwrap() {
        if let AgentEvent::TurnEnd(reason) = event {
            ends.push(reason);
        }
    }
    assert_eq!(ends, [FinishReason::Stop]);
}

/// The server never stops sending after the end of the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn few_frames_are_read_after_the_answer() {
    struct Endless(usize);
    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0 += 1;
            // Without this, a client that reads on would hang instead of failing.
            assert!(self.0 < 100, "the client reads on");
            let chunk = json!({"choices": [{"index": 0, "delta": {"content": "Hi."}}]});
            Poll::Ready(Some(Ok(Frame::data(match self.0 {
                1 => format!("data: {chunk}\n\ndata: [DONE]\n\n").into(),
                _ => Bytes::from_static(b": more\n\n"),
            }))))
        }
    }
    let service = service_fn(|_| async { Ok::<_, Infallible>(Response::new(Endless(0))) });
    let options = AgentOptions::builder().model("any").transport(service);
    let mut client = client(options);
    for _ in 0..3 {
        assert_eq!(client.ask("Go.").await.unwrap().text, "Hi.");
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_tools_are_reported_after_a_retry() {
    let refusal = Reply::error(400, "registry.ollama.ai/library/gemma:2b does not support tools");
    let server = strict([Reply::text("never").reset_after(0), refusal, Reply::text("Hello.")]);
    let options = auto(&server).retry(RetryConfig::new(2)).tool(echo());
    let mut client = client(options);
    client.send("Go.").await.unwrap();
    let mut told = 0;
    while let Some(event) = client.next_event().await.unwrap() {
        told += usize::from(matches!(event, AgentEvent::ToolsRefused(_)));
    }
    assert_eq!(told, 1);
}

/// The amount of thinking is a wish: the turn goes on without it, the user is told, and the next request does not ask.
#[tokio::test]
async fn refused_thinking_is_reported_and_remembered() {
    for (amount, words) in [
        (Thinking::Effort("low".into()), "\"llama3.2:3b\" does not support thinking"),
        (Thinking::Off, "Reasoning is mandatory for this endpoint and cannot be disabled."),
    ] {
        let answers = [Reply::error(400, words), Reply::text("One."), Reply::text("Two.")];
        // A strict server knows no amounts.
        let server = MemoryServer::new(answers);
        let mut client = client(auto(&server).provider(Provider::Ollama).thinking(amount));
        client.send("Go.").await.unwrap();
        let mut told = Vec::new();
        while let Some(event) = client.next_event().await.unwrap() {
            if let AgentEvent::ThinkingRefused(message) = event {
                told.push(message);
            }
        }
        assert!(matches!(&told[..], [message] if message.contains(words)), "{told:?}");
        assert_eq!(client.ask("On.").await.unwrap().text, "Two.");
        let asked: Vec<_> = server
            .requests()
            .iter()
            .map(|it| it.json().get("reasoning_effort").is_some())
            .collect();
        assert_eq!(asked, [true, false, false]);
    }
}

/// Its caller can choose another word.
#[tokio::test]
async fn a_rejected_effort_is_an_error() {
    let words = "Unsupported value: 'reasoning_effort' does not support 'max' with this model.";
    let server = MemoryServer::new(Reply::error(400, words));
    let mut client = client(auto(&server).provider(Provider::OpenAi).thinking("max"));
    let error = client.ask("Go.").await.unwrap_err();
    assert!(error.to_string().contains("does not support 'max'"), "{error}");
}
