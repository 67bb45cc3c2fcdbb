//! Answers of a server: how they end, and what is delivered before that.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use oa_chat::{
    AnswerDelta, AnswerStream, BoxFuture, ChatRequest, Endpoint, Error, ErrorKind, OnBadChunk,
    Pipeline, PipelineOptions, Result,
};
use oa_testkit::{Cut, MemoryServer, Reply, Script};
use oa_types::{ContentBlock, Message, Usage};
use proptest::prelude::*;
use serde_json::json;
use tower::ServiceExt as _;

const ERROR: &str = r#"{"error":{"message":"overloaded"}}"#;
const DONE: &str = "data: [DONE]\n\n";

fn word(text: &str) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }))
}

fn stop() -> String {
    let chunk = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    format!("data: {chunk}\n\n{DONE}")
}

/// Asks a server that replies like this.
async fn ask(reply: Reply, request: ChatRequest) -> Result<AnswerStream> {
    let server = MemoryServer::new(Script::new().otherwise(reply));
    let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server).build()?;
    endpoint.oneshot(request).await
}

fn request() -> ChatRequest {
    ChatRequest::new("any", vec![Message::user("Go.")])
}

/// Reads an answer: its text as delivered, and its end.
async fn read(mut answer: AnswerStream) -> (String, Result<String>) {
    let mut told = String::new();
    while let Some(delta) = answer.next().await {
        match delta {
            Ok(AnswerDelta::Text { text }) => told.push_str(&text),
            Ok(AnswerDelta::End { message }) => return (told, Ok(message.text())),
            Ok(_) => {}
            Err(error) => return (told, Err(error)),
        }
    }
    panic!("the answer has no end: {told}");
}

/// An answer that is replaced by another if it breaks before it has begun.
async fn replaceable(reply: Reply) -> Result<AnswerStream> {
    let mut answer = ask(reply, request()).await?;
    answer.on_early_end(|_| Ok(Box::pin(ask(Reply::text("Hello, world"), request()))));
    Ok(answer)
}

/// Proxies report errors as JSON with a success status, too.
#[tokio::test(start_paused = true)]
async fn documents_without_an_answer_are_quoted() {
    for (body, expected) in [
        (r#"{"detail":"Not authenticated"}"#, "the server reported an error: Not authenticated"),
        (r#"{"code":42901,"message":"Busy"}"#, "the server reported an error: Busy"),
        (
            r#"{"reason":"Not authenticated"}"#,
            r#"expected an event stream, got 30 bytes of application/json: {"reason":"Not authenticated"}"#,
        ),
        (
            r#"{"choices":[]}"#,
            r#"expected an event stream, got 14 bytes of application/json: {"choices":[]}"#,
        ),
    ] {
        let answer = ask(Reply::body(200, "application/json", body), request()).await.unwrap();
        let (told, end) = read(answer).await;
        let error = end.unwrap_err().to_string();
        assert_eq!((&*told, &*error), ("", expected));
    }
}

#[tokio::test(start_paused = true)]
async fn replaced_answers_deliver_nothing() {
    let body = word("Hel") + "data: " + ERROR + "\n\n" + DONE;
    let mut replaced = 0;
    for cut in 0..=body.len() {
        let reply = Reply::sse(body.clone()).cut(Cut::At(vec![cut]));
        match read(replaceable(reply).await.unwrap()).await {
            (told, Ok(text)) => {
                assert_eq!((&*told, &*text), ("Hello, world", "Hello, world"), "{cut}");
                replaced += 1;
            }
            (told, Err(error)) => assert_eq!((&*told, error.kind()), ("Hel", ErrorKind::Api)),
        }
    }
    assert!(replaced > 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_parsed_precedes_a_failed_retry() {
    let body = word("Hel") + "data: " + ERROR + "\n\n" + DONE;
    let mut answer = ask(Reply::sse(body).cut(Cut::Whole), request()).await.unwrap();
    let down = Reply::error(503, "down");
    answer.on_early_end(|_| Ok(Box::pin(ask(down, request()))));
    let (told, end) = read(answer).await;
    assert_eq!((&*told, end.unwrap_err().status()), ("Hel", Some(503)));
}

#[tokio::test(start_paused = true)]
async fn errors_read_at_the_end_are_early_too() {
    let json = |body: &str| Reply::body(200, "application/json", body.to_owned());
    let role = r#"data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}"#;
    for (what, reply) in [
        ("a document", json(ERROR)),
        ("a broken document", json("{\"error\":")),
        ("no blank line", Reply::sse(format!("data: {ERROR}"))),
        ("only a role", Reply::sse(format!("{role}\n\n"))),
        ("only an end", Reply::sse(DONE)),
        ("a web page", Reply::body(200, "text/html", "<html>Welcome</html>")),
    ] {
        let (told, end) = read(replaceable(reply).await.unwrap()).await;
        assert_eq!((&*told, &*end.unwrap()), ("Hello, world", "Hello, world"), "{what}");
    }
    // An answer that says nothing but ends is an answer.
    let (told, end) = read(replaceable(Reply::sse(stop())).await.unwrap()).await;
    assert_eq!((&*told, &*end.unwrap()), ("", ""));
}

/// Reads a body in pieces of this size; returns the text of the answer.
fn text_of(body: &str, size: usize, options: PipelineOptions) -> String {
    let mut pipeline = Pipeline::new(options);
    let mut is_broken = false;
    for piece in body.as_bytes().chunks(size) {
        is_broken = pipeline.push(bytes::Bytes::copy_from_slice(piece)).is_err();
        if is_broken {
            break;
        }
    }
    assert!(is_broken, "{size}");
    assert!(pipeline.finish().is_ok(), "an error is returned once");
    pipeline.into_answer().blocks.iter().filter_map(ContentBlock::as_text).collect()
}

#[test]
fn nothing_follows_a_chunk_that_fails() {
    let mut strict = PipelineOptions::default();
    strict.on_bad_chunk = OnBadChunk::Fail;
    let mut small = PipelineOptions::default();
    small.parser.event_bytes = 100;
    let long = "x".repeat(200);
    for (bad, options) in [("{broken", strict), (&*long, small)] {
        let body = word("one ") + "data: " + bad + "\n\n" + &word("two") + &stop();
        for size in [1, 7, body.len()] {
            assert_eq!(text_of(&body, size, options), "one ", "{size}");
        }
    }
}

type Log = Arc<Mutex<Vec<String>>>;

/// An answer inside of a layer that replaces it, with one layer inside of that and one outside.
async fn layered(log: &Log, first: Reply, second: Reply) -> Result<AnswerStream> {
    let tell = |answer: &mut AnswerStream, layer: &'static str| {
        let (begun, ended) = (Arc::clone(log), Arc::clone(log));
        let note = move |log: &Log, what: String| {
            log.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{layer} {what}"));
        };
        answer.on_begin(move || note(&begun, "begins".to_owned()));
        answer.on_end(move |outcome| {
            let error = outcome.error.and_then(Error::status);
            let what =
                if outcome.interrupted { "interrupted" } else { outcome.finish_reason.as_str() };
            note(&ended, error.map_or_else(|| what.to_owned(), |status| status.to_string()));
        });
    };
    let mut answer = ask(first, request()).await?;
    tell(&mut answer, "inner");
    answer.on_early_end(|_| Ok(Box::pin(ask(second, request()))));
    tell(&mut answer, "outer");
    Ok(answer)
}

/// Whoever replaces an answer hides that it broke from the services around it.
#[tokio::test(start_paused = true)]
async fn outer_callbacks_follow_the_replacement() {
    let broken = || Reply::sse(format!("data: {ERROR}\n\n"));
    let whole = || Reply::sse(word("Hello") + &stop());
    let slow = || whole().delay_head(Duration::from_secs(1));
    let lines = |log: &Log| log.lock().unwrap().join(", ");
    for (first, second, told) in [
        (whole(), broken(), "inner begins, outer begins, inner stop, outer stop"),
        (broken(), whole(), "inner unspecified, outer begins, outer stop"),
        (broken(), Reply::error(503, "down"), "inner unspecified, outer 503"),
        (broken(), broken(), "inner unspecified, outer unspecified"),
    ] {
        let log = Log::default();
        let _ = layered(&log, first, second).await.unwrap().message().await;
        assert_eq!(lines(&log), told);
    }
    let log = Log::default();
    let mut answer = layered(&log, broken(), slow()).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(500), answer.next_delta()).await.is_err());
    assert!(answer.arrived().is_empty());
    assert_eq!(lines(&log), "inner unspecified, outer interrupted");
}

/// An answer that is being replaced has delivered nothing, and nothing of it has arrived.
#[tokio::test(start_paused = true)]
async fn interrupted_replacements_return_no_call() {
    let function = json!({ "name": "rm", "arguments": "{}" });
    let call = json!({ "index": 0, "id": "a", "type": "function", "function": function });
    let call = json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] });
    let broken = format!("data: {call}\n\ndata: {ERROR}\n\n{DONE}");
    for end in [AnswerStream::handed_out, AnswerStream::arrived] {
        let broken = Reply::sse(broken.clone()).cut(Cut::Whole);
        let slow = Reply::text("Late.").delay_head(Duration::from_secs(1));
        let mut answer = layered(&Log::default(), broken, slow).await.unwrap();
        let read = tokio::time::timeout(Duration::from_millis(500), answer.next_delta());
        assert!(read.await.is_err());
        assert_eq!(end(answer), []);
    }
}

/// The endings that several services were told: one entry for each callback.
type Endings = Arc<Mutex<Vec<Option<&'static str>>>>;

/// Sets a callback that records how the answer ended.
fn observe(answer: &mut AnswerStream, endings: &Endings) {
    let endings = Arc::clone(endings);
    let mut all = endings.lock().unwrap_or_else(PoisonError::into_inner);
    let place = all.len();
    all.push(None);
    drop(all);
    answer.on_end(move |outcome| {
        let how = match (outcome.error, outcome.interrupted) {
            (None, false) => "complete",
            (Some(_), false) => "failed",
            (None, true) => "interrupted",
            (Some(_), true) => "both",
        };
        let mut all = endings.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(all[place].replace(how), None, "it is told once");
    });
}

/// A server's answer, with one service around it for each of the others. Each replaces an answer that breaks early,
/// unless it declines.
fn nested(replies: Vec<(Reply, bool)>, endings: Endings) -> BoxFuture<Result<AnswerStream>> {
    Box::pin(async move {
        let mut rest = replies.into_iter();
        let (first, declines) = rest.next().expect("there is one");
        let mut answer = ask(first, request()).await?;
        observe(&mut answer, &endings);
        let (rest, inner): (Vec<_>, _) = (rest.collect(), Arc::clone(&endings));
        if !rest.is_empty() {
            answer.on_early_end(
                move |error| {
                    if declines { Err(error) } else { Ok(nested(rest, inner)) }
                },
            );
            observe(&mut answer, &endings);
        }
        Ok(answer)
    })
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let broken = format!("data: {ERROR}\n\n");
    let late = word("Hel") + &broken;
    prop::sample::select(vec![
        Reply::sse(word("Hello") + &stop()),
        Reply::sse(stop()),
        Reply::sse(""),
        Reply::sse(broken),
        Reply::sse(late.clone()),
        Reply::sse(late).cut(Cut::Whole),
        Reply::sse(word("Hel")).close_after(4),
        Reply::sse(word("Hel")).stall_after(4),
        Reply::sse(word("Hello") + &stop()).delay_head(Duration::from_secs(1)),
        Reply::error(503, "down"),
    ])
}

proptest! {
    /// Whoever asks for the end of an answer is told it once, however it is replaced, read and given up.
    #[test]
    fn every_end_is_told_once(
        replies in prop::collection::vec((any_reply(), any::<bool>()), 1..5),
        deltas in 0..4,
        end in 0..5,
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        let endings = Endings::default();
        let is_read = runtime.block_on(async {
            let Ok(mut answer) = nested(replies, Arc::clone(&endings)).await else { return None };
            let mut is_over = false;
            for _ in 0..deltas {
                let next = tokio::time::timeout(Duration::from_millis(300), answer.next_delta());
                is_over |= matches!(next.await, Ok(Some(Err(_)) | Some(Ok(AnswerDelta::End { .. }))));
            }
            match end {
                0 => drop(answer),
                1 => drop(answer.handed_out()),
                2 => drop(answer.arrived()),
                3 => drop(answer.conclude()),
                _ if is_over => drop(answer),
                _ => return Some(answer.message().await.is_ok()),
            }
            None
        });
        let endings = endings.lock().unwrap();
        prop_assert!(endings.iter().all(|how| how.is_some_and(|how| how != "both")), "{endings:?}");
        if let Some(is_read) = is_read {
            // The outermost of the services around the first answer.
            let outermost = endings.get(1).or_else(|| endings.first()).copied().flatten();
            prop_assert_eq!(outermost, Some(if is_read { "complete" } else { "failed" }));
        }
    }
}

/// The outcome of an answer of which one delta is read, and that then ends like this.
async fn usage_after(end: impl FnOnce(AnswerStream)) -> Option<Usage> {
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 4 });
    let choices = json!([{ "index": 0, "delta": { "content": "Hel" } }]);
    let chunk = json!({ "choices": choices, "usage": usage });
    let reply = Reply::sse(format!("data: {chunk}\n\n") + &word("lo") + &stop());
    let mut answer = ask(reply, request()).await.expect("it answers");
    let seen = Arc::new(Mutex::new(None));
    let note = Arc::clone(&seen);
    answer.on_end(move |outcome| {
        assert!(outcome.interrupted);
        *note.lock().unwrap_or_else(PoisonError::into_inner) = outcome.usage;
    });
    assert!(answer.next_delta().await.is_some());
    end(answer);
    seen.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[tokio::test(start_paused = true)]
async fn interrupted_answers_report_their_usage() {
    let dropped = usage_after(drop).await.unwrap();
    assert_eq!(dropped.completion_tokens, Some(4));
    assert_eq!(dropped.time_to_first_token, Some(Duration::ZERO));
    assert_eq!(usage_after(|answer| drop(answer.handed_out())).await, Some(dropped));
    assert_eq!(usage_after(|answer| drop(answer.arrived())).await, Some(dropped));
    assert_eq!(usage_after(|answer| drop(answer.conclude())).await, Some(dropped));
}

/// The server is not to blame for what nobody has read.
#[tokio::test(start_paused = true)]
async fn unread_answers_conclude_without_failure() {
    let broken = Reply::sse(format!("data: {ERROR}\n\n"));
    for (first, is_polled) in [(Reply::text("Hello"), false), (broken, true)] {
        let log = Log::default();
        let slow = Reply::text("Late.").delay_head(Duration::from_secs(1));
        let mut answer = layered(&log, first, slow).await.unwrap();
        if is_polled {
            let read = tokio::time::timeout(Duration::from_millis(500), answer.next_delta());
            assert!(read.await.is_err(), "another answer is awaited");
        }
        let concluded = answer.conclude();
        assert!(concluded.failure.is_none() && concluded.closing.is_none(), "{concluded:?}");
        assert_eq!(concluded.message.content, []);
        assert!(log.lock().unwrap().last().unwrap().ends_with("outer interrupted"), "{log:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn deltas_may_pause_after_their_finish_reason() {
    let finish = json!({ "type": "finish", "reason": "stop" });
    let finish: AnswerDelta = serde_json::from_value(finish).unwrap();
    let mut last = oa_types::AssistantMessage::new(vec![]);
    last.model = Some("tiny".to_owned());
    let end = AnswerDelta::End { message: Box::new(last) };
    let first = futures_util::stream::iter([AnswerDelta::text("Hi."), finish]);
    let late = futures_util::stream::once(async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        end
    });
    let answer = AnswerStream::from_deltas(first.chain(late).map(Ok::<_, Error>));
    assert_eq!(answer.message().await.unwrap().model.as_deref(), Some("tiny"));
}

/// A replay keeps the times of its recording.
#[tokio::test(start_paused = true)]
async fn given_messages_keep_their_times() {
    let times = [(None, None), (Some(Duration::from_secs(2)), Some(Duration::from_secs(10)))];
    for (first_token, generation) in times {
        let mut message = oa_types::AssistantMessage::new(vec![]);
        message.usage = first_token.map(|_| {
            let mut usage = Usage::default();
            (usage.time_to_first_token, usage.generation_time) = (first_token, generation);
            usage
        });
        let end = AnswerDelta::End { message: Box::new(message.clone()) };
        let deltas = [AnswerDelta::text("Hi."), end].map(Ok::<_, Error>);
        let answer = AnswerStream::from_deltas(futures_util::stream::iter(deltas));
        assert_eq!(answer.message().await.unwrap().usage, message.usage);
    }
}
