//! Connections: closed early, several at once, one after the other, silent for long.

use std::time::{Duration, Instant};

use open_agent::transport::TimeoutKind;
use open_agent::{Client, ContentBlock, ErrorKind, FinishReason, json, query};
use serde_json::Value;
use tower::service_fn;

use crate::answer::ask;
use crate::server::{Server, Wanted, check, check_alone, skipped};
use crate::wire::{Comments, Connections, get};

const PROMPT: &str = "Say something about a garden.";

/// The time that a server may take to notice a closed connection while it writes.
const NOTICE: Duration = Duration::from_secs(2);

/// The time that a server may take to notice a closed connection while it reads: llama.cpp checks once a second, and
/// not within a batch.
const NOTICE_READING: Duration = Duration::from_secs(15);

/// Returns the number of busy slots, if the server reports it.
pub(crate) async fn busy(server: &Server) -> Option<usize> {
    let (status, body) = get(&server.beside("/slots")).await.ok()?;
    let slots: Value = serde_json::from_slice(&body).ok().filter(|_| status == 200)?;
    let is_busy = |slot: &&Value| slot["is_processing"] == true;
    Some(slots.as_array()?.iter().filter(is_busy).count())
}

/// Returns the time until no slot is busy; `None` if it exceeds the limit.
async fn until_idle(server: &Server, longest: Duration) -> Option<Duration> {
    let begin = Instant::now();
    while busy(server).await != Some(0) {
        if begin.elapsed() > longest {
            return None;
        }
    }
    Some(begin.elapsed())
}

#[test]
fn dropping_a_stream_frees_its_slot() {
    check_alone(Wanted::Any, async |server| {
        if busy(server).await.is_none() {
            return skipped("the server does not tell what its slots do");
        }
        if until_idle(server, NOTICE_READING).await.is_none() {
            assert!(!server.is_tiny, "a slot still works for another test");
            return skipped("the server works for somebody else");
        }
        // Endless: only the context limits it.
        let endless = json!({ "max_tokens": -1, "ignore_eos": true });
        let options = server.options().seed(5).extra_body(endless).build().unwrap();
        let mut stream = query(PROMPT, &options).await.unwrap();
        for _ in 0..5 {
            stream.next().await.expect("it has no end").unwrap();
        }
        assert_eq!(busy(server).await, Some(1));
        drop(stream);
        let time = until_idle(server, NOTICE).await.expect("it notices that nobody listens");
        println!("the slot was free after {time:?}");
    });
}

#[test]
fn interrupts_free_the_slot() {
    check_alone(Wanted::Tiny, async |server| {
        until_idle(server, NOTICE_READING).await.expect("no slot works for another test");
        let endless = json!({ "max_tokens": -1, "ignore_eos": true });
        let options = server.options().seed(5).extra_body(endless).build().unwrap();
        let mut client = Client::new(options).unwrap();
        for round in 1..=3 {
            client.send(PROMPT).await.unwrap();
            let mut text = String::new();
            for _ in 0..5 {
                match client.receive().await.unwrap() {
                    Some(ContentBlock::Text(block)) => text += &block.text,
                    other => panic!("it has no end: {other:?}"),
                }
            }
            assert_eq!(busy(server).await, Some(1));
            client.interrupt();
            assert!(client.receive().await.unwrap().is_none());
            let time = until_idle(server, NOTICE).await.expect("it notices that nobody listens");
            println!("the slot was free after {time:?}");
            assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
            // The received part is kept, and so is every prompt.
            assert_eq!(client.history().len(), 2 * round);
            let last = client.history().last().unwrap();
            assert!(last.interrupted && last.text() == text, "{last:?}");
        }
    });
}

#[test]
fn dropping_a_query_closes_its_connection() {
    check_alone(Wanted::Tiny, async |server| {
        until_idle(server, NOTICE_READING).await.expect("no slot works for another test");
        let connections = Connections::default();
        let options = server.options().transport(connections.transport()).build().unwrap();
        // Processing this takes the server about two seconds.
        let prompt = "word ".repeat(3800);
        let question = async {
            // The response head may come early, but not the first block.
            let mut stream = query(&prompt, &options).await.unwrap();
            stream.next().await
        };
        let work = async { while busy(server).await != Some(1) {} };
        tokio::select! {
            block = question => panic!("too fast to be left: {block:?}"),
            () = work => {}
        }
        assert_eq!((connections.opened(), connections.open()), (1, 0));
        let time = until_idle(server, NOTICE_READING).await.expect("it notices in the end");
        println!("the slot was free after {time:?}");
    });
}

#[test]
fn concurrent_streams_do_not_mix() {
    check(Wanted::Tiny, async |server| {
        let options = |seed| {
            let long = json!({ "ignore_eos": true });
            server.options().seed(seed).max_tokens(300).extra_body(long).build().unwrap()
        };
        let mut alone = Vec::new();
        for seed in 1..=4 {
            alone.push(ask(&options(seed), PROMPT).await.unwrap().text());
        }
        let options = [1, 2, 3, 4].map(options);
        let [a, b, c, d] = &options;
        let (a, b, c, d) =
            tokio::join!(query(PROMPT, a), query(PROMPT, b), query(PROMPT, c), query(PROMPT, d));
        let mut streams = [a, b, c, d].map(Result::unwrap);
        // One block of each in turn.
        let mut texts = [const { String::new() }; 4];
        let mut open = streams.len();
        while open > 0 {
            open = 0;
            for (stream, text) in streams.iter_mut().zip(&mut texts) {
                if let Some(block) = stream.next().await {
                    text.push_str(block.unwrap().as_text().unwrap());
                    open += 1;
                }
            }
        }
        assert_eq!(texts.as_slice(), alone);
        assert!(texts[0] != texts[1]);
    });
}

#[test]
fn sequential_queries_leave_nothing_open() {
    check(Wanted::Any, async |server| {
        if !server.base_url.starts_with("http://") {
            return skipped("connections are counted without TLS");
        }
        // llama.cpp says keep-alive but closes each connection.
        let connections = Connections::default();
        let options = server.options().seed(11).max_tokens(8);
        let options = options.transport(connections.transport()).build().unwrap();
        let begin = Instant::now();
        let mut most = 0;
        for number in 0..50 {
            let answer = ask(&options, PROMPT).await;
            answer.unwrap_or_else(|error| panic!("question {number}: {error:?}"));
            most = most.max(connections.open());
        }
        let (time, opened) = (begin.elapsed(), connections.opened());
        println!("50 answers over {opened} connections, {most} open at once, in {time:?}");
        assert!(most <= 1, "{most} connections are open between questions");
        assert!((1..=50).contains(&opened), "{opened} connections for 50 questions");
        drop(options);
        assert_eq!(connections.open(), 0);
    });
}

#[test]
fn comments_do_not_affect_timeouts() {
    check(Wanted::Keyed, async |server| {
        let long = "word ".repeat(5500);
        let comments = Comments::default();
        let options = || {
            let comments = comments.clone();
            let transport = service_fn(move |request| comments.clone().send(request));
            server.options().seed(11).max_tokens(3).transport(transport)
        };
        // After an answer started by a comment, a silence this long would end it.
        let patient = options().timeout(Duration::from_millis(700)).build().unwrap();
        let begin = Instant::now();
        let answer = ask(&patient, &long).await.unwrap();
        let took = begin.elapsed();
        println!("{} comments in {took:?}", comments.count());
        if comments.count() == 0 {
            return skipped("the server sent no comments");
        }
        assert!(!answer.text().is_empty());

        // Comments do not extend the first-token timeout either.
        let hasty = options().first_token_timeout(took / 2).build().unwrap();
        let Err(error) = ask(&hasty, &long).await else {
            return skipped("the server was twice as fast this time");
        };
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
        assert_eq!(error.timeout(), Some(TimeoutKind::FirstToken));
        println!("{error}");
    });
}
