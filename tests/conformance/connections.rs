//! Connections: closed early, several at once, one after the other, silent for long.

use std::time::{Duration, Instant};

use open_agent::client::TimeoutKind;
use open_agent::{ContentBlock, ErrorKind, json, query};
use serde_json::Value;
use tower::service_fn;

use crate::answer::{Answer, ask};
use crate::server::{Server, Wanted, check, check_alone, skipped};
use crate::wire::{Comments, Connections, get};

const PROMPT: &str = "Say something about a garden.";

/// How long a server may take to notice that nobody listens.
const NOTICE: Duration = Duration::from_secs(2);

/// How many slots work, where the server tells.
async fn busy(server: &Server) -> Option<usize> {
    let (status, body) = get(&server.beside("/slots")).await.ok()?;
    let slots: Value = serde_json::from_slice(&body).ok().filter(|_| status == 200)?;
    let is_busy = |slot: &&Value| slot["is_processing"] == true;
    Some(slots.as_array()?.iter().filter(is_busy).count())
}

/// How long it takes until no more slots work than that.
async fn until_idle(server: &Server, idle: usize) -> Duration {
    let begin = Instant::now();
    while busy(server).await.is_none_or(|busy| busy > idle) {
        assert!(begin.elapsed() < NOTICE, "the server still works after {:?}", begin.elapsed());
    }
    begin.elapsed()
}

#[test]
fn dropping_a_stream_frees_its_slot() {
    check_alone(Wanted::Any, async |server| {
        let Some(before) = busy(server).await else {
            return skipped("the server does not tell what its slots do");
        };
        // Without an end: only the context bounds it.
        let endless = json!({ "max_tokens": -1, "ignore_eos": true });
        let options = server.options().seed(5).extra_body(endless).build().unwrap();
        let mut stream = query(PROMPT, &options).await.unwrap();
        for _ in 0..5 {
            assert!(matches!(stream.next().await, Some(Ok(ContentBlock::Text(_)))));
        }
        assert_eq!(busy(server).await, Some(before + 1));
        drop(stream);
        println!("the slot was free after {:?}", until_idle(server, before).await);
    });
}

#[test]
fn dropping_a_question_before_its_answer_frees_its_slot() {
    check_alone(Wanted::Tiny, async |server| {
        assert_eq!(busy(server).await, Some(0));
        // To read this takes the server two seconds or so.
        let prompt = "word ".repeat(3800);
        let options = server.options().build().unwrap();
        let mut question = Box::pin(query(&prompt, &options));
        let work = async {
            while busy(server).await != Some(1) {}
        };
        tokio::select! {
            answer = &mut question => panic!("too fast to be left: {answer:?}"),
            () = work => {}
        }
        drop(question);
        println!("the slot was free after {:?}", until_idle(server, 0).await);
    });
}

#[test]
fn streams_at_once_do_not_mix() {
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
        // Of each in turn one block.
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
fn fifty_questions_one_after_the_other_are_answered_and_leave_nothing_open() {
    check(Wanted::Any, async |server| {
        if !server.base_url.starts_with("http://") {
            return skipped("connections are counted without TLS");
        }
        // llama.cpp says keep-alive and closes each connection.
        let connections = Connections::default();
        let options = server.options().seed(11).max_tokens(8);
        let options = options.transport(connections.transport()).build().unwrap();
        let begin = Instant::now();
        let mut most = 0;
        for number in 0..50 {
            let answer = ask(&options, PROMPT).await;
            let answer = answer.unwrap_or_else(|error| panic!("question {number}: {error:?}"));
            assert!(answer.error.is_none(), "question {number}: {answer:?}");
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
fn comments_that_keep_a_connection_alive_neither_begin_nor_end_the_wait() {
    check(Wanted::Keyed, async |server| {
        let long = "word ".repeat(5500);
        let comments = Comments::default();
        let options = || {
            let comments = comments.clone();
            let transport = service_fn(move |request| comments.clone().send(request));
            server.options().seed(11).max_tokens(3).transport(transport)
        };
        // A silence of half a second would end an answer that a comment had begun.
        let patient = options().timeout(Duration::from_millis(500)).build().unwrap();
        let begin = Instant::now();
        let answer = ask(&patient, &long).await.unwrap();
        let took = begin.elapsed();
        println!("{} comments in {took:?}", comments.count());
        if comments.count() == 0 {
            return skipped("the server sent no comments");
        }
        assert!(answer.error.is_none(), "{answer:#?}");
        assert!(!answer.text().is_empty());

        // Comments do not put off the end of patience either.
        let hasty = options().first_token_timeout(took / 2).build().unwrap();
        let error = match query(&long, &hasty).await {
            Ok(stream) => Answer::read(stream).await.error.expect("it takes longer"),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
        assert_eq!(error.timeout(), Some(TimeoutKind::FirstToken));
        println!("{error}");
    });
}
