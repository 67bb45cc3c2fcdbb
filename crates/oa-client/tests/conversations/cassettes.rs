//! Whole agents recorded with a server and replayed without one.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use oa_chat::RetryConfig;
use oa_client::{AgentOptions, AgentOptionsBuilder, ErrorKind, query};
use oa_testkit::{Cassette, CassetteMode, Cut, MemoryServer, Reply, Script, SocketServer};
use oa_transport::Transport;
use oa_types::Message;
use serde_json::json;

use suite::talk::{adder, client, echo, models, read, read_on, talk, told};

/// An address on which no server listens: the discard port.
const NOWHERE: &str = "http://127.0.0.1:9/v1";
const KEY: &str = "sk-0123456789abcdef-top-secret";

/// The path of a test's cassette, which does not exist yet.
fn path(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cassettes").join(name);
    // Left from an earlier run, if any.
    let _ = fs::remove_file(&path);
    path
}

fn tape(path: &PathBuf, mode: CassetteMode) -> Cassette {
    Cassette::builder(path).mode(mode).open().expect("a cassette")
}

/// Options with the built-in transport behind the cassette.
fn over(tape: &Cassette, base_url: &str) -> AgentOptionsBuilder {
    let options = AgentOptions::builder().model("any").base_url(base_url);
    options.transport(tape.around(Transport::default())).retry(RetryConfig::none())
}

/// Returns true if the cassette was not replayed as recorded.
fn fails(tape: &Cassette) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tape.verify())).is_err()
}

/// A conversation of two prompts and four tool rounds, one of them with two calls.
async fn converse(options: AgentOptionsBuilder) -> (Vec<Vec<String>>, Vec<Message>) {
    let options = options.tool(adder()).tool(echo()).auto_execute_tools(true).system_prompt("Add.");
    let mut client = client(options.api_key(KEY));
    let mut seen = Vec::new();
    for prompt in ["What is 1 + 2 + 3?", "And what did you say?"] {
        seen.push(talk(&mut client, prompt).await);
    }
    (seen, client.history().to_vec())
}

fn conversation() -> Script {
    Script::new()
        .strict()
        .reply(Reply::new().think("hm").say("First, ").call("add", json!({ "a": 1, "b": 2 })))
        .reply(
            Reply::new().call("add", json!({ "a": 3, "b": 3 })).call("echo", json!({ "say": "x" })),
        )
        .reply(Reply::text("It is 6.").cut(Cut::Every(11)))
        .reply(Reply::new().call("echo", json!({ "say": "n\u{fc}" })))
        .reply(Reply::new().call("nothing", json!({})))
        .reply(Reply::text("I said nü."))
}

#[tokio::test]
async fn replay_equals_the_recorded_conversation() {
    let path = path("conversation.json");
    let server = SocketServer::start(conversation()).await.unwrap();
    let recorded = converse(over(&tape(&path, CassetteMode::Auto), &server.base_url())).await;
    server.verify();
    drop(server);
    assert_eq!(told(&recorded.1).len(), 13, "{:#?}", told(&recorded.1));

    for cut in [None, Some(Cut::Every(1)), Some(Cut::Whole), Some(Cut::Random { seed: 5 })] {
        let builder = Cassette::builder(&path).mode(CassetteMode::Replay);
        let builder = match &cut {
            Some(cut) => builder.cut(cut.clone()),
            None => builder,
        };
        let tape = builder.open().unwrap();
        let replayed = converse(over(&tape, NOWHERE)).await;
        assert_eq!(replayed, recorded, "{cut:?}");
        tape.verify();
    }
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains(KEY) && !text.contains("Bearer"), "{text}");
}

#[tokio::test]
async fn generated_ids_do_not_break_replay() {
    let path = path("made_up.json");
    let calls = json!([
        { "index": 0, "function": { "name": "echo", "arguments": "{\"say\": \"a\"}" } },
        { "index": 1, "function": { "name": "echo", "arguments": "{\"say\": \"b\"}" } },
    ]);
    let calls = json!({ "choices": [{ "index": 0, "delta": { "tool_calls": calls } }] });
    let server = MemoryServer::new([
        Reply::new().event(calls).finish("tool_calls"),
        Reply::text("I said both."),
    ]);
    for mode in [CassetteMode::Record, CassetteMode::Replay] {
        let tape = tape(&path, mode);
        let options = AgentOptions::builder().model("any").transport(tape.around(server.clone()));
        let mut client = client(options.tool(echo()).auto_execute_tools(true));
        let seen = talk(&mut client, "Say a and b.").await;
        assert_eq!((seen.len(), seen[4].as_str()), (5, "I said both."), "{seen:?}");
        drop(client);
        tape.verify();
    }
}

#[tokio::test(start_paused = true)]
async fn a_miss_is_not_retried() {
    let path = path("miss.json");
    let server = MemoryServer::new(Script::new().otherwise(Reply::text("Hello")));
    let record = |tape: &Cassette| {
        let options = AgentOptions::builder().model("any").transport(tape.around(server.clone()));
        options.build().unwrap()
    };
    let recording = tape(&path, CassetteMode::Record);
    query("Hi.", &record(&recording)).await.unwrap().text().await.unwrap();
    recording.verify();
    drop(recording);
    let replaying = tape(&path, CassetteMode::Replay);
    // Retries are enabled.
    let error = query("Something else.", &record(&replaying)).await.unwrap_err();
    assert!(!error.is_retryable(), "{error}");
    assert_eq!(
        replaying.story().matches("matches no interaction").count(),
        1,
        "{}",
        replaying.story()
    );
    assert!(fails(&replaying));
    // Unused interactions are reported when the last clone is dropped.
    std::mem::forget(replaying);
}

#[tokio::test]
async fn changed_prompts_fail_with_a_diff() {
    let path = path("changed.json");
    let server = MemoryServer::new(Reply::text("Blue."));
    let over_memory = |tape: &Cassette| {
        let options = AgentOptions::builder().model("any").transport(tape.around(server.clone()));
        options.system_prompt("You are brief.").max_tokens(20).retry(RetryConfig::none())
    };
    let recording = tape(&path, CassetteMode::Record);
    let options = over_memory(&recording).build().unwrap();
    query("What color is the sky?", &options).await.unwrap().text().await.unwrap();
    drop((recording, options));

    let tape = tape(&path, CassetteMode::Replay);
    let options = over_memory(&tape).temperature(0.5).build().unwrap();
    let error = query("What color is the sea?", &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    insta::assert_snapshot!(error, @r#"
    no answer: request 1 matches no interaction; the nearest is 1 of 1 (- recorded, + requested):
      …
            "role": "system"
          }
          {
    -       "content": "What color is the sky?"
    +       "content": "What color is the sea?"
            "role": "user"
          }
        ]
      …
        "stream_options": {
          "include_usage": true
        }
    +   "temperature": 0.5
      }
    "#);
    let options = over_memory(&tape).build().unwrap();
    query("What color is the sky?", &options).await.unwrap().text().await.unwrap();
    assert_eq!(server.requests().len(), 1);
    assert!(fails(&tape), "a miss is remembered");
}

#[tokio::test]
async fn statuses_and_retries_are_replayed() {
    let path = path("statuses.json");
    let script = Script::new()
        .reply(Reply::error(503, "Loading model"))
        .reply(Reply::text("Ready."))
        .reply(Reply::error(400, "no such model"))
        .models(["one", "two"]);
    let server = SocketServer::start(script).await.unwrap();
    let base_url = server.base_url();
    let run = async |tape: &Cassette, base_url: &str| {
        let retry = RetryConfig::new(2).initial_delay(Duration::from_millis(1));
        let options = over(tape, base_url).retry(retry).build().unwrap();
        let text = query("Hi.", &options).await.unwrap().text().await.unwrap();
        let error = query("And?", &options).await.unwrap_err();
        (text, error.status(), error.to_string(), models(&options).await.unwrap())
    };
    let recorded = run(&tape(&path, CassetteMode::Auto), &base_url).await;
    assert_eq!((recorded.0.as_str(), recorded.1, recorded.3.len()), ("Ready.", Some(400), 2));
    server.verify();
    drop(server);
    let tape = tape(&path, CassetteMode::Replay);
    assert_eq!(run(&tape, NOWHERE).await, recorded);
    tape.verify();
}

#[tokio::test]
async fn interrupted_answers_are_recorded() {
    let path = path("interrupted.json");
    let server = SocketServer::start(Script::from([
        Reply::text("one two three four").stall_after(700),
        Reply::text("Again."),
    ]))
    .await
    .unwrap();
    let run = async |tape: &Cassette, base_url: &str| {
        let mut client = client(over(tape, base_url));
        client.send("Count.").await.unwrap();
        let first = client.receive().await.unwrap();
        client.interrupt();
        let rest = read(&mut client).await;
        (first, rest, talk(&mut client, "Once more.").await, client.history().to_vec())
    };
    let recorded = run(&tape(&path, CassetteMode::Auto), &server.base_url()).await;
    assert!(told(&recorded.3)[1].ends_with("(interrupted)"), "{:?}", told(&recorded.3));
    assert!(
        fs::read_to_string(&path).unwrap().contains("\"cut\": \"the client dropped the answer\"")
    );

    let replaying = tape(&path, CassetteMode::Replay);
    assert_eq!(run(&replaying, NOWHERE).await, recorded);
    replaying.verify();

    // A client that reads on learns that there is no more.
    let replaying = tape(&path, CassetteMode::Replay);
    let mut client = client(over(&replaying, NOWHERE));
    client.send("Count.").await.unwrap();
    let error = read_on(&mut client).await.1.unwrap();
    assert_eq!(error.kind(), ErrorKind::Stream);
    assert!(error.to_string().contains("the recording ends here: the client dropped"), "{error}");
    let story = replaying.story();
    assert!(story.contains("interaction 2 was never requested"), "{story}");
    assert!(fails(&replaying));
}

#[tokio::test]
async fn concurrent_agents_get_their_own_answers() {
    let path = path("at_once.json");
    let echo = Reply::by(|request| Reply::text(request.messages()[0]["content"].to_string()));
    let server = SocketServer::start(Script::new().otherwise(echo)).await.unwrap();
    for (mode, base_url) in [
        (CassetteMode::Record, server.base_url().to_owned()),
        (CassetteMode::Replay, NOWHERE.to_owned()),
    ] {
        let tape = tape(&path, mode);
        let options = over(&tape, &base_url).build().unwrap();
        let mut queries = tokio::task::JoinSet::new();
        for number in 0..16 {
            let options = options.clone();
            queries.spawn(async move {
                let prompt = format!("Number {number}.");
                let text = query(&prompt, &options).await.unwrap().text().await.unwrap();
                assert_eq!(text, format!("\"{prompt}\""));
            });
        }
        queries.join_all().await;
        tape.verify();
    }
}
