//! Order, limits, progress, and the end.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use oa_batch::{BatchOptions, run_batch, run_batch_stream};
use oa_client::{AgentOptions, ErrorKind};
use oa_testkit::{MemoryServer, Reply};
use oa_tools::tool;
use oa_types::{ContentBlock, FinishReason, ImageBlock, Message};
use serde_json::json;
use tokio::time::Instant;

use crate::model::{Asked, agent, all, echo, prompts, server};

/// Prompts with an even number take longer.
fn uneven() -> MemoryServer {
    server(&Asked::default(), |prompt, _| {
        let is_even = prompt.ends_with(['0', '2', '4', '6', '8']);
        is_even.then(|| Reply::text(echo(prompt)).delay(Duration::from_secs(1)))
    })
}

#[tokio::test(start_paused = true)]
async fn replies_come_in_order_of_completion() {
    let options = BatchOptions::new(agent(uneven())).concurrency(4);
    let outcomes = all(run_batch(prompts(4), options).unwrap()).await;
    let order: Vec<_> = outcomes.iter().map(|(index, _)| *index).collect();
    assert_eq!(order, [1, 3, 0, 2]);
}

#[tokio::test(start_paused = true)]
async fn replies_come_in_order_of_input() {
    let options = BatchOptions::new(agent(uneven())).concurrency(3).in_input_order(true);
    let outcomes = all(run_batch(prompts(50), options).unwrap()).await;
    for (number, (index, reply)) in outcomes.iter().enumerate() {
        assert_eq!(number, *index);
        assert_eq!(reply.as_ref().unwrap().text, echo(&format!("prompt {number}")));
    }
    assert_eq!(outcomes.len(), 50);
}

#[tokio::test(start_paused = true)]
async fn prompts_are_taken_when_there_is_room() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let prompts = prompts(500).inspect(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    // The first takes longer than all others.
    let slow = server(&Asked::default(), |prompt, _| {
        let seconds = if prompt == "prompt 0" { 3_600 } else { 1 };
        Some(Reply::text("So.").delay(Duration::from_secs(seconds)))
    });
    let options = BatchOptions::new(agent(slow)).concurrency(5).window(20).in_input_order(true);
    let mut batch = run_batch(prompts, options).unwrap();
    assert_eq!(taken.load(Ordering::Relaxed), 0, "nothing before it is polled");
    let mut yielded = 0;
    let mut most = 0;
    while batch.next().await.is_some() {
        most = most.max(taken.load(Ordering::Relaxed) - yielded);
        yielded += 1;
    }
    assert_eq!((yielded, most), (500, 25));
}

#[tokio::test(start_paused = true)]
async fn no_more_are_in_progress_than_allowed() {
    let began = Instant::now();
    let slow = server(&Asked::default(), |_, _| {
        Some(Reply::text("So.").delay_head(Duration::from_secs(1)))
    });
    let options = BatchOptions::new(agent(slow)).concurrency(4);
    assert_eq!(all(run_batch(prompts(20), options).unwrap()).await.len(), 20);
    // Twenty answers of a second each, four at once.
    assert_eq!(began.elapsed().as_secs(), 5);
}

/// A stream that has its second prompt only after the first reply.
struct Dialogue {
    next: usize,
    may_go_on: Arc<Mutex<bool>>,
}

impl Stream for Dialogue {
    type Item = &'static str;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<&'static str>> {
        if self.next == 1 && !*self.may_go_on.lock().expect("nobody panics") {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.next += 1;
        Poll::Ready(["one", "two"].get(self.next - 1).copied())
    }
}

#[tokio::test]
async fn a_stream_of_prompts_may_wait_for_replies() {
    let may_go_on = Arc::default();
    let prompts = Dialogue { next: 0, may_go_on: Arc::clone(&may_go_on) };
    let server = server(&Asked::default(), |_, _| None);
    let mut batch = run_batch_stream(prompts, BatchOptions::new(agent(server))).unwrap();
    let (index, first) = batch.next().await.unwrap();
    assert_eq!((index, first.unwrap().text), (0, echo("one")));
    assert_eq!(batch.progress().remaining, None, "the length is unknown");
    *may_go_on.lock().unwrap() = true;
    let (index, second) = batch.next().await.unwrap();
    assert_eq!((index, second.unwrap().text), (1, echo("two")));
    assert!(batch.next().await.is_none());
    assert_eq!(batch.progress().remaining, Some(0));
}

#[tokio::test(start_paused = true)]
async fn progress_counts_what_is_finished() {
    let server = server(&Asked::default(), |prompt, _| {
        (prompt == "prompt 3")
            .then(|| Reply::error(400, "no"))
            .or_else(|| Some(Reply::text("So.").usage(5, 2).delay_head(Duration::from_secs(2))))
    });
    let options = BatchOptions::new(agent(server)).concurrency(1).in_input_order(true);
    let mut batch = run_batch(prompts(10), options).unwrap();
    assert_eq!(batch.progress().remaining, Some(10));
    assert_eq!(batch.progress().time_left(), None);
    for _ in 0..5 {
        batch.next().await;
    }
    let progress = batch.progress();
    assert_eq!((progress.done, progress.failed, progress.remaining), (4, 1, Some(5)));
    assert_eq!((progress.tokens, progress.from_log, progress.retries), (28, 0, 0));
    assert!((progress.per_second - 5.0 / 8.0).abs() < 0.01, "{progress:?}");
    assert_eq!(progress.time_left().map(|left| left.as_secs()), Some(8));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_batch_closes_its_connections() {
    let silent = MemoryServer::new(vec![Reply::silence(), Reply::silence()]);
    let options = BatchOptions::new(agent(silent.clone())).concurrency(2);
    let mut batch = run_batch(prompts(9), options).unwrap();
    tokio::select! {
        biased;
        _ = batch.next() => panic!("nobody answers"),
        () = silent.wait_until(Duration::from_secs(9), |requests| requests.len() == 2) => {}
    }
    drop(batch);
    // At once: nothing has to be polled for it.
    assert!(silent.requests().iter().all(|request| request.aborted()));
}

#[tokio::test]
async fn a_dropped_next_loses_nothing() {
    let server = server(&Asked::default(), |_, _| None);
    let mut batch = run_batch(prompts(20), BatchOptions::new(agent(server))).unwrap();
    let mut seen = Vec::new();
    loop {
        // Polled once and dropped.
        let polled = {
            let mut next = Box::pin(batch.next());
            poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await
        };
        match polled {
            Poll::Ready(Some((index, _))) => seen.push(index),
            Poll::Ready(None) => break,
            Poll::Pending => tokio::task::yield_now().await,
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_bad_prompt_fails_alone() {
    let server = server(&Asked::default(), |_, _| None);
    let options = BatchOptions::new(agent(server)).in_input_order(true);
    let prompts = [Message::user("fine"), Message::user(" "), Message::system("no prompt")];
    let outcomes = all(run_batch(prompts, options).unwrap()).await;
    assert_eq!(outcomes[0].1.as_ref().unwrap().text, echo("fine"));
    for (_, outcome) in &outcomes[1..] {
        assert_eq!(outcome.as_ref().unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

#[tokio::test]
async fn prompts_may_have_images_and_be_borrowed() {
    let server = MemoryServer::new([Reply::text("A cat.")]);
    let image = ImageBlock::from_base64("aGk=", "image/png").unwrap();
    let prompts = [Message::user_with_image("What is this?", image)];
    let options = BatchOptions::new(agent(server.clone()));
    let outcomes = all(run_batch(prompts.iter().cloned(), options).unwrap()).await;
    assert_eq!(outcomes[0].1.as_ref().unwrap().text, "A cat.");
    assert_eq!(server.requests()[0].messages()[0]["content"][1]["type"], "image_url");
}

#[test]
fn bad_options_are_refused() {
    let server = MemoryServer::new(Vec::<Reply>::new());
    let options = BatchOptions::new(agent(server)).concurrency(0);
    let error = run_batch(["a"], options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("at least 1"), "{error}");
}

#[tokio::test]
async fn agents_run_their_tools() {
    let model = MemoryServer::new([
        Reply::new().say("Let me see. ").call("double", json!({"n": 21})),
        Reply::text("It is 42."),
    ]);
    let double = tool("double", "Doubles")
        .param("n", "integer")
        .build(|args| async move { Ok(json!(args["n"].as_i64().unwrap_or_default() * 2)) });
    let options = AgentOptions::builder().model("any").transport(model).tool(double);
    let options = options.auto_execute_tools(true).build().unwrap();
    let outcomes = all(run_batch(["Twice 21?"], BatchOptions::new(options)).unwrap()).await;
    assert_eq!(outcomes[0].1.as_ref().unwrap().text, "Let me see. It is 42.");
}

#[tokio::test]
async fn in_manual_mode_a_reply_may_end_with_calls() {
    let model = MemoryServer::new([Reply::new().call("double", json!({"n": 21}))]);
    let double = tool("double", "Doubles").param("n", "integer").build(|_| async { Ok(json!(0)) });
    let options = AgentOptions::builder().model("any").transport(model).tool(double);
    let options = BatchOptions::new(options.build().unwrap());
    let outcomes = all(run_batch(["Twice 21?"], options).unwrap()).await;
    let reply = outcomes[0].1.as_ref().unwrap();
    assert_eq!(reply.finish_reason, FinishReason::ToolCalls);
    let message = reply.message.as_ref().unwrap();
    assert!(matches!(&message.content[..], [ContentBlock::ToolUse(call)] if call.name == "double"));
}
