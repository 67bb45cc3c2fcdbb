//! Every stream through the whole client, in memory and over a real socket, cut in about fifty ways.

use oa_client::{AgentOptions, ErrorKind, query};
use oa_testkit::{Cut, MemoryServer, Reply, Script, SocketServer};
use oa_types::{AssistantMessage, ContentBlock, FinishReason};
use serde_json::{Value, json};
use suite::{Fixture, all};

/// Everything that a user of `query` receives.
struct Seen {
    text: String,
    thinking: String,
    calls: Vec<ContentBlock>,
    error: Option<oa_client::Error>,
    message: Option<AssistantMessage>,
}

async fn ask(options: &AgentOptions) -> Seen {
    let mut seen = Seen {
        text: String::new(),
        thinking: String::new(),
        calls: Vec::new(),
        error: None,
        message: None,
    };
    let mut answer = match query("Go on.", options).await {
        Ok(answer) => answer,
        Err(error) => return Seen { error: Some(error), ..seen },
    };
    while let Some(block) = answer.next().await {
        match block {
            Ok(ContentBlock::Text(block)) => seen.text.push_str(&block.text),
            Ok(ContentBlock::Thinking(block)) => seen.thinking.push_str(&block.thinking),
            Ok(block) => seen.calls.push(block),
            Err(error) => seen.error = Some(error),
        }
    }
    assert!(answer.next().await.is_none());
    seen.message = answer.message().cloned();
    seen
}

/// About fifty ways to cut a body of this size.
fn cuts(size: usize) -> Vec<Cut> {
    let mut cuts = vec![Cut::Whole, Cut::Events, Cut::Every(1), Cut::Every(7)];
    cuts.extend((0..16).map(|seed| Cut::Random { seed }));
    cuts.extend((1..=30).map(|part| Cut::At(vec![size * part / 31])));
    cuts
}

/// Returns a reply with exactly the fixture's body.
fn reply(fixture: &Fixture) -> Reply {
    Reply::sse(fixture.body.clone())
}

#[track_caller]
fn check(fixture: &Fixture, seen: &Seen, cut: &Cut) {
    let (name, expect) = (format!("{} in {cut:?}", fixture.name), fixture.expect());
    let text = |member: &str| expect[member].as_str().unwrap_or_default();
    let reported = expect["stream_errors"].as_array().is_some_and(|errors| !errors.is_empty());
    let message = seen.message.as_ref();
    if fixture.fails() {
        let error = seen.error.as_ref().unwrap_or_else(|| panic!("{name}: no error"));
        assert_eq!(error.kind(), ErrorKind::Stream, "{name}");
        assert_eq!(error.received(), Some(fixture.body.len() as u64), "{name}");
        return;
    }
    if expect.get("refusal").is_none() {
        assert_eq!(seen.text, text("text"), "text of {name}");
    } else {
        assert_eq!(seen.text, text("refusal"), "refusal of {name}");
        assert_eq!(message.map(|message| &message.finish_reason), Some(&FinishReason::Refusal));
    }
    assert_eq!(seen.thinking, text("thinking"), "thinking of {name}");
    let usage = message.and_then(|message| message.usage);
    let usage = usage.filter(|usage| usage.total().is_some()).map(|usage| {
        json!({
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
        })
    });
    assert_eq!(usage.unwrap_or_default(), expect["usage"], "usage of {name}");
    if let Some(error) = &seen.error {
        assert!(reported, "{name}: {error}");
        let reports = matches!(error.kind(), ErrorKind::Api | ErrorKind::ContextOverflow);
        assert!(reports, "{name}: {error:?}");
        let words = expect["stream_errors"][0]["message"].as_str().unwrap_or_default();
        assert!(error.to_string().contains(words), "{name}: {error}");
        return;
    }
    let (mut calls, mut errors) = (Vec::new(), Vec::new());
    for call in &seen.calls {
        match call {
            ContentBlock::ToolUse(call) => {
                calls.push(json!({ "name": call.name, "arguments": call.input }));
            }
            ContentBlock::ToolUseError(error) => {
                errors.push(json!({ "name": error.name, "raw": error.raw_data }));
            }
            other => panic!("{name}: {other:?} after the text"),
        }
    }
    let without_id = |list: &Value| -> Vec<Value> {
        let list = list.as_array().cloned().unwrap_or_default();
        let without = |mut call: Value| {
            call.as_object_mut().map(|call| call.remove("id"));
            call
        };
        list.into_iter().map(without).collect()
    };
    assert_eq!(calls, without_id(&expect["tool_calls"]), "calls of {name}");
    assert_eq!(errors, without_id(&expect["tool_errors"]), "broken calls of {name}");
    if expect.get("refusal").is_none() {
        let reason = message.map(|message| message.finish_reason.as_str()).unwrap_or_default();
        assert_eq!(
            reason,
            expect["finish_reason"].as_str().unwrap_or("unspecified"),
            "finish of {name}"
        );
    }
}

/// Fixtures whose server must be known in advance are tested with the pipeline.
fn fixtures() -> Vec<Fixture> {
    all()
        .into_iter()
        .filter(|fixture| fixture.quirks() == oa_aggregate::Quirks::default())
        .collect()
}

#[tokio::test]
async fn every_stream_is_correct_in_memory() {
    for fixture in fixtures() {
        for cut in cuts(fixture.body.len()) {
            let server = MemoryServer::new(reply(&fixture).cut(cut.clone()));
            let options = AgentOptions::builder().model("any").transport(server).build().unwrap();
            check(&fixture, &ask(&options).await, &cut);
        }
    }
}

#[tokio::test]
async fn every_stream_is_correct_over_a_socket() {
    for fixture in fixtures() {
        let cuts = cuts(fixture.body.len());
        let script = cuts
            .iter()
            .fold(Script::new(), |script, cut| script.reply(reply(&fixture).cut(cut.clone())));
        let server = SocketServer::start(script).await.unwrap();
        let options = AgentOptions::builder().model("any").base_url(server.base_url());
        let options = options.build().unwrap();
        for cut in &cuts {
            check(&fixture, &ask(&options).await, cut);
        }
        // A stream read to its end leaves its connection for the next one.
        let reported =
            fixture.expect()["stream_errors"].as_array().is_some_and(|errors| !errors.is_empty());
        if !fixture.fails() && !reported {
            assert!(
                server.connections() <= 3,
                "{}: {} connections",
                fixture.name,
                server.connections()
            );
        }
        server.verify();
    }
}
