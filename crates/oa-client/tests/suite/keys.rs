//! The idempotency keys that tools see.

use std::collections::HashSet;
use std::future::ready;
use std::sync::{Arc, Mutex};

use oa_client::{AgentOptions, Client};
use oa_hooks::PermissionMode;
use oa_testkit::{MemoryServer, Reply};
use oa_tools::{FnTool, ToolContext, tool};
use oa_types::{ContentBlock, Message, ToolUseBlock};
use serde_json::{Value, json};

/// The keys that a tool has seen, in order.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn note(&self, cx: &ToolContext) {
        let key = cx.idempotency_key().expect("each call has a key").to_owned();
        self.0.lock().expect("the test is set up").push(key);
    }

    fn keys(&self) -> Vec<String> {
        self.0.lock().expect("the test is set up").clone()
    }

    fn tool(&self) -> FnTool {
        let seen = self.clone();
        tool("pay", "Pays").param("n", "integer").default("n", 1).build_with_context(
            move |_, cx| {
                seen.note(&cx);
                ready(Ok(json!("paid")))
            },
        )
    }
}

/// Two rounds of calls, all with the same tool and input, and ids as from a server that counts in each answer.
fn pays() -> [Reply; 3] {
    let pay = |reply: Reply, id: &str| reply.call_with_id(id, "pay", json!({}));
    let two = pay(pay(Reply::new(), "call_0"), "call_1");
    [two, pay(Reply::new(), "call_0"), Reply::text("Done.")]
}

fn client(replies: impl IntoIterator<Item = Reply>, tool: impl oa_tools::Tool + 'static) -> Client {
    let server = MemoryServer::new(replies.into_iter().collect::<Vec<_>>());
    let options = AgentOptions::builder().model("any").transport(server).tool(tool);
    Client::new(options.auto_execute_tools(true).build().expect("the test is set up"))
        .expect("the test is set up")
}

async fn keys_of(prefix: &str) -> Vec<String> {
    let seen = Seen::default();
    let mut client = client(pays(), seen.tool());
    client.set_key_prefix(prefix);
    client.ask("Pay.").await.expect("the test is set up");
    seen.keys()
}

#[tokio::test]
async fn each_call_of_each_client_has_its_own_key() {
    let all = [keys_of("").await, keys_of("").await, keys_of("a").await, keys_of("b").await];
    assert!(all.iter().all(|keys| keys.len() == 3));
    let different: HashSet<_> = all.iter().flatten().collect();
    assert_eq!(different.len(), 12, "{all:?}");
}

#[tokio::test]
async fn the_same_prefix_gives_the_same_keys() {
    let keys = keys_of("chat-7@2").await;
    assert_eq!(keys, keys_of("chat-7@2").await);
    assert!(keys[0].starts_with("chat-7@2:1:0:") && keys[2].starts_with("chat-7@2:2:0:"));
}

/// Approves the open calls, and receives the rest of the turn.
async fn approve_all(client: &mut Client) {
    for call in client.pending_approvals() {
        client.approve(&call.id).expect("the test is set up");
    }
    client.continue_turn().await.expect("the test is set up");
    while client.receive().await.expect("the test is set up").is_some() {}
}

#[tokio::test]
async fn resumed_calls_keep_their_key() {
    let options = |seen: &Seen, replies: Vec<Reply>| {
        let options = AgentOptions::builder().model("any").transport(MemoryServer::new(replies));
        let options = options.tool(seen.tool()).auto_execute_tools(true);
        options.permission_mode(PermissionMode::Ask).build().unwrap()
    };
    // The first process runs a call, and saves the next ones before they are approved.
    let (first, later) = (Seen::default(), Seen::default());
    let [two, one, done] = pays();
    let mut client = Client::new(options(&first, vec![one, two, done])).unwrap();
    client.send("Pay.").await.unwrap();
    while client.receive().await.unwrap().is_some() {}
    approve_all(&mut client).await;
    let stored: Vec<Message> = client.history().to_vec();
    client.set_key_prefix("chat-7@2");
    approve_all(&mut client).await;
    let keys = first.keys();
    assert_eq!(keys.len(), 3);
    assert!(keys[1].starts_with("chat-7@2:0:0:") && !keys[0].starts_with("chat-7@2"), "{keys:?}");
    for _ in 0..2 {
        let options = options(&later, vec![Reply::text("Done.")]);
        let mut client = Client::resume(options, stored.clone()).unwrap();
        client.set_key_prefix("chat-7@2");
        approve_all(&mut client).await;
    }
    assert_eq!(later.keys(), [&keys[1..], &keys[1..]].concat());
}

#[tokio::test]
async fn manual_calls_have_a_key() {
    let server = MemoryServer::new(pays());
    let options = AgentOptions::builder().model("any").transport(server);
    let options = options.tool(Seen::default().tool()).build().unwrap();
    let mut client = Client::new(options).unwrap();
    let mut keys = Vec::new();
    client.send("Pay.").await.unwrap();
    loop {
        let mut calls = Vec::new();
        while let Some(block) = client.receive().await.unwrap() {
            if let ContentBlock::ToolUse(call) = block {
                calls.push(call);
            }
        }
        if calls.is_empty() {
            break;
        }
        for call in calls {
            let key = client.tool_context(&call).idempotency_key().map(str::to_owned);
            assert_eq!(client.tool_context(&call).idempotency_key(), key.as_deref());
            keys.push(key.expect("the last answer made the call"));
            client.add_tool_result(&call.id, Value::Null).unwrap();
        }
        client.continue_turn().await.unwrap();
    }
    assert_eq!((keys.len(), keys.iter().collect::<HashSet<_>>().len()), (3, 3), "{keys:?}");
    let other = ToolUseBlock::new("call_9", "pay", json!({}));
    assert_eq!(client.tool_context(&other).idempotency_key(), None);
}
