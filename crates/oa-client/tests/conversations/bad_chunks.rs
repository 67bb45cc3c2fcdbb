//! Chunks that are not JSON: skipped and reported, or rejected; and the fate of a call inside one.

use oa_aggregate::Problem;
use oa_chat::OnBadChunk;
use oa_client::{AgentEvent, ErrorKind};
use oa_testkit::{Cut, Reply};
use oa_types::{ContentBlock, FinishReason, ToolUseError};
use serde_json::json;

use crate::log::Lines;
use suite::talk::{adder, auto, client, manual, read, strict, talk, told};

/// A call whose only chunk is broken, and the finish reason that reveals it.
const LOST: &str = include_str!("../../../../tests/fixtures/own/relay-only-call-unreadable.sse");

/// A word, a broken chunk, a word.
fn broken() -> Reply {
    let word = |word| json!({"choices": [{"index": 0, "delta": {"content": word}}]});
    let (one, two) = (word("one "), word("two"));
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    Reply::sse(format!(
        "data: {one}\n\ndata: {{\"choices\": sk-12345678\n\ndata: {two}\n\ndata: {finish}\n\ndata: [DONE]\n\n"
    ))
}

#[tokio::test]
async fn bad_chunks_are_reported_and_skipped() {
    let log = Lines::default();
    let listening = log.listen();
    let mut client = client(manual(&strict([broken()])));
    assert_eq!(client.options().on_bad_chunk(), OnBadChunk::Report);
    client.send("Go.").await.unwrap();
    let mut problems = 0;
    while let Some(event) = client.next_event().await.unwrap() {
        problems += usize::from(matches!(event, AgentEvent::Problem(Problem::Unreadable(_))));
    }
    drop(listening);
    assert_eq!(problems, 1);
    assert_eq!(told(client.history())[1], "assistant: one two");
    let lines = log.take_lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("WARN"), "{lines:?}");
    assert!(lines[0].contains("position=12"), "{lines:?}");
    assert!(!lines[0].contains("sk-"), "what was sent is not quoted: {lines:?}");
}

#[tokio::test]
async fn a_bad_chunk_can_fail_the_answer() {
    let cuts = [Cut::Events, Cut::Whole, Cut::Every(1)];
    for (options, cut) in
        [manual, auto].into_iter().flat_map(|it| cuts.clone().map(|cut| (it, cut)))
    {
        let server = strict([broken().cut(cut), Reply::text("Hello.")]);
        let options = options(&server).on_bad_chunk(OnBadChunk::Fail).api_key("sk-12345678");
        let mut client = client(options);
        let error = client.ask("Go.").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stream);
        assert!(error.to_string().starts_with("a chunk of the answer is not JSON at byte 12"));
        assert!(!format!("{error:?}").contains("sk-12345678"), "{error:?}");
        assert_eq!(client.message().unwrap().text(), "one ", "what came before stays");
        assert_eq!(talk(&mut client, "Again.").await, ["Hello."]);
    }
}

#[tokio::test]
async fn unstreamed_answers_must_be_json() {
    let server = strict([Reply::body(200, "application/json", "{\"choices\": [")]);
    let mut client = client(manual(&server).on_bad_chunk(OnBadChunk::Fail));
    let error = client.ask("Go.").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stream);
}

fn errors(blocks: &[ContentBlock]) -> Vec<&ToolUseError> {
    let errors = blocks.iter().filter_map(|block| match block {
        ContentBlock::ToolUseError(error) => Some(error),
        _ => None,
    });
    errors.collect()
}

#[tokio::test]
async fn lost_calls_are_reported_to_the_model() {
    let call = Reply::new().call_with_id("c", "add", json!({"a": 1, "b": 2}));
    let server = strict([Reply::sse(LOST), call, Reply::text("It is 3.")]);
    let mut client = client(auto(&server).tool(adder()));
    client.send("What is 1 + 2?").await.unwrap();
    let mut blocks = Vec::new();
    while let Some(block) = client.receive().await.unwrap() {
        blocks.push(block);
    }
    let [error] = errors(&blocks)[..] else { panic!("{blocks:?}") };
    assert!(error.error.contains("not JSON"), "{error:?}");
    assert!(error.raw_data.contains("call_42"), "{error:?}");
    let sent = server.requests()[1].messages().to_vec();
    let last = sent.last().and_then(|last| last["content"].as_str()).unwrap().to_owned();
    assert!(last.contains("could not be used"), "{sent:?}");
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
    assert_eq!(client.turn_metadata().rounds, 2, "it counts as a round");
}

/// The server could not read the call that the model wrote, and says so only in the finish reason.
#[tokio::test]
async fn malformed_calls_are_reported_to_the_model() {
    let body = include_str!("../../../../tests/fixtures/own/gemini-malformed-call.sse");
    let call = Reply::new().call_with_id("c", "add", json!({"a": 1, "b": 2}));
    let server = strict([Reply::sse(body), call, Reply::text("It is 3.")]);
    let mut client = client(auto(&server).tool(adder()));
    assert_eq!(talk(&mut client, "What is 1 + 2?").await.last().unwrap(), "It is 3.");
    let sent = server.requests()[1].messages().to_vec();
    let last = sent.last().and_then(|last| last["content"].as_str()).unwrap().to_owned();
    assert!(last.contains("could not read what the model wrote"), "{sent:?}");
}

#[tokio::test]
async fn lost_calls_count_toward_the_round_limit() {
    let server = strict([Reply::sse(LOST), Reply::sse(LOST), Reply::sse(LOST), Reply::text("Hi.")]);
    let mut client = client(auto(&server).tool(adder()).max_tool_iterations(2));
    let reply = client.ask("What is 1 + 2?").await.unwrap();
    assert_eq!(reply.finish_reason, FinishReason::MaxToolIterations);
    assert_eq!(server.requests().len(), 3);
    assert_eq!(talk(&mut client, "Hello?").await, ["Hi."]);
}

#[tokio::test]
async fn lost_calls_are_shown_in_manual_mode() {
    let server = strict([Reply::sse(LOST), Reply::text("Hi.")]);
    let mut client = client(manual(&server).tool(adder()));
    client.send("What is 1 + 2?").await.unwrap();
    let block = client.receive().await.unwrap();
    assert!(matches!(block, Some(ContentBlock::ToolUseError(_))), "{block:?}");
    assert_eq!(client.receive().await.unwrap(), None);
    assert_eq!(client.finish_reason(), Some(&FinishReason::ToolCalls));
    client.continue_turn().await.unwrap();
    assert_eq!(read(&mut client).await, ["Hi."]);
}

/// The chunk is the server's and may repeat what it was sent.
#[tokio::test]
async fn lost_calls_mask_the_api_key() {
    let chunk = r#"{"choices":[{"delta":{"tool_calls":[{"id":"sk-12345678","function":"#;
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let reply = Reply::sse(format!("data: {chunk}\n\ndata: {finish}\n\ndata: [DONE]\n\n"));
    let mut client = client(manual(&strict([reply])).tool(adder()).api_key("sk-12345678"));
    client.send("Go.").await.unwrap();
    let Some(ContentBlock::ToolUseError(lost)) = client.receive().await.unwrap() else {
        panic!("the call was lost");
    };
    assert_eq!(lost.raw_data, chunk.replace("sk-12345678", "****"));
}
