//! One poll handles a bounded part of a server's output, however fast it arrives: timers, other tasks and
//! interrupts never wait for a flood to end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use oa_chat::{Limits, RetryConfig, ToolMode};
use oa_client::{AgentOptions, AgentOptionsBuilder, Client, ErrorKind, ResponseFormat};
use oa_testkit::{Cut, Framing, Reply, Script, SocketServer};
use oa_transport::{RequestBody, TimeoutKind};
use oa_types::FinishReason;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use tower::service_fn;

use suite::talk::{adder, cases, client, models, read};

/// The most bytes and frames that one poll may take.
const MOST_BYTES: usize = 128 << 10;
const MOST_FRAMES: usize = 2048;

/// A body that is always ready.
#[derive(Clone, Default)]
struct Flood {
    status: u16,
    /// The frames, each with its number of repetitions.
    frames: Vec<(Bytes, usize)>,
    place: usize,
    taken: Arc<Taken>,
}

#[derive(Default)]
struct Taken {
    bytes: AtomicUsize,
    frames: AtomicUsize,
}

impl Flood {
    fn new<F: Into<Bytes>>(frames: impl IntoIterator<Item = (F, usize)>) -> Self {
        let frames = frames.into_iter().map(|(frame, times)| (frame.into(), times)).collect();
        Self { status: 200, frames, ..Self::default() }
    }

    fn options(&self) -> AgentOptionsBuilder {
        let this = self.clone();
        let service = service_fn(move |_: Request<RequestBody>| {
            let mut response = Response::new(this.clone());
            *response.status_mut() = this.status.try_into().expect("this is a status");
            async move { Ok::<_, Infallible>(response) }
        });
        AgentOptions::builder().model("any").retry(RetryConfig::none()).transport(service)
    }
}

impl Body for Flood {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let place = self.place;
        let Some((frame, times)) = self.frames.get_mut(place) else { return Poll::Ready(None) };
        let frame = frame.clone();
        *times = times.saturating_sub(1);
        if *times == 0 {
            self.place += 1;
        }
        self.taken.bytes.fetch_add(frame.len(), Ordering::Relaxed);
        self.taken.frames.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }
}

impl Taken {
    fn now(&self) -> (usize, usize) {
        (self.bytes.load(Ordering::Relaxed), self.frames.load(Ordering::Relaxed))
    }

    /// Returns the output of a future, checking the limits of each poll, and the number of polls.
    #[expect(clippy::print_stdout, reason = "the figures are for people who look")]
    async fn bounded<F: Future>(&self, name: &str, future: F) -> (F::Output, usize) {
        let (mut future, mut polls) = (pin!(future), 0);
        let (mut most, mut longest) = ((0, 0), Duration::ZERO);
        let output = poll_fn(|cx| {
            let (before, began) = (self.now(), Instant::now());
            let polled = future.as_mut().poll(cx);
            let now = self.now();
            most = (most.0.max(now.0 - before.0), most.1.max(now.1 - before.1));
            longest = longest.max(began.elapsed());
            polls += 1;
            polled
        })
        .await;
        let (bytes, frames) = most;
        println!("{name}: {bytes} bytes, {frames} frames and {longest:?} in one of {polls} polls");
        assert!(bytes <= MOST_BYTES && frames <= MOST_FRAMES, "{name}: {most:?} in one poll");
        (output, polls)
    }
}

fn chunk(delta: serde_json::Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}))
}

fn finish(reason: &str) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    format!("data: {chunk}\n\n")
}

/// Returns content that a server may send endlessly without adding to the answer.
fn empty_floods() -> Vec<(&'static str, String)> {
    let other = json!({"choices": [{"index": 1, "delta": {"content": "no"}}]});
    vec![
        ("comments", ": ping\n\n".into()),
        ("bare comments", ":\n".into()),
        ("blank lines", "\n".into()),
        ("CRLF", "\r\n".into()),
        ("ids", "id: 7\n".into()),
        ("unknown lines", "x\n".into()),
        ("broken lines of JSON", "{\n".into()),
        ("events without data", "data\n\n".into()),
        ("unreadable payloads", "data: x\n\n".into()),
        ("broken chunks", "data: {\"choices\":[{\"delta\":{\"con\n\n".into()),
        ("empty deltas", chunk(json!({}))),
        ("empty text", chunk(json!({"content": ""}))),
        ("roles", chunk(json!({"role": "assistant"}))),
        ("another choice", format!("data: {other}\n\n")),
        ("no choices", "data: {\"choices\":[]}\n\n".into()),
        ("usage", "data: {\"usage\":{\"prompt_tokens\":1}}\n\n".into()),
    ]
}

/// Returns a frame of at least this many bytes, by repeating a text.
fn frame_of(words: &str, bytes: usize) -> String {
    words.repeat(bytes.div_ceil(words.len()))
}

#[tokio::test(start_paused = true)]
async fn empty_floods_are_read_in_parts() {
    let text = || chunk(json!({"content": "Hello"}));
    for (name, flood) in empty_floods() {
        for size in [0, 8 << 10, 40 << 10] {
            let frame = frame_of(&flood, size.max(1));
            let times = (2 << 20) / frame.len().max(256);
            let flood = Flood::new([(text(), 1), (frame, times), (finish("stop"), 1)]);
            let mut client = client(flood.options());
            client.send("Go.").await.unwrap();
            let (seen, _) = flood.taken.bounded(name, read(&mut client)).await;
            assert_eq!(seen, ["Hello"], "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_frame_is_read_in_parts() {
    let page = frame_of(": ping\n\n", 8 << 20);
    let flood = Flood::new([(page.into_bytes(), 1), (finish("stop").into_bytes(), 1)]);
    let mut client = client(flood.options());
    client.send("Go.").await.unwrap();
    let mut polls = 0;
    let mut reading = pin!(client.receive());
    let end = poll_fn(|cx| {
        polls += 1;
        reading.as_mut().poll(cx)
    });
    assert_eq!(end.await.unwrap(), None);
    assert!(polls > 64, "{polls} polls for 8 MiB");
}

/// Returns content that a server may send endlessly as part of the answer.
fn telling_floods() -> Vec<(&'static str, String)> {
    let call = |function| json!({"tool_calls": [{"index": 0, "id": "c", "function": function}]});
    vec![
        ("text", chunk(json!({"content": "word "}))),
        ("thinking", chunk(json!({"reasoning_content": "hm "}))),
        ("arguments", chunk(call(json!({"name": "add", "arguments": " "})))),
        ("empty arguments", chunk(call(json!({"name": "add", "arguments": ""})))),
        ("tags", chunk(json!({"content": "<tool_call>{\"name\": \"ad"}))),
        ("JSON", chunk(json!({"content": "{\"a\": [1, "}))),
    ]
}

#[tokio::test(start_paused = true)]
async fn content_floods_are_read_in_parts() {
    const FRAMES: usize = 65;
    for (name, flood) in telling_floods() {
        for mode in [ToolMode::Native, ToolMode::TaggedJson, ToolMode::React, ToolMode::Markers] {
            let frame = frame_of(&flood, 8 << 10);
            let flood = Flood::new([(frame, FRAMES - 1), (finish("stop"), 1)]);
            let taken = &flood.taken;
            let mut client = client(flood.options().tool(adder()).tool_mode(mode.clone()));
            client.send("Go.").await.unwrap();
            let name = format!("{name}, {mode:?}");
            let reading = async {
                loop {
                    match client.receive().await {
                        Ok(Some(_)) => {}
                        end => return end.err().map(|error| error.kind()),
                    }
                }
            };
            let (error, _) = taken.bounded(&name, reading).await;
            assert_eq!((error, taken.now().1), (None, FRAMES), "{name}: all of it is read");
        }
        let format = ResponseFormat::new("any", json!({"type": "object"}));
        let frame = frame_of(&flood, 8 << 10);
        let flood = Flood::new([(frame, FRAMES - 1), (finish("stop"), 1)]);
        let mut client = client(flood.options());
        let mut stream = client.send_for_format("Go.", format).stream();
        let reading = async { while stream.next_event().await.is_some() {} };
        flood.taken.bounded(&format!("{name}, partial"), reading).await;
        // None of these is an object, so the model is asked again, or has called a tool instead.
        let frames = flood.taken.now().1;
        assert!(frames > 0 && frames.is_multiple_of(FRAMES), "{name}: {frames} frames");
        assert_eq!(stream.finish().await.unwrap_err().kind(), ErrorKind::Output, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_bodies_are_read_in_parts() {
    for size in [0, 1, 8 << 10] {
        let times = (1 << 20) / size.max(256);
        let flood = |status, words: &str| {
            let frame = words.repeat(size / words.len().max(1));
            let mut flood = Flood::new([("[1".to_owned(), 1), (frame, times)]);
            flood.status = status;
            flood
        };
        let refused = flood(503, "1");
        let mut refused_client = client(refused.options());
        let (error, _) = refused.taken.bounded("an error", refused_client.send("Go.")).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Api);

        let document = flood(200, "1");
        let mut document_client = client(document.options());
        let asking = document_client.ask("Go.");
        let (error, _) = document.taken.bounded("a document", asking).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Stream);

        let list = flood(200, "1");
        let options = list.options().build().unwrap();
        let (error, _) = list.taken.bounded("a list", models(&options)).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Stream);
    }
}

#[tokio::test(start_paused = true)]
async fn errors_end_the_answer_before_a_flood() {
    let error = format!("data: {}\n\n", json!({"error": {"message": "the GPU fell off"}}));
    for (name, flood) in empty_floods() {
        let frame = frame_of(&flood, 8 << 10);
        let flood = Flood::new([(error.clone(), 1), (frame, 64)]);
        let mut client = client(flood.options());
        let (answer, _) = flood.taken.bounded(name, client.ask("Go.")).await;
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Api, "{name}");
    }
}

/// Empty output does not restart a timer, however much of it arrives.
#[tokio::test]
async fn floods_delay_no_timeout_or_interrupt() {
    const ENDLESS: usize = usize::MAX;
    let wait = Duration::from_millis(50);
    for (name, flood) in empty_floods() {
        let frame = frame_of(&flood, 16 << 10);
        let text = chunk(json!({"content": "Hello"}));
        let flood = Flood::new([(text, 1), (frame.clone(), ENDLESS)]);
        let mut silent = client(flood.options().content_timeout(wait));
        let began = Instant::now();
        let error = silent.ask("Go.").await.unwrap_err();
        println!("{name}: content timeout after {:?}", began.elapsed());
        assert_eq!(error.timeout(), Some(TimeoutKind::Content), "{name}");

        let mut limited = client(flood.options().max_run_time(wait));
        let began = Instant::now();
        let reply = limited.ask("Go.").await.unwrap();
        println!("{name}: run time over after {:?}", began.elapsed());
        assert_eq!(reply.finish_reason, FinishReason::MaxRunTime, "{name}");

        // The interrupting task runs on the same thread.
        let mut interrupted = client(flood.options());
        let handle = interrupted.interrupt_handle();
        let waiting = tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            handle.interrupt();
            Instant::now()
        });
        let reply = interrupted.ask("Go.").await.unwrap();
        let ended = Instant::now();
        assert_eq!(reply.finish_reason, FinishReason::Interrupted, "{name}");
        // The flood is endless, so only an interrupt that is noticed ends the answer.
        println!("{name}: interrupted within {:?}", ended - waiting.await.unwrap());
    }
}

/// A server in its own thread, whose first answer is a flood; ends with the sender.
fn serve(flood: String) -> (String, mpsc::Sender<()>) {
    let (told, address) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime is there").block_on(async {
            // Silent after the flood, so that only an interrupt ends the answer, however late it comes.
            let silence = flood.len();
            let reply = Reply::sse(flood).stall_after(silence);
            let reply = reply.cut(Cut::Every(64 << 10)).framing(Framing::Chunked);
            let script = Script::from([reply, Reply::text("Here I am.")]);
            let server = SocketServer::start(script).await.expect("loopback sockets are there");
            told.send(server.base_url()).expect("the test waits for it");
            let _ = tokio::task::spawn_blocking(move || stopped.recv()).await;
        });
    });
    (address.recv().expect("the server starts"), stop)
}

#[tokio::test]
async fn socket_floods_do_not_delay_interrupts() {
    let floods = empty_floods().into_iter().chain(telling_floods());
    let mut limits = Limits::default();
    let answer = &mut limits.answer;
    (answer.held_bytes, answer.text_bytes, answer.argument_bytes) =
        (usize::MAX / 8, usize::MAX / 8, usize::MAX / 8);
    for (name, flood) in floods {
        let text = chunk(json!({"content": "Hello"}));
        let (base_url, _stop) = serve(text + &frame_of(&flood, 48 << 20));
        let options = AgentOptions::builder().model("any").base_url(base_url).limits(limits);
        let mut client = client(options.retry(RetryConfig::none()));
        client.send("Go.").await.unwrap();
        let handle = client.interrupt_handle();
        // From another thread, like a signal handler.
        let waiting = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            handle.interrupt();
            Instant::now()
        });
        while client.receive().await.unwrap().is_some() {}
        let took = Instant::now().saturating_duration_since(waiting.join().unwrap());
        println!("{name}: interrupted within {took:?}");
        assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted), "{name}");
        assert_eq!(client.ask("Still there?").await.unwrap().text, "Here I am.", "{name}");
    }
}

fn flood_of_parts() -> impl Strategy<Value = Vec<(String, usize)>> {
    let words: Vec<_> = empty_floods().into_iter().chain(telling_floods()).collect();
    let part = (prop::sample::select(words), 0..40_usize << 10, 1..64_usize);
    vec(part.prop_map(|((_, words), size, times)| (frame_of(&words, size.max(1)), times)), 1..6)
}

proptest! {
    #![proptest_config(cases(24))]

    /// For any body and any split into frames, no poll takes more than a few budgets, and the answer equals
    /// that of a slow reader.
    #[test]
    fn no_poll_takes_more_than_its_budget(parts in flood_of_parts()) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().expect("a runtime is there");
        let all: String = parts.iter().map(|(frame, times)| frame.repeat(*times)).collect();
        let ask = |mut client: Client| async move {
            match client.ask("Go.").await {
                Ok(reply) => Ok((reply.text, client.history().to_vec())),
                Err(error) => Err(error.kind()),
            }
        };
        let flood = Flood::new(parts);
        let flooded = flood.taken.bounded("parts", ask(client(flood.options())));
        let (flooded, _) = runtime.block_on(flooded);
        let server = oa_testkit::MemoryServer::new(Reply::sse(all).cut(Cut::Every(1 << 20)));
        let options = AgentOptions::builder().model("any").retry(RetryConfig::none());
        let calm = runtime.block_on(ask(client(options.transport(server))));
        prop_assert_eq!(flooded, calm);
    }
}
