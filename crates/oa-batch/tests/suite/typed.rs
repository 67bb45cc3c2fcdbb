//! Batches of typed answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream;
#[cfg(feature = "log")]
use oa_batch::BatchLog;
use oa_batch::{BatchOptions, TypedBatch, TypedReply, run_batch_for, run_batch_stream_for};
use oa_chat::RetryConfig;
use oa_client::{AgentOptions, ErrorKind, OutputMode, Result};
use oa_testkit::{MemoryServer, Reply};
use oa_tools::tool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::model::{Asked, agent, prompts, server};

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Item {
    number: usize,
}

fn item(prompt: &str) -> Reply {
    let number = prompt.rsplit(' ').next().and_then(|number| number.parse::<usize>().ok());
    Reply::text(json!({ "number": number }).to_string()).usage(5, 2)
}

async fn all<T>(mut batch: TypedBatch<'_, T>) -> Vec<(usize, Result<TypedReply<T>>)>
where
    T: serde::de::DeserializeOwned,
{
    let mut outcomes = Vec::new();
    while let Some(outcome) = batch.next().await {
        outcomes.push(outcome);
    }
    outcomes
}

#[tokio::test(start_paused = true)]
async fn answers_are_values() {
    let server = server(&Asked::default(), |prompt, times| {
        Some(if times == 1 { Reply::error(503, "loading") } else { item(prompt) })
    });
    let options = BatchOptions::new(agent(server)).in_input_order(true);
    let batch = run_batch_for::<Item>(prompts(30), options).unwrap();
    let replies = all(batch).await;
    assert_eq!(replies.len(), 30);
    for (number, (index, reply)) in replies.into_iter().enumerate() {
        let TypedReply { value, reply, .. } = reply.unwrap();
        assert_eq!((index, value.number), (number, number));
        assert_eq!(reply.text, json!({ "number": number }).to_string());
        assert_eq!(reply.turn_usage.total(), Some(7));
    }
}

/// The object that wraps it for the server is not part of the value.
#[tokio::test]
async fn values_need_not_be_objects() {
    let server = MemoryServer::new([Reply::text(r#"{"value": [2, 3]}"#)]);
    let batch = run_batch_for::<Vec<u8>>(["Primes?"], BatchOptions::new(agent(server))).unwrap();
    assert_eq!(all(batch).await.remove(0).1.unwrap().value, [2, 3]);
}

#[tokio::test]
async fn wrong_answers_are_corrected_or_fail() {
    let server = server(&Asked::default(), |prompt, _| match prompt {
        "prompt 1" => Some(Reply::text("none")),
        _ if prompt.starts_with("prompt") => Some(Reply::text(r#"{"number": -1}"#)),
        _ => Some(Reply::text(r#"{"number": 4}"#)),
    });
    let options = BatchOptions::new(agent(server)).in_input_order(true);
    let mut batch = run_batch_for::<Item>(["prompt 0", "prompt 1"], options).unwrap();
    let (_, reply) = batch.next().await.unwrap();
    assert_eq!(reply.unwrap().value, Item { number: 4 });
    let (_, reply) = batch.next().await.unwrap();
    assert_eq!(reply.unwrap().value, Item { number: 4 });
    assert!(batch.next().await.is_none());

    let server = MemoryServer::new(vec![Reply::text("none"); 3]);
    let mut batch = run_batch_for::<Item>(["prompt 0"], BatchOptions::new(agent(server))).unwrap();
    let (_, reply) = batch.next().await.unwrap();
    let error = reply.unwrap_err();
    assert_eq!((error.kind(), error.model_output()), (ErrorKind::Output, Some("none")));
    assert_eq!((batch.progress().done, batch.progress().failed), (0, 1));
}

fn odd(item: &Item) -> std::result::Result<(), String> {
    if item.number % 2 == 1 { Ok(()) } else { Err(format!("{} is even", item.number)) }
}

#[tokio::test]
async fn checks_and_tries_apply_to_each_value() {
    let server = MemoryServer::new([
        Reply::text(r#"{"number": 2}"#),
        Reply::text(r#"{"number": 3}"#),
        Reply::text(r#"{"number": 4}"#),
        Reply::text(r#"{"number": 6}"#),
    ]);
    let options = BatchOptions::new(agent(server.clone())).concurrency(1);
    let batch = run_batch_for::<Item>(["one", "two"], options).unwrap().check(odd).tries(2);
    let replies = all(batch).await;
    assert_eq!(replies[0].1.as_ref().unwrap().value, Item { number: 3 });
    let error = replies[1].1.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Output);
    assert!(error.to_string().contains("6 is even"), "{error}");
    server.verify();
}

#[tokio::test]
async fn values_are_requested_as_configured() {
    let call = |number: usize| Reply::new().call("give", json!({ "number": number }));
    let server = MemoryServer::new([call(5)]);
    let options = || BatchOptions::new(agent(server.clone()));
    let batch = run_batch_for::<Item>(["one"], options()).unwrap();
    let batch = batch.mode(OutputMode::Tool).tool_name("give");
    assert_eq!(all(batch).await.remove(0).1.unwrap().value, Item { number: 5 });
    server.verify();

    let wrong = run_batch_for::<Item>(["one"], options()).unwrap().tries(0);
    assert_eq!(all(wrong).await.remove(0).1.unwrap_err().kind(), ErrorKind::Config);
}

#[tokio::test]
async fn prompts_of_values_may_be_a_stream() {
    let server = server(&Asked::default(), |prompt, _| Some(item(prompt)));
    let options = BatchOptions::new(agent(server)).in_input_order(true);
    let replies =
        all(run_batch_stream_for::<Item>(stream::iter(prompts(9)), options).unwrap()).await;
    let numbers = replies.into_iter().map(|(_, reply)| reply.unwrap().value.number);
    assert!(numbers.eq(0..9));
}

#[tokio::test(start_paused = true)]
async fn retried_values_do_not_repeat_tools() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let look = tool("look", "Looks").build(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok(json!("nine")) }
    });
    let server = MemoryServer::new([
        Reply::new().call("look", json!({})),
        Reply::hang_up(),
        Reply::new().call("final_answer", json!({ "number": 9 })),
    ]);
    let options = AgentOptions::builder().model("any").transport(server.clone()).tool(look);
    let options = options.auto_execute_tools(true).retry(RetryConfig::none()).build().unwrap();
    let batch = run_batch_for::<Item>(["prompt 9"], BatchOptions::new(options)).unwrap();
    assert_eq!(all(batch).await.remove(0).1.unwrap().value, Item { number: 9 });
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    server.verify();
}

#[cfg(feature = "log")]
#[tokio::test]
async fn values_are_yielded_from_the_log() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Other {
        #[serde(rename = "word")]
        _word: String,
    }

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.jsonl");
    let asked = Asked::default();
    let options = async || {
        let log = BatchLog::open(&path).await.unwrap();
        BatchOptions::new(agent(server(&asked, |prompt, _| Some(item(prompt)))))
            .in_input_order(true)
            .log(log)
    };
    // Stopped early.
    let mut batch = run_batch_for::<Item>(prompts(40), options().await.concurrency(1)).unwrap();
    let mut first = Vec::new();
    while first.len() < 15 {
        first.push(batch.next().await.unwrap().1.unwrap());
    }
    drop(batch);
    let before = asked.total();

    let second = all(run_batch_for::<Item>(prompts(40), options().await).unwrap()).await;
    assert_eq!(second.len(), 40);
    for ((index, again), first) in second.iter().zip(&first) {
        assert_eq!(
            (again.as_ref().unwrap(), again.as_ref().unwrap().value.number),
            (first, *index)
        );
    }
    assert!(asked.total() <= before + 25, "no yielded prompt is asked again");

    let total = asked.total();
    let mut batch = run_batch_for::<Other>(prompts(40), options().await).unwrap();
    while let Some((_, reply)) = batch.next().await {
        let error = reply.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("use a new log"), "{error}");
    }
    assert_eq!((batch.progress().done, batch.progress().failed), (0, 40));
    drop(batch);

    // A check applies to the log, too, and its panic is an error.
    let batch = run_batch_for::<Item>(prompts(40), options().await).unwrap();
    let batch = batch.check(|item| if item.number == 7 { panic!("seven") } else { odd(item) });
    for (index, reply) in all(batch).await {
        assert_eq!(reply.is_ok(), index % 2 == 1 && index != 7, "{reply:?}");
    }
    assert_eq!(asked.total(), total);
}
