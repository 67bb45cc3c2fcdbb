//! The model's output, which is the same over both servers.

use bytes::Bytes;
use insta::assert_snapshot;
use oa_testkit::{Cut, MemoryServer, Reply, Request, Script, SocketServer};
use serde_json::{Value, json};

use crate::client::{Client, ask_both, ask_memory, get_memory, plain, post, streamed};

/// Shows the events of a stream without their common parts.
#[track_caller]
fn events((status, kind, body): &(u16, String, Bytes)) -> String {
    assert_eq!((*status, kind.as_str()), (200, "text/event-stream"));
    let body = std::str::from_utf8(body).expect("text");
    let mut lines = Vec::new();
    for event in body.split_terminator("\n\n") {
        let payload = event.strip_prefix("data: ").unwrap_or(event);
        let Ok(mut chunk) = serde_json::from_str::<Value>(payload) else {
            lines.push(payload.to_owned());
            continue;
        };
        if chunk["object"] == "chat.completion.chunk" {
            assert_eq!(chunk["model"], "test");
            assert_eq!(chunk["id"], "chatcmpl-1");
            assert_eq!(chunk["created"], 1_700_000_000);
            let choice = chunk["choices"].get(0).cloned().unwrap_or_default();
            chunk = match choice["finish_reason"].as_str() {
                Some(reason) => json!({ "finish": reason }),
                None if choice.is_null() => chunk["usage"].take(),
                None => choice["delta"].clone(),
            };
        }
        lines.push(chunk.to_string());
    }
    lines.join("\n")
}

#[tokio::test]
async fn text_comes_word_by_word() {
    let seen = ask_both(Reply::text("Hello, wide world"), &streamed()).await;
    assert_snapshot!(events(&seen), @r#"
    {"role":"assistant","content":""}
    {"content":"Hello,"}
    {"content":" wide"}
    {"content":" world"}
    {"finish":"stop"}
    {"prompt_tokens":5,"completion_tokens":5,"total_tokens":10}
    [DONE]
    "#);
}

#[tokio::test]
async fn calls_come_in_fragments() {
    let reply = Reply::new()
        .think("A call.")
        .say("I'll look")
        .call("add", json!({ "a": 1 }))
        .call_with_id("abc", "now", json!({}));
    let seen = ask_both(reply, &streamed()).await;
    assert_snapshot!(events(&seen), @r#"
    {"role":"assistant","content":""}
    {"reasoning_content":"A"}
    {"reasoning_content":" call."}
    {"content":"I'll"}
    {"content":" look"}
    {"tool_calls":[{"index":0,"id":"call_1_1","type":"function","function":{"name":"add","arguments":""}}]}
    {"tool_calls":[{"index":0,"function":{"arguments":"{\"a"}}]}
    {"tool_calls":[{"index":0,"function":{"arguments":"\":1"}}]}
    {"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}
    {"tool_calls":[{"index":1,"id":"abc","type":"function","function":{"name":"now","arguments":""}}]}
    {"tool_calls":[{"index":1,"function":{"arguments":"{"}}]}
    {"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}
    {"finish":"tool_calls"}
    {"prompt_tokens":5,"completion_tokens":8,"total_tokens":13}
    [DONE]
    "#);
}

#[tokio::test]
async fn streams_may_lack_done_and_have_comments() {
    let reply = Reply::text("one two three")
        .event(json!({ "error": { "message": "out of memory" } }))
        .comment_every(2)
        .without_done()
        .without_finish()
        .without_usage();
    let seen = ask_both(reply, &streamed()).await;
    assert_snapshot!(events(&seen), @r#"
    {"role":"assistant","content":""}
    {"content":"one"}
    : ping
    {"content":" two"}
    {"content":" three"}
    : ping
    {"error":{"message":"out of memory"}}
    "#);
}

#[tokio::test]
async fn usage_and_reason_may_be_given() {
    let reply = Reply::new().refuse("No.").finish("length").usage(7, 8);
    assert_snapshot!(events(&ask_both(reply, &streamed()).await), @r#"
    {"role":"assistant","content":""}
    {"refusal":"No."}
    {"finish":"length"}
    {"prompt_tokens":7,"completion_tokens":8,"total_tokens":15}
    [DONE]
    "#);
}

#[tokio::test]
async fn usage_comes_if_asked_for() {
    let mut request = streamed();
    request["stream_options"] = json!(null);
    assert_snapshot!(events(&ask_both(Reply::new(), &request).await), @r#"
    {"role":"assistant","content":""}
    {"finish":"stop"}
    [DONE]
    "#);
}

#[tokio::test]
async fn without_stream_the_answer_is_one_object() {
    let reply = Reply::new()
        .think("A call.")
        .say("I'll ")
        .say("look")
        .call("add", json!({ "a": 1 }))
        .call("now", "{broken");
    let (status, kind, body) = ask_both(reply, &plain()).await;
    assert_eq!((status, kind.as_str()), (200, "application/json"));
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_snapshot!(format!("{body:#}"), @r#"
    {
      "id": "chatcmpl-1",
      "object": "chat.completion",
      "created": 1700000000,
      "model": "test",
      "choices": [
        {
          "index": 0,
          "message": {
            "reasoning_content": "A call.",
            "content": "I'll look",
            "role": "assistant",
            "tool_calls": [
              {
                "id": "call_1_1",
                "type": "function",
                "function": {
                  "name": "add",
                  "arguments": "{\"a\":1}"
                }
              },
              {
                "id": "call_1_2",
                "type": "function",
                "function": {
                  "name": "now",
                  "arguments": "{broken"
                }
              }
            ]
          },
          "finish_reason": "tool_calls"
        }
      ],
      "usage": {
        "prompt_tokens": 5,
        "completion_tokens": 9,
        "total_tokens": 14
      }
    }
    "#);
}

#[tokio::test]
async fn bytes_are_played_as_they_are() {
    let recording = "data: x\r\n\r\n: hm\n\nnot an event";
    let (_, kind, body) = ask_both(Reply::sse(recording), &streamed()).await;
    assert_eq!((kind.as_str(), &*body), ("text/event-stream", recording.as_bytes()));

    let page = Reply::body(502, "text/html", "<h1>Bad gateway</h1>");
    let seen = ask_both(page, &streamed()).await;
    assert_eq!(seen, (502, "text/html".to_owned(), Bytes::from("<h1>Bad gateway</h1>")));

    let (status, kind, body) = ask_both(Reply::error(503, "Loading model"), &streamed()).await;
    assert_eq!((status, kind.as_str()), (503, "application/json"));
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["error"]["message"], "Loading model");

    let odd = Reply::error(400, json!({ "detail": [] }));
    assert_eq!(ask_both(odd, &streamed()).await.2, r#"{"detail":[]}"#);
}

#[tokio::test]
async fn a_mislabeled_stream_is_still_one() {
    let reply = Reply::text("Hello").content_type("text/plain").status(201).header("x-a", "b");
    let (status, kind, body) = ask_both(reply, &streamed()).await;
    assert_eq!((status, kind.as_str()), (201, "text/plain"));
    assert!(body.ends_with(b"data: [DONE]\n\n"));
}

#[tokio::test]
async fn joined_pieces_are_the_body() {
    let reply = || Reply::text("Grüße an die Welt").call("add", json!({ "a": 1 }));
    let (.., whole) = ask_both(reply().cut(Cut::Whole), &streamed()).await;
    let cuts = [
        Cut::At(vec![1, 2, 500]),
        Cut::Events,
        Cut::Every(1),
        Cut::Every(7),
        Cut::Random { seed: 1 },
        Cut::Random { seed: 2 },
    ];
    for cut in cuts {
        let (.., body) = ask_both(reply().cut(cut.clone()), &streamed()).await;
        assert_eq!(body, whole, "{cut:?}");
    }
}

#[tokio::test]
async fn a_rule_reads_the_request() {
    let rule = |request: &Request| match request.messages().len() {
        0 => Reply::error(400, "nothing said"),
        count => Reply::text(format!("{count}")),
    };
    let server = MemoryServer::new(Script::new().otherwise(Reply::by(rule)));

    let (status, ..) = ask_memory(&server, &json!({})).await.expect("an answer");
    assert_eq!(status, 400);
    let (.., body) = ask_memory(&server, &plain()).await.expect("an answer");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["choices"][0]["message"]["content"], "1");
}

#[tokio::test]
async fn unknown_paths_are_404() {
    let script = Script::new()
        .models(["small", "large"])
        .get("/health", Reply::json(200, json!({ "status": "ok" })));
    let server = MemoryServer::new(script.clone());

    let (status, models) = get_memory(&server, "/v1/models").await;
    assert_eq!(status, 200);
    let ids: Vec<_> = models["data"].as_array().expect("a list").iter().map(|m| &m["id"]).collect();
    assert_eq!(ids, ["small", "large"]);
    assert_eq!(get_memory(&server, "/health?x=y").await, (200, json!({ "status": "ok" })));
    let (status, error) = get_memory(&server, "/v1/embeddings").await;
    assert_eq!(status, 404);
    assert_eq!(error["error"]["message"], "there is nothing at /v1/embeddings");
    assert_eq!(get_memory(&server, "/v1/chat/completions").await.0, 405);

    let server = SocketServer::start(script).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    for (path, status) in [("/v1/models", 200), ("/health", 200), ("/nothing", 404)] {
        client.send(format!("GET {path} HTTP/1.1\r\n\r\n")).await;
        assert_eq!(client.answer().await.expect("an answer").0, status, "{path}");
    }
    assert_eq!(server.base_url(), format!("http://{}/v1", server.address()));
}

#[tokio::test]
async fn replies_come_in_order_then_the_other() {
    let script = Script::new()
        .reply(Reply::error(503, "Loading model").header("retry-after", "1"))
        .reply(Reply::text("ready"))
        .otherwise(Reply::error(429, "enough"));
    let server = SocketServer::start(script).await.expect("a socket");
    let mut client = Client::connect(&server).await;
    for status in [503, 200, 429, 429] {
        client.send(post(&plain())).await;
        assert_eq!(client.answer().await.expect("an answer").0, status);
    }
}

#[test]
#[should_panic = "only replies of `Reply::new` and `Reply::text` can say more"]
fn a_recording_says_nothing_more() {
    drop(Reply::sse("data: [DONE]\n\n").say("more"));
}
