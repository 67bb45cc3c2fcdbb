//! Many megabytes of something that should be small: read to the end or rejected, but never buffered.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use oa_chat::RetryConfig;
use oa_client::{AgentOptions, Client};
use oa_testkit::{Cut, Framing, Reply, Script, SocketServer};
use suite::talk::{letters, open_calls};

use super::case::{RECOVERED, Stage};
use super::{look, served};

/// More than any limit of the client, in bytes.
const SIZE: usize = 64 << 20;

/// Of comments, which have no limit: many times what may be held, in bytes.
const COMMENTS: usize = 16 << 20;

/// A server in its own thread, whose memory is not counted here; ends with the sender.
fn serve(replies: Vec<Reply>) -> (String, mpsc::Sender<()>) {
    let (told, address) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime is there").block_on(async {
            let script = Script::from(replies).strict();
            let server = SocketServer::start(script).await.expect("loopback sockets are there");
            told.send(server.base_url()).expect("the test waits for it");
            let ended = tokio::task::spawn_blocking(move || stopped.recv());
            let _ = ended.await;
        });
    });
    (address.recv().expect("the server starts"), stop)
}

/// Sends a flood to a client. Returns the outcome as text, the peak of bytes held, and the time taken.
fn swallow(body: Reply, framing: Framing) -> (String, u64, Duration) {
    let flood = body.framing(framing).cut(Cut::Every(64 << 10));
    let (base_url, _stop) = serve(vec![flood, Reply::text(RECOVERED)]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime is there");
    let (mut seen, mut history) = (String::new(), String::new());
    let began = Instant::now();
    let memory = allocation_counter::measure(|| {
        runtime.block_on(async {
            let options = AgentOptions::builder().model("any").base_url(base_url).tool(look());
            let options = options.retry(RetryConfig::none()).build().expect("these can work");
            let mut client = Client::new(options).expect("there is a model");
            seen = match client.ask("Look.").await {
                Ok(reply) => format!("{} {:?}", reply.finish_reason.as_str(), reply.text),
                Err(error) => format!("{:?}: {error}", error.kind()),
            };
            let again = client.ask("Again.").await.expect("the next prompt is as any other");
            assert_eq!(again.text, RECOVERED);
            assert_eq!(open_calls(client.history()), [""; 0]);
            history = letters(client.history());
        });
    });
    (format!("{seen} [{history}]"), memory.bytes_max, began.elapsed())
}

#[test]
fn comment_floods_are_not_buffered() {
    let stages = [
        Stage::AfterHead,
        Stage::BeforeDelta,
        Stage::InText,
        Stage::InArguments,
        Stage::BeforeUsage,
    ];
    for stage in stages {
        let body = served::flooded(stage, ": keep-alive\n\n", COMMENTS);
        for framing in [Framing::Chunked, Framing::Length, Framing::Close] {
            let (seen, held, time) = swallow(Reply::sse(body.clone()), framing);
            println!("{stage:?}, {framing:?}: {seen}, {held} bytes at most, {time:?}");
            assert_eq!(seen, r#"tool_calls "Hello world" [uctua]"#, "{stage:?} {framing:?}");
            assert!(held < 1 << 20, "{held} bytes for {stage:?} {framing:?}");
        }
    }
}

#[test]
fn other_floods_are_not_buffered() {
    let page =
        |status, kind, words: &str| Reply::body(status, kind, words.repeat(SIZE / words.len()));
    let limit = "Limit: an event is larger than the limit of 8388608 bytes";
    let cases = [
        (
            "lines of HTML",
            page(200, "text/html", "<p>no luck</p>\n"),
            "Stream: expected an event stream, got",
            1,
        ),
        ("one line of HTML", page(200, "text/html", "<p>no luck</p>"), limit, 25),
        (
            "a document",
            page(200, "application/json", "{\"a\":[1,2,3],"),
            "Limit: the body is larger",
            25,
        ),
        ("one event", page(200, "text/event-stream", "data: 1\n"), limit, 25),
        (
            "an error page",
            page(503, "text/html", "<p>no luck</p>\n"),
            "Api: the server answered 503",
            // The kept megabyte, and the text without its tags.
            12,
        ),
    ];
    for (name, reply, expected, megabytes) in cases {
        let (seen, held, time) = swallow(reply, Framing::Chunked);
        let shown: String = seen.chars().take(80).collect();
        println!("{name}: {shown}…, {held} bytes at most, {time:?}");
        assert!(seen.starts_with(expected), "{name}: {seen}");
        assert!(seen.ends_with("[ua]"), "{name}: {seen}");
        assert!(held < megabytes << 20, "{name}: {held} bytes");
    }
}
