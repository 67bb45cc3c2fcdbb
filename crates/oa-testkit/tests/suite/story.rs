//! The report of a script that was not played as written.

use std::panic::{self, AssertUnwindSafe};

use insta::assert_snapshot;
use oa_testkit::{MemoryServer, Reply, Request, Script, SocketServer};
use serde_json::json;

use crate::client::{LIMIT, ask_memory, plain, streamed};

/// Runs code that should panic with a story, and returns it.
#[track_caller]
fn panic_of(closure: impl FnOnce()) -> String {
    let panic = panic::catch_unwind(AssertUnwindSafe(closure)).expect_err("a story");
    *panic.downcast::<String>().expect("a message")
}

#[tokio::test]
async fn complete_scripts_have_no_complaints() {
    let server = MemoryServer::new(Script::new().reply(Reply::text("Hello")));
    ask_memory(&server, &streamed()).await.expect("an answer");
    server.verify();
    assert_snapshot!(server.story(), @r#"
    scripted:
      1. text "Hello" -> request 1
    asked:
      1. POST /v1/chat/completions, model "test", streamed, 1 message (user "What is the time?"), authorization: Bearer **** -> reply 1
    "#);
}

/// Panics with another of its kind when it is dropped.
struct Hostile;

impl Drop for Hostile {
    fn drop(&mut self) {
        panic::panic_any(Self);
    }
}

#[tokio::test]
async fn panic_payload_may_panic_on_drop() {
    let script = Script::new()
        .expect("makes sense", |_: &Request| panic::panic_any(Hostile))
        .reply(Reply::by(|_| panic::panic_any(Hostile)));
    let server = MemoryServer::new(script);
    // The response does not matter: the server survives.
    let _ = ask_memory(&server, &streamed()).await;
    let story = panic_of(|| server.verify());
    assert!(story.contains("does not match \"makes sense\": it panicked"), "{story}");
}

#[tokio::test]
async fn all_complaints_are_listed() {
    let script = Script::new()
        .expect("offers its tools", |request: &Request| request.json()["tools"].is_array())
        .reply(Reply::new().think("hm").say("I'll \"look\"").call("add", json!({ "a": 1 })))
        .expect("has a system message", |request: &Request| {
            assert_eq!(request.messages()[0]["role"], "system");
            true
        })
        .reply(Reply::text("Hello").reset_after(10))
        .reply(Reply::by(|_| panic!("no idea")))
        .reply(Reply::error(503, "Loading model"));
    let server = MemoryServer::new(script.expect("is polite", |_: &Request| true));
    ask_memory(&server, &streamed()).await.expect("an answer");
    let request = json!({
        "messages": [
            { "role": "user", "content": "a\nb" },
            { "role": "assistant", "content": null },
            { "role": "tool", "content": [{ "type": "text" }] },
        ],
        "tools": [{}],
    });
    ask_memory(&server, &request).await.expect_err("a reset");
    ask_memory(&server, &plain()).await.expect("an answer");

    let story = panic_of(|| server.verify());
    assert_snapshot!(story, @r#"
    the script was not played as written
    scripted:
      1. thinking "hm", text "I'll "look"", call add({"a":1}) -> request 1
      2. text "Hello", reset after 10 bytes -> request 2
      3. by a rule -> request 3
      4. status 503, {"error":{"message":"Loading model","type":"server_error","c… -> never played
    asked:
      1. POST /v1/chat/completions, model "test", streamed, 1 message (user "What is the time?"), authorization: Bearer **** -> reply 1
      2. POST /v1/chat/completions, 3 messages (user, assistant, tool [{"type":"text"}]), 1 tool, authorization: Bearer **** -> reply 2
      3. POST /v1/chat/completions, model "test", 1 message (user "What is the time?"), authorization: Bearer **** -> reply 3
    wrong:
      - request 1 does not match "offers its tools"
      - request 2 does not match "has a system message": assertion `left == right` failed
          left: String("user")
         right: "system"
      - request 3 got no reply: its rule: no idea
      - reply 4 was never played
      - "is polite" matched no request
    "#);
    drop(server);
}

#[tokio::test]
async fn unexpected_requests_fail_on_drop() {
    let server = MemoryServer::new(Script::new());
    let (status, _, body) = ask_memory(&server, &plain()).await.expect("an answer");
    assert_eq!(status, 500);
    assert_eq!(
        body,
        r#"{"error":{"message":"the script has ended: chat request 1 of 0","type":"server_error","code":500}}"#
    );
    let clone = server.clone();
    drop(server);
    assert_snapshot!(panic_of(|| drop(clone)), @r#"
    the script was not played as written
    scripted:
      nothing
    asked:
      1. POST /v1/chat/completions, model "test", 1 message (user "What is the time?"), authorization: Bearer **** -> status 500
    wrong:
      - request 1 came after the script had ended
    "#);
}

#[tokio::test]
async fn socket_server_reports_complaints() {
    let server = SocketServer::start(Reply::text("Hello")).await.expect("a socket");
    assert_snapshot!(panic_of(|| drop(server)), @r#"
    the script was not played as written
    scripted:
      1. text "Hello" -> never played
    asked:
      nothing
    wrong:
      - reply 1 was never played
    "#);
}

#[tokio::test(start_paused = true)]
async fn failed_wait_reports_complaints() {
    let server = MemoryServer::new(Script::new());
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.wait_for_abort(LIMIT).await }
    });
    let panic = waiting.await.expect_err("a story").into_panic();
    assert_snapshot!(panic.downcast::<String>().expect("a message"), @r"
    an abort took longer than 10s
    scripted:
      nothing
    asked:
      nothing
    ");
}
