//! The value of structured output belongs to the last answer, once that is accepted.

use std::future::pending;
use std::sync::OnceLock;

use oa_client::{ErrorKind, InterruptHandle};
use oa_hooks::Hooks;
use oa_testkit::{MemoryServer, Reply, Script};
use oa_types::FinishReason;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::{OSLO, Place, last_words, oslo};
use suite::talk::{auto, client, manual, strict, told};

/// An answer that its hook has not accepted is none.
#[tokio::test]
async fn interrupted_reviews_accept_nothing() {
    static HANDLE: OnceLock<InterruptHandle> = OnceLock::new();
    let hooks = Hooks::new().add_answer(|_| async {
        HANDLE.get().expect("it was set").interrupt();
        pending().await
    });
    let server = strict([Reply::text(OSLO)]);
    let mut client = client(manual(&server).hooks(hooks));
    HANDLE.set(client.interrupt_handle()).unwrap();
    let error = client.send_for::<Place>("Where?").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(told(client.history())[1], format!("assistant: {OSLO} (interrupted)"));
}

#[tokio::test(start_paused = true)]
async fn reviews_out_of_time_accept_nothing() {
    let hooks = Hooks::new().add_answer(|_| pending());
    let server = strict([Reply::text(OSLO)]);
    let mut client = client(manual(&server).hooks(hooks).max_run_time(5));
    let error = client.send_for::<Place>("Where?").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Output, "{error}");
    assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunTime));
}

/// After a steered message, the answer before it is not the answer.
#[tokio::test]
async fn later_answers_replace_the_value() {
    let stockholm = OSLO.replace("Oslo", "Stockholm");
    let replies = [Reply::new().refuse("I will not."), Reply::text(&*stockholm)];
    for (number, reply) in replies.into_iter().enumerate() {
        let server = strict([Reply::text(OSLO), reply]);
        let mut client = client(manual(&server));
        let steer = client.steer_handle();
        let mut stream = client.send_for::<Place>("The capital of Norway?").stream();
        assert!(stream.next().await.is_some());
        steer.steer("No, of Sweden.").unwrap();
        let answer = stream.finish().await;
        assert_eq!(server.requests().len(), 2);
        match number {
            0 => assert_eq!(answer.unwrap_err().kind(), ErrorKind::Output),
            _ => {
                let answer = answer.unwrap();
                assert_eq!(answer.value.city, "Stockholm");
                assert_eq!(answer.message.unwrap().text(), stockholm);
            }
        }
    }
}

/// A check that panics has failed, and its message is the model's to read.
#[tokio::test]
async fn panicking_checks_are_errors() {
    let server = strict([Reply::text(OSLO), Reply::text(OSLO.replace("null", "[\"Fjord\"]"))]);
    let mut client = client(manual(&server));
    let answer = client.send_for::<Place>("Where?").check(|place| {
        let sight = &place.sights[0];
        if sight.is_empty() { Err("a sight has no name".to_owned()) } else { Ok(()) }
    });
    let answer = answer.await.unwrap();
    assert_eq!((answer.value.city, answer.tries), (oslo().city, 2));
    let words = last_words(&server.requests()[1]);
    assert!(words.contains("checking the value panicked: index out of bounds"), "{words}");
}

#[derive(Deserialize, JsonSchema)]
struct Stay {
    #[schemars(with = "String")]
    #[serde(deserialize_with = "date")]
    from: String,
    #[schemars(with = "String")]
    #[serde(deserialize_with = "date")]
    until: String,
}

/// A type that reads less than its schema allows.
fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.len() == 10 { Ok(text) } else { Err(D::Error::custom("not a date")) }
}

#[tokio::test]
async fn the_words_of_a_type_come_with_their_place() {
    let replies = ["soon", "2026-11-28"]
        .map(|until| Reply::text(json!({ "from": "2026-11-01", "until": until }).to_string()));
    let server = strict(replies);
    let stay = client(manual(&server)).send_for::<Stay>("When?").await.unwrap().value;
    assert_eq!((&*stay.from, &*stay.until), ("2026-11-01", "2026-11-28"));
    let words = last_words(&server.requests()[1]);
    assert!(words.contains("`until`: not a date"), "{words}");
}

#[tokio::test]
async fn usage_of_all_attempts_is_told() {
    let replies = || {
        let server = [Reply::text("Oslo.").usage(100, 10), Reply::text(OSLO).usage(200, 20)];
        auto(&MemoryServer::new(server))
    };
    let mut client = client(replies());
    let sent = client.send_for::<Place>("Where?").await.unwrap();
    let options = replies().build().unwrap();
    let asked = oa_client::query_for::<Place>("Where?", &options).await.unwrap();
    for answer in [sent, asked] {
        assert_eq!((answer.tries, answer.usage.unwrap().total()), (2, Some(220)));
        assert_eq!(answer.turn_usage.total(), Some(330));
    }
}

/// The answer did not fit, but the budget ended the turn.
#[tokio::test]
async fn used_up_budgets_are_named() {
    for (used, tries) in [(100, 1), (60, 2)] {
        let replies = vec![Reply::text("Oslo.").usage(used, 0); tries];
        let server = MemoryServer::new(Script::from(replies).strict());
        let mut client = client(auto(&server).max_run_tokens(100));
        let error = client.send_for::<Place>("Where?").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Output);
        assert_eq!(error.to_string(), "the turn ended before a valid answer: max_run_tokens");
        assert_eq!(error.model_output(), Some("Oslo."));
        assert_eq!(client.finish_reason(), Some(&FinishReason::MaxRunTokens));
        assert_eq!(told(client.history()), ["user: Where?", "assistant: Oslo."]);
        server.verify();
    }
}
