//! Partial values of an answer while it arrives.

use std::time::Duration;

use oa_client::{AgentEvent, ErrorKind};
use oa_json::PartialReader;
use oa_testkit::{Cut, Reply};
use serde_json::json;

use super::{OSLO, Place, oslo};
use suite::talk::{adder, auto, client, echo, line, manual, stalling, strict, talk, told};

#[tokio::test]
async fn partial_values_deserialize_early() {
    let text = r#"{"city": "Oslo is nice", "people": 717710, "sights": ["the opera house", "x"]}"#;
    let server = strict([Reply::text(format!("Sure! {text}"))]);
    let mut client = client(manual(&server));
    let mut stream = client.send_for::<Place>("Where?").stream();
    let mut seen = Vec::new();
    while let Some(partial) = stream.next().await {
        assert_eq!(partial.answer(), 1);
        let of_type = partial.get().map(|place| (place.city, place.people, place.sights.len()));
        seen.push(format!("{} {of_type:?}", partial.value()));
    }
    insta::assert_snapshot!(seen.join("\n"), @r#"
    {} None
    {"city":"Oslo"} Some(("Oslo", None, 0))
    {"city":"Oslo is"} Some(("Oslo is", None, 0))
    {"city":"Oslo is nice"} Some(("Oslo is nice", None, 0))
    {"city":"Oslo is nice","people":717710} Some(("Oslo is nice", Some(717710), 0))
    {"city":"Oslo is nice","people":717710,"sights":["the"]} Some(("Oslo is nice", Some(717710), 1))
    {"city":"Oslo is nice","people":717710,"sights":["the opera"]} Some(("Oslo is nice", Some(717710), 1))
    {"city":"Oslo is nice","people":717710,"sights":["the opera house"]} Some(("Oslo is nice", Some(717710), 1))
    {"city":"Oslo is nice","people":717710,"sights":["the opera house","x"]} Some(("Oslo is nice", Some(717710), 2))
    "#);
    let answer = stream.finish().await.unwrap();
    assert_eq!(answer.value.sights, ["the opera house", "x"]);
}

#[tokio::test]
async fn each_attempt_starts_a_new_value() {
    let server = strict([Reply::text("{\"city\": \"a b"), Reply::text(OSLO)]);
    let mut client = client(manual(&server));
    let mut stream = client.send_for::<Place>("Where?").stream();
    let mut last = vec![json!(null); 2];
    while let Some(partial) = stream.next().await {
        last[partial.answer() as usize - 1] = partial.value().clone();
    }
    assert_eq!(
        last,
        [json!({"city": "a b"}), serde_json::from_str::<serde_json::Value>(OSLO).unwrap()]
    );
    let answer = stream.finish().await.unwrap();
    assert_eq!((answer.value, answer.tries), (oslo(), 2));
}

#[tokio::test]
async fn output_tool_arguments_are_streamed() {
    let arguments = json!({"city": "Oslo", "people": 717_710});
    let server = strict([
        Reply::new().say("{}").call("add", json!({"a": 1, "b": 2})),
        Reply::new().say("{\"not\": \"this\"}").call("final_answer", arguments.clone()),
    ]);
    let mut client = client(auto(&server).tool(adder()));
    let mut stream = client.send_for::<Place>("Where?").stream();
    let mut seen = Vec::new();
    while let Some(partial) = stream.next().await {
        assert_eq!(partial.answer(), 2);
        seen.push(partial.value().clone());
    }
    assert!(seen.len() > 2, "{seen:?}");
    assert_eq!(seen.last(), Some(&arguments));
    assert_eq!(stream.finish().await.unwrap().value, oslo());
}

#[tokio::test]
async fn every_event_of_the_turn_can_be_seen() {
    let server = strict([
        Reply::new().think("Hm.").say("I add.").call("add", json!({"a": 1, "b": 2})),
        Reply::new().call("final_answer", json!({"city": 5})),
        Reply::new().say("So:").call("final_answer", json!({"city": "Oslo", "people": 717_710})),
    ]);
    let mut client = client(auto(&server).tool(adder()));
    let mut stream = client.send_for::<Place>("Where?").stream();
    assert!(stream.partial().is_none());
    let (mut seen, mut last) = (Vec::<String>::new(), None);
    while let Some(event) = stream.next_event().await {
        let told = match event {
            AgentEvent::Block(block) => line(&block),
            AgentEvent::AnswerEnd(message) => format!("answer: {}", message.text()),
            AgentEvent::ToolUseDelta(_) => "a piece of a call".to_owned(),
            AgentEvent::TurnEnd(reason) => format!("turn ends: {reason}"),
            _ => continue,
        };
        if seen.last() != Some(&told) {
            seen.push(told);
        }
        last = stream.partial().map(|partial| (partial.answer(), partial.value().clone()));
    }
    insta::assert_snapshot!(seen.join("\n"), @r#"
    (Hm.)
    I
     add.
    a piece of a call
    answer: I add.
    [call_1_1 add {"a":1,"b":2}]
    call_1_1=3.0
    a piece of a call
    answer: 
    call_2_1?`city`: expected string, found number 5
    call_2_1!{"error":"`city`: expected string, found number 5","tool":"final_answer","arguments":"{\"city\":5}"}
    So:
    a piece of a call
    answer: {"city":"Oslo","people":717710}
    turn ends: tool_calls
    "#);
    assert_eq!(last, Some((3, json!({"city": "Oslo", "people": 717_710}))));
    assert!(stream.next_event().await.is_none() && stream.next().await.is_none());
    assert_eq!(stream.finish().await.unwrap().value, oslo());
}

#[tokio::test]
async fn lists_are_streamed_without_their_wrapper() {
    let text = r#"{"value": [1, 2, 3]}"#;
    let server = strict([Reply::text(text).cut(Cut::Every(1))]);
    let mut client = client(manual(&server));
    let mut stream = client.send_for::<Vec<u32>>("Count.").stream();
    let mut seen = Vec::new();
    while let Some(partial) = stream.next().await {
        seen.push(partial.get().unwrap());
    }
    assert_eq!(seen.last().unwrap(), &[1, 2, 3]);
    assert!(seen.windows(2).all(|pair| pair[1].starts_with(&pair[0])), "{seen:?}");
    assert_eq!(stream.finish().await.unwrap().value, [1, 2, 3]);
}

#[tokio::test]
async fn final_text_only_yields_one_value() {
    let server = strict([Reply::text("Oslo."), Reply::text(OSLO)]);
    let mut client = client(auto(&server).final_text_only(true));
    let mut stream = client.send_for::<Place>("Where?").stream();
    let mut seen = 0;
    while stream.next().await.is_some() {
        seen += 1;
    }
    assert_eq!(seen, 1);
    assert_eq!(stream.finish().await.unwrap().value, oslo());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_stream_ends_the_turn() {
    let server = strict([stalling(&["{\"city\": \"Os"]), Reply::text("Hi.")]);
    let mut client = client(manual(&server));
    let mut stream = client.send_for::<Place>("Where?").stream();
    assert_eq!(stream.next().await.unwrap().value(), &json!({"city": "Os"}));
    // Waiting may be abandoned and resumed.
    for _ in 0..3 {
        let more = tokio::time::timeout(Duration::from_secs(1), stream.next());
        assert!(more.await.is_err());
    }
    drop(stream);
    assert!(server.requests()[0].aborted());
    assert_eq!(told(client.history())[1], "assistant: {\"city\": \"Os (interrupted)");
    assert_eq!(talk(&mut client, "Hello.").await, ["Hi."]);
    // A stream that was never read has done nothing.
    drop(client.send_for::<Place>("Where?").stream());
    drop(client.send_for::<Place>("Where?"));
    assert_eq!((server.requests().len(), client.history().len()), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn unanswered_prompts_are_sent_again() {
    let slow = Reply::text(OSLO).delay_head(Duration::from_secs(2));
    let server = strict([slow, Reply::text(OSLO)]);
    let mut client = client(manual(&server));
    let mut stream = client.send_for::<Place>("Where?").stream();
    assert!(tokio::time::timeout(Duration::from_secs(1), stream.next()).await.is_err());
    assert_eq!(stream.finish().await.unwrap().value, oslo());
    assert_eq!((server.requests().len(), client.history().len()), (2, 2));
}

#[tokio::test]
async fn finish_returns_the_error() {
    let server = strict([Reply::error(400, "no")]);
    let mut client = client(manual(&server));
    let mut stream = client.send_for::<Place>("Where?").stream();
    assert!(stream.next().await.is_none());
    assert!(stream.next().await.is_none());
    assert_eq!(stream.finish().await.unwrap_err().kind(), ErrorKind::Api);
}

#[tokio::test]
async fn arguments_are_read_while_they_stream() {
    let input = json!({"say": "so it is", "times": [1, 2]});
    let server = strict([Reply::new().call("echo", input.clone())]);
    let mut client = client(manual(&server).tool(echo()));
    client.send("Go.").await.unwrap();
    let (mut reader, mut seen) = (PartialReader::new(), Vec::new());
    while let Some(event) = client.next_event().await.unwrap() {
        if let AgentEvent::ToolUseDelta(delta) = event {
            reader.push(&delta.arguments);
            seen.extend(reader.value().cloned());
        }
    }
    assert!(seen.len() > 2, "{seen:?}");
    assert_eq!((seen.last(), reader.is_complete()), (Some(&input), true));
}
