//! Signatures of thinking, which must be sent back with their message.

use oa_testkit::{MemoryServer, Reply, Script, Strict};
use oa_types::{ContentBlock, Message};
use serde_json::{Value, json};

use suite::talk::{auto, client, echo, talk};

/// The assistant message of a tool round, as sent in the second request.
///
/// The server rejects unknown members, except these.
async fn sent_back(deltas: &[Value], members: &[&str]) -> (Value, Message) {
    let call = json!({ "tool_calls": [{
        "index": 0, "id": "c", "type": "function", "function": { "name": "echo", "arguments": "{}" },
    }] });
    let chunk = |delta: &Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
    let reply =
        deltas.iter().chain([&call]).fold(Reply::new(), |reply, delta| reply.event(chunk(delta)));
    let allow = |rules: Strict, member: &&str| rules.allow_member(format!("messages[].{member}"));
    let rules = members.iter().fold(Strict::new(), allow);
    let server = MemoryServer::new(Script::from([reply, Reply::text("Done.")]).strict_by(rules));
    let mut client = client(auto(&server).tool(echo()));
    talk(&mut client, "Go.").await;
    (server.requests()[1].messages()[1].clone(), client.history()[1].clone())
}

fn thinking(message: &Message) -> Vec<&str> {
    let thoughts = message.content.iter().filter_map(|block| match block {
        ContentBlock::Thinking(block) => Some(&*block.thinking),
        _ => None,
    });
    thoughts.collect()
}

#[tokio::test]
async fn litellm_signed_blocks_are_sent_back() {
    let block = |thinking, signature: Option<&str>| json!([{ "type": "thinking", "thinking": thinking, "signature": signature }]);
    let deltas = [
        json!({ "reasoning_content": "One ", "thinking_blocks": block("One ", None) }),
        json!({ "reasoning_content": "and one.", "thinking_blocks": block("and one.", None) }),
        json!({ "reasoning_content": "", "thinking_blocks": block("One and one.", Some("sig")) }),
        json!({ "thinking_blocks": [{ "type": "redacted_thinking", "data": "sealed" }] }),
    ];
    let (sent, kept) = sent_back(&deltas, &["thinking_blocks"]).await;
    assert_eq!(thinking(&kept), ["One and one."]);
    let expected = json!([
        { "type": "thinking", "thinking": "One and one.", "signature": "sig" },
        { "type": "redacted_thinking", "data": "sealed" },
    ]);
    assert_eq!(sent["thinking_blocks"], expected);
    assert_eq!(sent["tool_calls"][0]["id"], "c");
}

#[tokio::test]
async fn copilot_signatures_are_sent_back() {
    let deltas = [
        json!({ "content": null, "reasoning_text": "One " }),
        json!({ "content": null, "reasoning_text": "and one." }),
        json!({ "content": null, "reasoning_opaque": "sig" }),
    ];
    let (sent, kept) = sent_back(&deltas, &["reasoning_text", "reasoning_opaque"]).await;
    assert_eq!(thinking(&kept), ["One and one."]);
    assert_eq!(
        (&sent["reasoning_text"], &sent["reasoning_opaque"]),
        (&json!("One and one."), &json!("sig"))
    );
}

#[tokio::test]
async fn unsigned_thinking_is_not_sent_back() {
    let block = json!([{ "type": "thinking", "thinking": "One", "signature": null }]);
    let deltas = [json!({ "reasoning_text": "One", "thinking_blocks": block })];
    let (sent, kept) = sent_back(&deltas, &[]).await;
    assert_eq!(thinking(&kept), ["One"]);
    for member in ["reasoning_text", "reasoning_content", "thinking_blocks"] {
        assert!(sent.get(member).is_none(), "{sent}");
    }
}
