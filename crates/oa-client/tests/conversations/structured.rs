//! Structured output: requested, validated, retried, and observed while it arrives.

#[path = "structured/laws.rs"]
mod laws;
#[path = "structured/partials.rs"]
mod partials;
#[path = "structured/refusals.rs"]
mod refusals;
#[path = "structured/tools.rs"]
mod tools;
#[path = "structured/values.rs"]
mod values;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use oa_client::{
    AgentOptions, Error, ErrorKind, OutputMode, ResponseFormat, query_for, query_for_format,
};
use oa_hooks::{HookDecision, Hooks};
use oa_testkit::{MemoryServer, Reply, Request};
use oa_types::FinishReason;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use suite::talk::{client, interrupt_after, manual, stalling, strict, talk, told};

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
pub(crate) struct Place {
    city: String,
    people: Option<u32>,
    #[serde(default)]
    sights: Vec<String>,
}

pub(crate) const OSLO: &str = r#"{"city": "Oslo", "people": 717710, "sights": null}"#;

pub(crate) fn oslo() -> Place {
    Place { city: "Oslo".to_owned(), people: Some(717_710), sights: Vec::new() }
}

/// Returns the text of the last message in a request.
pub(crate) fn last_words(request: &Request) -> String {
    let last = request.messages().last().expect("something is said");
    last["content"].as_str().expect("it is text").to_owned()
}

pub(crate) const CUT_OFF: &str = "the answer was cut off by the token limit: bound the strings and lists in its \
                                  schema (maxLength, maxItems), or raise max_tokens";

fn unfit(error: &Error) -> String {
    assert_eq!(error.kind(), ErrorKind::Output, "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn response_format_is_sent_for_one_prompt() {
    let server = strict([Reply::text("Hi."), Reply::text(OSLO), Reply::text("Bye.")]);
    let mut client = client(manual(&server));
    talk(&mut client, "Hello.").await;
    let answer = client.send_for::<Place>("The capital of Norway?").await.unwrap();
    assert_eq!((answer.value, answer.tries), (oslo(), 1));
    assert_eq!(answer.finish_reason, FinishReason::Stop);
    assert_eq!(answer.message.unwrap().text(), OSLO);
    assert!(answer.usage.is_some());
    talk(&mut client, "Thanks.").await;
    let formats: Vec<_> =
        server.requests().iter().map(|request| request.json()["response_format"].clone()).collect();
    assert_eq!((&formats[0], &formats[2]), (&json!(null), &json!(null)));
    assert_eq!(
        formats[1],
        json!({
            "type": "json_schema",
            "json_schema": {
                "name": "Place",
                "strict": true,
                "schema": {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string"},
                        "people": {"type": ["integer", "null"]},
                        "sights": {"type": ["array", "null"], "items": {"type": "string"}},
                    },
                    "required": ["city", "people", "sights"],
                    "additionalProperties": false,
                },
            },
        })
    );
    let oslo = format!("assistant: {OSLO}");
    let history = ["user: Hello.", "assistant: Hi.", "user: The capital of Norway?", &oslo];
    assert_eq!(told(client.history())[..4], history);
    assert_eq!(client.turn_metadata().turns, 3);
    assert_eq!(client.options().response_format(), None);
}

#[tokio::test]
async fn text_around_the_object_is_skipped() {
    for around in
        ["```json\nOSLO\n```", "Here you are:\nOSLO\nAnything else?", "<think>{}</think>OSLO"]
    {
        let said = around.replace("OSLO", OSLO);
        let server = strict([Reply::text(said.clone())]);
        let mut client = client(manual(&server));
        let answer = client.send_for::<Place>("Where?").await.unwrap();
        assert_eq!(answer.value, oslo());
        // History keeps it as the model wrote it.
        assert_eq!(client.history()[1].text(), said);
    }
}

/// The model is sent the errors of each attempt.
#[tokio::test]
async fn invalid_answers_leave_no_trace() {
    let server = strict([
        Reply::text(r#"{"city": 5, "people": null, "sights": []}"#),
        Reply::text("It is Oslo."),
        Reply::text(OSLO),
        Reply::text("Bye."),
    ]);
    let mut client = client(manual(&server).max_turns(2));
    let answer = client.send_for::<Place>("Where?").await.unwrap();
    assert_eq!((answer.value, answer.tries), (oslo(), 3));
    let requests = server.requests();
    let words = last_words(&requests[1]);
    assert!(
        words.starts_with("No answer yet: `city`: expected string, found number 5. "),
        "{words}"
    );
    assert!(words.contains(r#""required":["city"]"#), "a server may not have told it: {words}");
    let words = last_words(&requests[2]);
    assert!(words.starts_with("No answer yet: there is no JSON object in the answer. "), "{words}");
    assert_eq!(requests[2].messages().len(), 5, "the model sees all its tries");
    let oslo = format!("assistant: {OSLO}");
    assert_eq!(told(client.history()), ["user: Where?", &oslo]);
    // One prompt, regardless of the number of attempts.
    assert_eq!(client.turn_metadata().turns, 1);
    talk(&mut client, "Thanks.").await;
    assert_eq!(client.send("More.").await.unwrap_err().kind(), ErrorKind::MaxTurns);
    assert_eq!(server.requests()[3].messages().len(), 3);
}

/// The last answer stays in history.
#[tokio::test]
async fn attempts_are_bounded() {
    let server = strict([
        Reply::text("One."),
        Reply::text("Two."),
        Reply::text("Three."),
        Reply::text("Hi."),
    ]);
    let mut client = client(manual(&server));
    let error = client.send_for::<Place>("Where?").await.unwrap_err();
    assert_eq!(
        unfit(&error),
        "no valid answer after 3 attempts: there is no JSON object in the answer"
    );
    assert_eq!(error.model_output(), Some("Three."));
    assert!(!error.is_retryable());
    assert_eq!(told(client.history()), ["user: Where?", "assistant: Three."]);
    assert_eq!(talk(&mut client, "Hello.").await, ["Hi."]);
    assert_eq!(server.requests().len(), 4);

    let server = strict([Reply::text("One.".repeat(1000))]);
    let mut client = self::client(manual(&server));
    let error = client.send_for::<Place>("Where?").tries(1).await.unwrap_err();
    assert_eq!(
        unfit(&error),
        "no valid answer after 1 attempt: there is no JSON object in the answer"
    );
    assert_eq!(error.model_output().unwrap().chars().count(), 2003, "what it said is bounded");
}

#[tokio::test]
async fn refusals_are_not_retried() {
    for (reply, why, said) in [
        (Reply::new().refuse("I will not."), "the model refused to answer", Some("I will not.")),
        (Reply::new().finish("content_filter"), "the model refused to answer", None),
    ] {
        let server = strict([reply, Reply::text("Hi.")]);
        let mut client = client(manual(&server));
        let error = client.send_for::<Place>("Where?").await.unwrap_err();
        assert_eq!((&*unfit(&error), error.model_output()), (why, said));
        assert_eq!(server.requests().len(), 1);
        assert_eq!(talk(&mut client, "Hello.").await, ["Hi."]);
    }
}

#[tokio::test]
async fn cut_answers_are_retried_once_with_a_hint() {
    let cut = || Reply::text(r#"{"city": "Os"#).finish("length");
    let server = strict([cut(), Reply::text(OSLO), Reply::text("Hi.")]);
    let mut client = client(manual(&server));
    let answer = client.send_for::<Place>("Where?").await.unwrap();
    assert_eq!((answer.value, answer.tries), (oslo(), 2));
    assert_eq!(told(client.history()), ["user: Where?".to_owned(), format!("assistant: {OSLO}")]);
    let words = last_words(&server.requests()[1]);
    let hint = "No answer yet: the answer was too long and was cut off before its end; be brief: \
                write short texts and short lists. Answer with one JSON object and nothing else.";
    assert!(words.starts_with(hint), "{words}");
    assert_eq!(talk(&mut client, "Hello.").await, ["Hi."]);

    // A second truncation ends it even if attempts are left; the first one does if none are.
    for (tries, server) in
        [(3, strict([cut(), cut(), Reply::text("Hi.")])), (1, strict([cut(), Reply::text("Hi.")]))]
    {
        let mut client = self::client(manual(&server));
        let error = client.send_for::<Place>("Where?").tries(tries).await.unwrap_err();
        assert_eq!((&*unfit(&error), error.model_output()), (CUT_OFF, Some(r#"{"city": "Os"#)));
        assert_eq!(server.requests().len(), tries.min(2) as usize);
        assert_eq!(talk(&mut client, "Hello.").await, ["Hi."]);
    }

    // An invalid answer may come between two truncations.
    let server = strict([cut(), Reply::text("Oslo."), cut()]);
    let error =
        self::client(manual(&server)).send_for::<Place>("Where?").tries(9).await.unwrap_err();
    assert_eq!((&*unfit(&error), server.requests().len()), (CUT_OFF, 3));

    // An object that was cut off after its end is complete.
    let server = strict([Reply::text(format!("{OSLO} I hope th")).finish("length")]);
    let answer = self::client(manual(&server)).send_for::<Place>("Where?").await.unwrap();
    assert_eq!(answer.finish_reason, FinishReason::Length);
}

#[tokio::test]
async fn empty_and_truncated_answers_are_retried() {
    let server = strict([
        Reply::new().think("Hm."),
        Reply::text(r#"{"city": "Os"#).without_finish().without_done(),
        Reply::text(OSLO),
    ]);
    let mut client = client(manual(&server));
    assert_eq!(client.send_for::<Place>("Where?").await.unwrap().tries, 3);
    assert_eq!(client.history().len(), 2);
    let words = last_words(&server.requests()[2]);
    assert!(words.contains("`city`: the text ends before the value"), "{words}");
}

#[tokio::test]
async fn errors_in_later_attempts_keep_the_prompt() {
    let server = strict([Reply::text("Oslo."), Reply::error(400, "no"), Reply::text("Fine.")]);
    let mut client = client(manual(&server));
    let error = client.send_for::<Place>("Where?").await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(400)));
    assert_eq!(told(client.history()), ["user: Where?"]);
    client.continue_turn().await.unwrap();
    assert_eq!(server.requests()[2].json()["response_format"], json!(null));
    // The first attempt takes the prompt back, like any failure.
    let server = strict([Reply::error(400, "no")]);
    let mut client = self::client(manual(&server));
    assert_eq!(client.send_for::<Place>("Where?").await.unwrap_err().kind(), ErrorKind::Api);
    assert_eq!(client.history().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn interrupts_end_all_attempts() {
    let server =
        strict([Reply::text("Oslo."), stalling(&["{\"city\"", ": \"Os"]), Reply::text("Hi.")]);
    let mut client = client(manual(&server));
    interrupt_after(&client, Duration::from_secs(1));
    let error = client.send_for::<Place>("Where?").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(client.finish_reason(), Some(&FinishReason::Interrupted));
    let partial = "assistant: {\"city\": \"Os (interrupted)";
    assert_eq!(told(client.history()), ["user: Where?", partial]);
    assert_eq!(talk(&mut client, "Hello.").await, ["Hi."]);

    // Before the head of the first answer.
    let server = strict([Reply::silence(), Reply::text("Hi.")]);
    let mut client = self::client(manual(&server));
    interrupt_after(&client, Duration::from_secs(1));
    let error = client.send_for::<Place>("Where?").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(talk(&mut client, "Hello.").await, ["Hi."]);
}

#[tokio::test(start_paused = true)]
async fn max_run_time_covers_all_attempts() {
    let slow = || Reply::text("Oslo.").delay_head(Duration::from_secs(4));
    let server = strict([slow(), slow(), slow(), Reply::text("Hi.")]);
    let mut client = client(manual(&server).max_run_time(Duration::from_secs(10)));
    let error = client.send_for::<Place>("Where?").await.unwrap_err();
    assert_eq!(unfit(&error), "the turn ended before a valid answer: max_run_time");
    assert_eq!((error.model_output(), server.requests().len()), (Some("Oslo."), 3));
    assert_eq!(talk(&mut client, "Hello.").await, ["Hi."]);
}

#[tokio::test(start_paused = true)]
async fn dropped_requests_leave_a_usable_client() {
    for moment in 0..60 {
        let slow = |text: &str| {
            let reply = Reply::text(text).delay(Duration::from_millis(100));
            reply.delay_head(Duration::from_millis(500))
        };
        let replies = [slow("I say it is Oslo."), slow("{\"city\": 1}"), slow(OSLO)];
        let script = oa_testkit::Script::new().strict().otherwise(Reply::by(move |request| {
            let reply = replies.get(request.number() - 1);
            reply.cloned().unwrap_or_else(|| Reply::text("Hi."))
        }));
        let server = MemoryServer::new(script);
        let mut client = client(manual(&server));
        let time = Duration::from_millis(50 + moment * 97);
        let ended = tokio::time::timeout(time, client.send_for::<Place>("Where?").into_future());
        let is_over = ended.await.is_ok();
        let history = told(client.history());
        assert!(history.len() <= 2, "{history:?}");
        assert!(history.iter().all(|line| !line.contains("No answer yet")), "{history:?}");
        if !is_over {
            assert!(server.requests().last().unwrap().is_over(), "the server is to stop");
        }
        let seen = talk(&mut client, "Hello.").await;
        assert_eq!(seen.len(), 1);
        assert_eq!(server.requests().last().unwrap().json()["response_format"], json!(null));
        assert_eq!(told(client.history()).last().unwrap(), &format!("assistant: {}", seen[0]));
    }
}

#[tokio::test]
async fn prompt_hooks_run_once() {
    let asked = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&asked);
    let hooks =
        Hooks::new().add_user_prompt_submit(move |event| {
            counter.fetch_add(1, Ordering::SeqCst);
            async move {
                Some(HookDecision::modify_prompt(format!("{} Really?", event.prompt), "doubt"))
            }
        });
    let server = strict([Reply::text("Oslo."), Reply::text(OSLO)]);
    let mut client = client(manual(&server).hooks(hooks));
    client.send_for::<Place>("Where?").await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(client.history()[0].text(), "Where? Really?");
}

#[tokio::test]
async fn callers_can_add_checks() {
    let small = OSLO.replace("717710", "7");
    let server = strict([Reply::text(small), Reply::text(OSLO)]);
    let mut client = client(manual(&server));
    let answer = client.send_for::<Place>("Where?").check(|place| match place.people {
        Some(people) if people < 1000 => Err("`people`: no city is that small".to_owned()),
        _ => Ok(()),
    });
    assert_eq!(answer.await.unwrap().value, oslo());
    let words = last_words(&server.requests()[1]);
    assert!(words.starts_with("No answer yet: `people`: no city is that small. "), "{words}");
}

#[tokio::test]
async fn deserialize_errors_are_sent_and_bounded() {
    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Port {
        #[serde(deserialize_with = "even")]
        port: u16,
    }
    fn even<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
        let port = u16::deserialize(deserializer)?;
        let odd = || serde::de::Error::custom("the port is odd ".repeat(100));
        if port % 2 == 0 { Ok(port) } else { Err(odd()) }
    }
    let server = strict([Reply::text(r#"{"port": 81}"#), Reply::text(r#"{"port": 80.0}"#)]);
    let options = manual(&server).build().unwrap();
    let answer = query_for::<Port>("Which?", &options).await.unwrap();
    assert_eq!(answer.value, Port { port: 80 });
    let words = last_words(&server.requests()[1]);
    assert!(words.contains("the port is odd") && words.len() < 1000, "{words}");
}

#[tokio::test]
async fn query_for_returns_a_typed_answer() {
    let server = strict([Reply::text(r#"{"value": ["a", "b"]}"#), Reply::text(r#"{"n": 1}"#)]);
    let options = manual(&server).build().unwrap();
    let answer = query_for::<Vec<String>>("Two letters?", &options).await.unwrap();
    assert_eq!(answer.value, ["a", "b"]);
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let format = ResponseFormat::new("a number", schema.clone());
    let answer = query_for_format("A number?", &options, format).await.unwrap();
    assert_eq!(answer.value, json!({"n": 1}));
    let sent = server.requests()[1].json()["response_format"].clone();
    let sent_format = json!({"name": "a_number", "schema": schema, "strict": false});
    assert_eq!(sent, json!({"type": "json_schema", "json_schema": sent_format}));
}

#[tokio::test]
async fn invalid_options_fail_before_sending() {
    let server = strict([Reply::text("Hi.")]);
    let mut client =
        client(manual(&server).extra_body(json!({"response_format": {"type": "text"}})));
    let refused = |result: Result<_, Error>| {
        let error: Error = result.map(|_: oa_client::Structured<Place>| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    };
    assert_eq!(
        refused(client.send_for::<Place>("Where?").await),
        "extra_body may not set \"response_format\" with structured output"
    );
    assert_eq!(
        refused(client.send_for::<Place>("Where?").tries(0).mode(OutputMode::Tool).await),
        "tries must be at least 1"
    );
    let error = client.send_for::<Place>("Where?").mode(OutputMode::Tool).tool_name("a b").await;
    assert!(refused(error).contains("a b"));
    let error =
        client.send_for::<Place>("Where?").mode(OutputMode::Format).tool_name("reply").await;
    assert_eq!(refused(error), "tool_name has no effect where there is no output tool");
    let list = ResponseFormat::new("list", json!({"type": "array"}));
    let error = client.send_for_format("Where?", list).await.unwrap_err();
    assert_eq!(error.to_string(), "the schema of list does not describe an object");
    assert_eq!(server.requests().len(), 0);
    assert_eq!(client.history().len(), 0);
    let error =
        query_for::<Place>(" ", &AgentOptions::builder().model("any").build().unwrap()).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(talk(&mut client, "Hello.").await, ["Hi."]);
}
