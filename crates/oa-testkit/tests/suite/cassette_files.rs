//! The files of cassettes: their content, the time of writing, and the files that are rejected.

use std::fs;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use oa_testkit::{
    Cassette, CassetteErrorKind as Kind, CassetteMode as Mode, Cut, MemoryServer, Reply, Script,
};
use serde_json::json;
use tower::Service;

use crate::tapes::{Folder, Nobody, ask, error_of, panic_of, post, question, send};

#[tokio::test]
async fn a_file_is_for_people() {
    let folder = Folder::new("for_people");
    let events = "data: {\"id\": 1, \"choices\": []}\n\n: ping\n\ndata: [DONE]\n\n";
    let script = Script::new()
        .reply(Reply::sse(events).header("x-request-id", "r-1"))
        .reply(Reply::sse("data: 1\n\ndata: 2\n\n").cut(Cut::At(vec![3, 12])))
        .reply(Reply::json(503, json!({ "error": "busy" })).header("retry-after", "1"))
        .reply(Reply::body(200, "text/html", "<p>\n  \u{fc}</p>\n"))
        .reply(Reply::body(200, "image/png", &b"\x89PNG"[..]));
    let questions = ["one", "two", "three", "four", "five"].map(question);
    folder.record(script, &questions).await;
    insta::assert_snapshot!(folder.text(), @r#"
    {
      "version": 1,
      "interactions": [
        {
          "request": {
            "method": "POST",
            "path": "/v1/chat/completions",
            "json": {
              "messages": [
                {
                  "content": "one",
                  "role": "user"
                }
              ]
            }
          },
          "response": {
            "status": 200,
            "headers": {
              "content-type": "text/event-stream"
            },
            "body": [
              {"data": {"id": 1, "choices": []}},
              ": ping\n\n",
              "data: [DONE]\n\n"
            ]
          }
        },
        {
          "request": {
            "method": "POST",
            "path": "/v1/chat/completions",
            "json": {
              "messages": [
                {
                  "content": "two",
                  "role": "user"
                }
              ]
            }
          },
          "response": {
            "status": 200,
            "headers": {
              "content-type": "text/event-stream"
            },
            "body": [
              "data: 1\n\n",
              "data: 2\n\n"
            ],
            "borders": [3,12]
          }
        },
        {
          "request": {
            "method": "POST",
            "path": "/v1/chat/completions",
            "json": {
              "messages": [
                {
                  "content": "three",
                  "role": "user"
                }
              ]
            }
          },
          "response": {
            "status": 503,
            "headers": {
              "content-type": "application/json",
              "retry-after": "1"
            },
            "body": [
              {"json": {"error":"busy"}}
            ]
          }
        },
        {
          "request": {
            "method": "POST",
            "path": "/v1/chat/completions",
            "json": {
              "messages": [
                {
                  "content": "four",
                  "role": "user"
                }
              ]
            }
          },
          "response": {
            "status": 200,
            "headers": {
              "content-type": "text/html"
            },
            "body": [
              "<p>\n",
              "  ü</p>\n"
            ]
          }
        },
        {
          "request": {
            "method": "POST",
            "path": "/v1/chat/completions",
            "json": {
              "messages": [
                {
                  "content": "five",
                  "role": "user"
                }
              ]
            }
          },
          "response": {
            "status": 200,
            "headers": {
              "content-type": "image/png"
            },
            "body": [
              {"base64": "iVBORw=="}
            ]
          }
        }
      ]
    }
    "#);
    assert!(folder.text().ends_with("}\n"));
    assert_eq!(folder.files(), ["tape.json"]);
}

#[tokio::test]
async fn keys_are_not_in_the_file() {
    const KEY: &str = "sk-proj-0123456789/ABCDEF";
    const OTHER: &str = "hunter 2 \"quoted\"";
    let folder = Folder::new("keys");
    let open = || {
        let builder = Cassette::builder(folder.path()).secret(OTHER).keep_header("x-echo");
        builder.open().unwrap()
    };
    let ask_with = |key: &str| {
        let message = json!({ "content": format!("{key} and Bearer abc.DEF-123.") });
        let body = json!({ "user": key, key: OTHER, "messages": [message] });
        Request::post(format!(
            "http://test/v1/chat/completions?key=qwertyui&q={}",
            key.replace('/', "%2F")
        ))
        .header("authorization", format!("Bearer {key}"))
        .header("x-api-key", "another-key-of-mine")
        .header("cookie", "session=c00kie-of-mine; a=b")
        .body(Full::from(body.to_string()))
        .unwrap()
    };
    let events = format!(
        "data: {}\n\ndata: {{\"key\": \"{}\"}}\n\ndata: another-key-of-mine c00kie-of-mine qwertyui {KEY}\n\nend {}",
        json!({ "content": format!("your key is {KEY}, {OTHER}, Bearer x.y.z0") }),
        KEY.replace('/', "\\/"),
        &KEY[..20],
    );
    let tape = open();
    let server = MemoryServer::new(
        Script::new().otherwise(Reply::sse(events).cut(Cut::Every(7)).header("x-echo", KEY)),
    );
    // The first request has a different key; later discovered keys are masked too.
    let first = post(json!({ "messages": [{ "content": KEY }] }));
    let live = send(&tape, &server, first).await.unwrap();
    let live_again = send(&tape, &server, ask_with(KEY)).await.unwrap();
    assert!(live.text().contains(KEY) && live_again.text().contains(KEY), "the client sees all");
    assert!(!tape.story().contains(KEY), "{}", tape.story());
    drop(tape);

    let text = folder.text();
    for secret in [
        KEY,
        &KEY[..20],
        "sk-proj",
        OTHER,
        "hunter 2",
        "secret-key",
        "another-key",
        "c00kie",
        "abc.DEF",
        "x.y.z0",
        "qwertyui",
        "0123456789",
    ] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.contains("your key is ****, ****, Bearer ****"), "{text}");

    // Another key, but the same responses.
    let tape = open();
    let first = post(json!({ "messages": [{ "content": "****" }] }));
    let replayed = send(&tape, &Nobody, first).await.unwrap();
    assert_eq!(replayed.headers["x-echo"], "****");
    assert!(replayed.text().contains("your key is ****"), "{}", replayed.text());
    send(&tape, &Nobody, ask_with("sk-of-somebody-else/1")).await.unwrap();
    let error = error_of(send(&tape, &Nobody, ask_with(KEY)).await);
    assert!(!error.to_string().contains("0123456789"), "{error}");
    assert!(!panic_of(|| tape.verify()).contains("0123456789"));
}

#[tokio::test]
async fn a_test_that_fails_keeps_the_file() {
    let folder = Folder::new("fails");
    folder.record(Reply::text("the first"), &[question("a")]).await;
    let before = folder.text();
    let failing = tokio::spawn({
        let tape = folder.open(Mode::Record);
        async move {
            ask(&tape, &MemoryServer::new(Reply::text("the second")), &question("b"))
                .await
                .unwrap();
            panic!("as asserted");
        }
    });
    assert!(failing.await.unwrap_err().is_panic());
    assert_eq!(folder.text(), before);

    // Without requests, nothing is written.
    drop(folder.open(Mode::Record));
    assert_eq!(folder.text(), before);

    folder.record(Reply::text("the third"), &[question("c")]).await;
    assert_ne!(folder.text(), before);
    assert_eq!(folder.files(), ["tape.json"]);
}

#[tokio::test]
async fn partial_recordings_can_be_saved() {
    let folder = Folder::new("before_the_end");
    let tape = folder.open(Mode::Record);
    let mut service = tape.around(MemoryServer::new(Reply::sse("data: 1\n\ndata: 2\n\n")));
    let mut body = service.call(post(question("a"))).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    tape.save().unwrap();
    assert!(folder.text().contains("saved before the answer ended"), "{}", folder.text());
    // Another piece is something new to save.
    let before = folder.text();
    tape.save().unwrap();
    assert_eq!(folder.text(), before);
    body.frame().await.unwrap().unwrap();
    tape.save().unwrap();
    assert!(folder.text().contains("data: 2"), "{}", folder.text());
    drop((body.collect().await.unwrap(), service, tape));
    assert!(!folder.text().contains("\"cut\""), "{}", folder.text());
}

#[tokio::test]
async fn write_errors_are_reported() {
    let folder = Folder::new("unwritable");
    fs::write(folder.path(), "in the way").unwrap();
    let path = folder.path().join("tape.json");
    let tape = Cassette::builder(&path).mode(Mode::Record).open().unwrap();
    ask(&tape, &MemoryServer::new(Reply::text("Hello")), &question("a")).await.unwrap();
    assert_eq!(tape.save().unwrap_err().kind(), Kind::Io);
    let story = panic_of(|| drop(tape));
    assert!(story.starts_with("cannot write the cassette "), "{story}");
    assert_eq!(folder.files(), ["tape.json"]);
}

#[test]
fn open_errors_are_reported() {
    let folder = Folder::new("cannot_open");
    let error = Cassette::builder(folder.path()).mode(Mode::Replay).open().unwrap_err();
    assert_eq!(error.kind(), Kind::Missing);
    assert!(error.to_string().contains("there is no cassette "), "{error}");

    let interaction = |request: &str, response: &str| {
        format!(
            r#"{{"version": 1, "interactions": [{{"request": {request}, "response": {response}}}]}}"#
        )
    };
    let request = r#"{"method": "GET", "path": "/"}"#;
    for (text, words) in [
        ("", "EOF"),
        ("[]", "not an object"),
        ("{}", "`version` is missing"),
        (r#"{"version": 2, "tracks": []}"#, "it has format version 2, but only 1 is supported"),
        (r#"{"version": 1}"#, "`interactions` is missing"),
        (r#"{"version": 1, "interactions": [], "more": 1}"#, "unknown member `more`"),
        (
            &interaction(r#"{"method": "G T", "path": "/"}"#, "{}"),
            "interaction 1: request: not a method",
        ),
        (&interaction(r#"{"method": "GET", "path": ""}"#, "{}"), "request: not a path"),
        (&interaction(request, r#"{"headers": {}, "body": []}"#), "response: `status` is missing"),
        (&interaction(request, r#"{"status": 99, "headers": {}, "body": []}"#), "not a status"),
        (
            &interaction(request, r#"{"status": 200, "headers": {"a b": "c"}, "body": []}"#),
            "is not a valid header",
        ),
        (
            &interaction(request, r#"{"status": 200, "headers": {}, "body": "x"}"#),
            "`body` is not a list",
        ),
        (
            &interaction(request, r#"{"status": 200, "headers": {}, "body": [1]}"#),
            "a part of a body must be",
        ),
        (
            &interaction(request, r#"{"status": 200, "headers": {}, "body": [], "bodies": []}"#),
            "`bodies`",
        ),
    ] {
        fs::write(folder.path(), text).unwrap();
        for mode in [Mode::Auto, Mode::Replay] {
            let error = Cassette::builder(folder.path()).mode(mode).open().unwrap_err();
            assert_eq!(error.kind(), Kind::Format, "{text}");
            assert!(error.to_string().contains(words), "{text}: {error}");
        }
    }
    // A sparse file.
    fs::File::create(folder.path()).unwrap().set_len((128 << 20) + 1).unwrap();
    assert_eq!(Cassette::open(folder.path()).unwrap_err().kind(), Kind::Limit);
    fs::write(folder.path(), b"\xff").unwrap();
    assert_eq!(Cassette::open(folder.path()).unwrap_err().kind(), Kind::Io);
}

#[test]
fn invalid_settings_are_rejected() {
    let builder = || Cassette::builder("never/written.json");
    for (builder, words) in [
        (builder().ignore("seed"), "\"seed\" is not a JSON pointer"),
        (builder().ignore(""), "\"\" is not a JSON pointer"),
        (builder().secret(""), "a secret must not be empty"),
        (
            builder().keep_header("authorization"),
            "the header authorization holds a secret and is never recorded",
        ),
        (
            builder().keep_header("Set-Cookie"),
            "the header set-cookie holds a secret and is never recorded",
        ),
        (builder().keep_header("a b"), "\"a b\" is not a valid header"),
    ] {
        let error = builder.open().unwrap_err();
        assert_eq!(error.kind(), Kind::Setting);
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn handwritten_files_are_read() {
    let folder = Folder::new("by_hand");
    let text = r#"{"interactions": [{
        "response": {"body": [{"data": {
            "a": [1,
                  2]
        }}, "data: [DONE]\n\n"], "headers": {"Content-Type": "text/event-stream"}, "status": 200},
        "request": {"path": "/v1/chat/completions", "method": "POST", "json": {"b": 1}}
    }], "version": 1}"#;
    fs::write(folder.path(), text).unwrap();
    let tape = folder.open(Mode::Replay);
    let seen = ask(&tape, &Nobody, &json!({ "b": 1 })).await.unwrap();
    assert_eq!(seen.pieces, ["data: {\"a\":[1,2]}\n\n", "data: [DONE]\n\n"]);
}

#[tokio::test]
async fn a_recording_is_bounded() {
    let folder = Folder::new("bounded");
    let tape = folder.open(Mode::Record);
    let server = MemoryServer::new(Script::new().otherwise(Reply::sse("x")));
    for _ in 0..1_025 {
        assert_eq!(ask(&tape, &server, &json!({})).await.unwrap().text(), "x");
    }
    let error = tape.save().unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("1024 requests")), (Kind::Limit, true));
    panic_of(|| tape.verify());

    let tape = folder.open(Mode::Record);
    let large = Bytes::from(vec![b'x'; 17 * 1024 * 1024]);
    let server = MemoryServer::new(Script::new().otherwise(Reply::sse(large.clone())));
    for _ in 0..2 {
        assert_eq!(
            ask(&tape, &server, &json!({})).await.unwrap().pieces.concat().len(),
            large.len()
        );
    }
    assert_eq!(tape.save().unwrap_err().kind(), Kind::Limit);
    panic_of(|| tape.verify());
    assert!(folder.files().is_empty());
}
