//! Cassettes through their public interface: recorded responses come back, and nothing else.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use oa_testkit::{
    Cassette, CassetteErrorKind as Kind, CassetteMode as Mode, Cut, MemoryServer, Reply, Script,
};
use serde_json::json;
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::tapes::{Folder, Nobody, ask, error_of, kind_of, panic_of, post, question, send};

#[tokio::test]
async fn replay_keeps_the_recorded_pieces() {
    let folder = Folder::new("comes_back");
    let tape = folder.open(Mode::Auto);
    assert!(!tape.is_replaying());
    let replies = [
        Reply::sse("data: 1\n\ndata: 2\n\n"),
        Reply::sse("data: 1\n\ndata: 2\n\n").cut(Cut::Every(5)),
        Reply::error(429, "busy").header("retry-after", "7"),
        Reply::body(200, "application/octet-stream", (0..=255).collect::<Vec<u8>>())
            .cut(Cut::Every(100)),
        Reply::body(204, "text/plain", ""),
    ];
    let server = MemoryServer::new(Script::from(replies));
    let mut recorded = Vec::new();
    for prompt in ["a", "b", "c", "d", "e"] {
        recorded.push(ask(&tape, &server, &question(prompt)).await.unwrap());
    }
    drop(tape);

    let tape = folder.open(Mode::Auto);
    assert!(tape.is_replaying());
    for (prompt, recorded) in ["a", "b", "c", "d", "e"].into_iter().zip(&recorded) {
        let replayed = ask(&tape, &Nobody, &question(prompt)).await.unwrap();
        assert_eq!(replayed.pieces, recorded.pieces, "{prompt}");
        assert_eq!(replayed.status, recorded.status);
        for name in ["content-type", "retry-after"] {
            assert_eq!(replayed.headers.get(name), recorded.headers.get(name));
        }
        assert!(replayed.body.is_ok() && recorded.body.is_ok());
    }
    tape.verify();
}

#[tokio::test]
async fn repeated_requests_replay_in_order() {
    let folder = Folder::new("in_order");
    let questions = [question("again"), question("other"), question("again")];
    folder.record(["one", "two", "three"].map(Reply::sse), &questions).await;

    let tape = folder.open(Mode::Replay);
    let mut seen = Vec::new();
    for prompt in ["other", "again", "again"] {
        seen.push(ask(&tape, &Nobody, &question(prompt)).await.unwrap().text());
    }
    assert_eq!(seen, ["two", "one", "three"]);
}

#[tokio::test]
async fn concurrent_requests_get_their_own_answers() {
    let folder = Folder::new("at_once");
    let echo = Reply::by(|request| Reply::text(request.messages()[0]["content"].to_string()));
    let prompts: Vec<_> = (0..20).map(|n| format!("number {n}")).collect();
    for (mode, server) in
        [(Mode::Record, Script::new().otherwise(echo.clone())), (Mode::Replay, Script::new())]
    {
        let tape = folder.open(mode);
        let server = MemoryServer::new(server);
        let mut asked = tokio::task::JoinSet::new();
        for prompt in prompts.clone() {
            let (tape, server) = (tape.clone(), server.clone());
            asked.spawn(async move {
                let seen = ask(&tape, &server, &question(&prompt)).await.unwrap();
                assert!(seen.text().contains(&prompt), "{prompt}: {}", seen.text());
            });
        }
        asked.join_all().await;
        tape.verify();
    }
}

#[tokio::test]
async fn requests_match_by_method_path_and_json() {
    let folder = Folder::new("method_path_json");
    let tape = folder.open(Mode::Record);
    let server = MemoryServer::new(
        Script::new().get("/v1/thing", Reply::text("a thing")).reply(Reply::text("Hello")),
    );
    ask(&tape, &server, &json!({ "model": "m", "n": [1, { "a": 1, "b": 2 }] })).await.unwrap();
    let get = |target: &str| Request::get(target).body(Full::<Bytes>::default()).unwrap();
    send(&tape, &server, get("http://test/v1/thing?x=1")).await.unwrap();
    drop(tape);

    let tape = folder.open(Mode::Replay);
    // Another host, other headers, another member order.
    let body = r#"{"n": [1, {"b": 2, "a": 1}], "model": "m"}"#;
    let same = || {
        let request =
            Request::post("https://elsewhere:8080/v1/chat/completions").header("x-a", "b");
        request.body(Full::from(body)).unwrap()
    };
    for other in [
        Request::put("http://test/v1/chat/completions").body(Full::from(body)).unwrap(),
        Request::post("http://test/v2/chat/completions").body(Full::from(body)).unwrap(),
        post(r#"{"n": [{"b": 2, "a": 1}, 1], "model": "m"}"#),
        post(r#"{"n": [1, {"b": 2, "a": 1}]}"#),
        post(body.replace('}', "")),
        post(""),
        get("http://test/v1/thing"),
        get("http://test/v1/thing?x=2"),
    ] {
        assert_eq!(kind_of(send(&tape, &Nobody, other).await), Kind::Miss);
    }
    send(&tape, &Nobody, same()).await.unwrap();
    send(&tape, &Nobody, get("/v1/thing?x=1")).await.unwrap();
    let story = panic_of(|| tape.verify());
    assert_eq!(story.matches("  - request ").count(), 8, "{story}");
    assert!(!story.contains("never requested"), "{story}");
}

#[tokio::test]
async fn members_can_be_ignored_or_rewritten() {
    let folder = Folder::new("ignored");
    let asked = |seed: u64, time: &str| {
        let message = json!({ "id": seed, "content": format!("It is {time}.") });
        json!({ "seed": seed, "messages": [message] })
    };
    let tape = folder.open(Mode::Record);
    let server = MemoryServer::new(Reply::text("So late"));
    ask(&tape, &server, &asked(7, "12:30")).await.unwrap();
    drop(tape);
    assert!(folder.text().contains("\"seed\": 7"), "{}", folder.text());

    let builder = || Cassette::builder(folder.path()).mode(Mode::Replay);
    let tape = builder().ignore("/seed").ignore("/messages/*/id").open().unwrap();
    assert_eq!(kind_of(ask(&tape, &Nobody, &asked(8, "12:31")).await), Kind::Miss);
    ask(&tape, &Nobody, &asked(8, "12:30")).await.unwrap();
    panic_of(|| tape.verify());

    let tape = builder()
        .normalize(|body| {
            body["seed"] = json!(0);
            body["messages"][0]["id"] = json!(0);
            body["messages"][0]["content"] = json!("It is some time.");
        })
        .open()
        .unwrap();
    ask(&tape, &Nobody, &asked(9, "12:31")).await.unwrap();
    tape.verify();
}

#[tokio::test]
async fn misses_show_the_nearest_recording() {
    let folder = Folder::new("a_miss");
    let long = "the same for long, ".repeat(50);
    let asked = |prompt: &str, city: &str| {
        json!({
            "model": "m",
            "stream": true,
            "messages": [
                { "role": "system", "content": format!("{long}{prompt}{long}") },
                { "role": "user", "content": city },
            ],
        })
    };
    let questions = [question("Something else"), asked("be brief", "Paris"), asked("be", "Rome")];
    folder.record(["one", "two", "three"].map(Reply::text), &questions).await;

    let tape = folder.open(Mode::Replay);
    let error = error_of(ask(&tape, &Nobody, &asked("be polite", "Paris")).await);
    assert_eq!(error.kind(), Kind::Miss);
    insta::assert_snapshot!(error, @r#"
    request 1 matches no interaction; the nearest is 2 of 3 (- recorded, + requested):
      POST /v1/chat/completions
      {
        "messages": [
          {
    -       "content": "…he same for long, the same for long, be briefthe same for long, the same for long, the same for long, the same for long,…
    +       "content": "…he same for long, the same for long, be politethe same for long, the same for long, the same for long, the same for long…
            "role": "system"
          }
          {
      …
    "#);

    for question in &questions {
        ask(&tape, &Nobody, question).await.unwrap();
    }
    let error = error_of(ask(&tape, &Nobody, &questions[1]).await);
    insta::assert_snapshot!(error, @"request 5 is the same as interaction 2, which request 3 already used: it was recorded once but requested again");
    let error = error_of(ask(&tape, &Nobody, &question("More?")).await);
    insta::assert_snapshot!(error, @r#"request 6 is one more than the 3 interactions recorded: POST /v1/chat/completions, 1 message (user "More?")"#);
    let path = folder.path().display().to_string();
    insta::assert_snapshot!(panic_of(|| tape.verify()).replace(&path, "tape.json"), @r#"
    the cassette was not replayed as recorded
    replaying tape.json:
      1. POST /v1/chat/completions, 1 message (user "Something else") -> request 2
      2. POST /v1/chat/completions, model "m", streamed, 2 messages (system, user "Paris") -> request 3
      3. POST /v1/chat/completions, model "m", streamed, 2 messages (system, user "Rome") -> request 4
    wrong:
      - request 1 matches no interaction; the nearest is 2 of 3 (- recorded, + requested):
          POST /v1/chat/completions
          {
            "messages": [
              {
        -       "content": "…he same for long, the same for long, be briefthe same for long, the same for long, the same for long, the same for long,…
        +       "content": "…he same for long, the same for long, be politethe same for long, the same for long, the same for long, the same for long…
                "role": "system"
              }
              {
          …
      - request 5 is the same as interaction 2, which request 3 already used: it was recorded once but requested again
      - request 6 is one more than the 3 interactions recorded: POST /v1/chat/completions, 1 message (user "More?")
    "#);
}

/// Differences that a terminal does not show: line ends, bytes that are not text, other spaces.
#[tokio::test]
async fn misses_show_invisible_differences() {
    let request = |body: &[u8]| {
        let body = Full::from(body.to_vec());
        Request::post("http://test/v1/files").body(body).unwrap()
    };
    for (recorded, asked, shown) in [
        (&b"a\r\nb"[..], &b"a\nb"[..], ["- a\\u{d}\n", "+ a\n"]),
        (b"a\n", b"a", ["- \n", "  a\n"]),
        (b"\xffa", b"\xfea", ["- \\xffa\n", "+ \\xfea\n"]),
        (b"\"a b\"", "\"a\u{a0}b\"".as_bytes(), ["- \"a b\"\n", "+ \"a\\u{a0}b\"\n"]),
        (b"\x1b[2Ja", b"a", ["- \\u{1b}[2Ja\n", "+ a\n"]),
    ] {
        let folder = Folder::new("invisible");
        let tape = folder.open(Mode::Record);
        let server = MemoryServer::new(Script::new().otherwise(Reply::text("Hello")));
        send(&tape, &server, request(recorded)).await.unwrap();
        drop(tape);
        let tape = folder.open(Mode::Replay);
        let error = error_of(send(&tape, &Nobody, request(asked)).await).to_string();
        assert!(shown.iter().all(|line| error.contains(line)), "{error}");
        panic_of(|| tape.verify());
    }
}

/// Local servers are given any key, which may be a word of the conversation.
#[tokio::test]
async fn key_may_be_a_recorded_word() {
    let folder = Folder::new("placeholder");
    let asked = question("Is a not-needed key needed?");
    folder.record(Reply::text("No."), std::slice::from_ref(&asked)).await;

    let request = |body: &serde_json::Value| {
        let request = Request::post("http://test/v1/chat/completions");
        let request = request.header("authorization", "Bearer not-needed");
        request.body(Full::from(body.to_string())).unwrap()
    };
    let tape = folder.open(Mode::Replay);
    let error = error_of(send(&tape, &Nobody, request(&question("A not-needed key?"))).await);
    assert_eq!(error.kind(), Kind::Miss);
    assert!(error.to_string().contains("Is a **** key needed?"), "{error}");
    send(&tape, &Nobody, request(&asked)).await.unwrap();
    let error = error_of(send(&tape, &Nobody, request(&asked)).await);
    assert!(error.to_string().contains("which request 2 already used"), "{error}");
    panic_of(|| tape.verify());
}

#[tokio::test]
async fn unused_recordings_are_reported() {
    let folder = Folder::new("not_asked");
    folder.record(["one", "two"].map(Reply::text), &[question("a"), question("b")]).await;

    let tape = folder.open(Mode::Replay);
    ask(&tape, &Nobody, &question("b")).await.unwrap();
    assert!(panic_of(|| tape.verify()).contains("  - interaction 1 was never requested\n"));
    drop(tape); // It was told already.

    let tape = folder.open(Mode::Replay);
    let service = tape.layer(Nobody);
    drop(tape);
    let story = panic_of(|| drop(service));
    assert!(story.contains("interaction 1 was never requested"), "{story}");
    assert!(story.contains("interaction 2 was never requested"), "{story}");
}

#[tokio::test]
async fn dropped_bodies_are_marked_as_cut() {
    let folder = Folder::new("dropped");
    let reply = || Reply::sse("data: 1\n\ndata: 2\n\ndata: [DONE]\n\ndata: 3\n\n");
    let tape = folder.open(Mode::Record);
    let server = MemoryServer::new(Script::new().otherwise(reply()));
    for (prompt, frames) in [("none", 0), ("one", 1), ("done", 3), ("all", 4)] {
        let mut service = tape.around(server.clone());
        let response = service.call(post(question(prompt))).await.unwrap();
        let mut body = response.into_body();
        for _ in 0..frames {
            body.frame().await.unwrap().unwrap();
        }
    }
    // Nobody waits for the response.
    drop(tape.around(server.clone()).call(post(question("unasked"))));
    assert_eq!(tape.story().lines().count(), 6, "{}", tape.story());
    drop(tape);

    let tape = folder.open(Mode::Replay);
    for (prompt, text) in [("none", ""), ("one", "data: 1\n\n")] {
        let seen = ask(&tape, &Nobody, &question(prompt)).await.unwrap();
        assert_eq!(seen.text(), text);
        let error = error_of(seen.body);
        assert_eq!(error.kind(), Kind::Cut);
        assert_eq!(error.to_string(), "the recording ends here: the client dropped the answer");
    }
    for (prompt, pieces) in [("done", 3), ("all", 4)] {
        let seen = ask(&tape, &Nobody, &question(prompt)).await.unwrap();
        assert_eq!(seen.pieces.len(), pieces);
        assert!(seen.body.is_ok(), "{prompt}: {:?}", seen.body);
    }
    tape.verify();
}

#[tokio::test]
async fn a_broken_answer_comes_back_broken() {
    let folder = Folder::new("broken");
    let reply = Reply::sse("data: 1\n\ndata: 2\n\n").reset_after(9);
    let tape = folder.open(Mode::Record);
    let live = ask(&tape, &MemoryServer::new(reply), &question("a")).await.unwrap();
    let error = live.body.unwrap_err().downcast::<std::io::Error>().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    drop(tape);

    let tape = folder.open(Mode::Replay);
    let seen = ask(&tape, &Nobody, &question("a")).await.unwrap();
    assert_eq!(seen.pieces, live.pieces);
    assert_eq!(
        error_of(seen.body).to_string(),
        "the recording ends here: connection reset inside the body"
    );
}

#[tokio::test]
async fn transport_errors_are_not_recorded() {
    let folder = Folder::new("transport");
    let tape = folder.open(Mode::Auto);
    let server = MemoryServer::new([Reply::hang_up(), Reply::text("Hello")]);
    let error = ask(&tape, &server, &question("a")).await.unwrap_err();
    assert_eq!(
        error.downcast::<std::io::Error>().unwrap().kind(),
        std::io::ErrorKind::UnexpectedEof
    );
    tape.save().unwrap();
    assert!(folder.files().is_empty());
    ask(&tape, &server, &question("a")).await.unwrap();
    drop(tape);

    let tape = folder.open(Mode::Replay);
    assert_eq!(ask(&tape, &Nobody, &question("a")).await.unwrap().status, 200);
}

#[tokio::test]
async fn answers_can_be_cut_elsewhere_on_replay() {
    let folder = Folder::new("cut");
    let questions = [question("a")];
    folder.record(Reply::sse("data: 1\n\n"), &questions).await;
    let tape = Cassette::builder(folder.path()).cut(Cut::Every(4)).open().unwrap();
    let seen = ask(&tape, &Nobody, &questions[0]).await.unwrap();
    assert_eq!(seen.pieces, ["data", ": 1\n", "\n"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_while_it_is_recorded() {
    let folder = Folder::new("streaming");
    let reply = Reply::sse("one two three").cut(Cut::Every(4)).delay(Duration::from_secs(10));
    let tape = folder.open(Mode::Record);
    let mut service = tape.around(MemoryServer::new(reply));
    let start = Instant::now();
    let mut body = service.call(post(question("a"))).await.unwrap().into_body();
    let mut times = vec![start.elapsed().as_secs()];
    while let Some(frame) = body.frame().await {
        frame.unwrap();
        times.push(start.elapsed().as_secs());
    }
    assert_eq!(times, [0, 10, 20, 30, 40]);
}
