//! Answers that are made of deltas.

use futures_util::stream;
use oa_chat::{AnswerDelta, AnswerStream, Error, ErrorKind};
use oa_types::{AssistantMessage, ContentBlock, FinishReason, TextBlock, Usage};
use proptest::prelude::*;
use serde_json::json;

fn answer(deltas: impl IntoIterator<Item = AnswerDelta, IntoIter: Send + 'static>) -> AnswerStream {
    AnswerStream::from_deltas(stream::iter(deltas.into_iter().map(Ok::<_, Error>)))
}

fn call(number: usize, id: Option<&str>, name: &str, arguments: &str) -> [AnswerDelta; 2] {
    let (id, name) = (id.map(str::to_owned), Some(name.to_owned()));
    let start: AnswerDelta = serde_json::from_value(json!({
        "type": "call_start", "call": number, "id": id, "name": name,
    }))
    .expect("it is a delta");
    let rest = json!({ "type": "call_arguments", "call": number, "fragment": arguments });
    [start, serde_json::from_value(rest).expect("it is a delta")]
}

fn delta(value: serde_json::Value) -> AnswerDelta {
    serde_json::from_value(value).expect("it is a delta")
}

#[tokio::test]
async fn missing_ids_and_finish_reason_are_filled() {
    let [start, rest] = call(0, None, "look", "{\"at\": 7}");
    let usage =
        delta(json!({"type": "usage", "usage": {"prompt_tokens": 3, "completion_tokens": 4}}));
    let message =
        answer([AnswerDelta::text("I look."), start, rest, usage]).message().await.unwrap();
    assert_eq!(message.finish_reason, FinishReason::ToolCalls);
    assert_eq!(message.usage.and_then(|usage| usage.prompt_tokens), Some(3));
    let [ContentBlock::Text(text), ContentBlock::ToolUse(call)] = &message.content[..] else {
        panic!("{message:?}")
    };
    assert_eq!((&*text.text, &*call.name, &call.input), ("I look.", "look", &json!({"at": 7})));
    assert!(!call.id.is_empty(), "an id is made up");
}

#[tokio::test]
async fn errors_end_the_answer_unchanged() {
    let broken = Error::new(ErrorKind::Limit, "the model is out of breath");
    let deltas = vec![Ok(AnswerDelta::text("Wait")), Err(broken)];
    let mut answer = AnswerStream::from_deltas(stream::iter(deltas));
    assert_eq!(answer.next_delta().await.unwrap().unwrap(), AnswerDelta::text("Wait"));
    let error = answer.next_delta().await.unwrap().unwrap_err();
    assert_eq!(
        (error.kind(), &*error.to_string()),
        (ErrorKind::Limit, "the model is out of breath")
    );
    assert!(answer.next_delta().await.is_none());
}

/// Only an error before the first delta may mean that nothing listens.
#[tokio::test]
async fn kind_of_foreign_error_depends_on_deltas() {
    let broken = || Err(std::io::Error::other("out of paper"));
    for (deltas, kind, is_retryable) in [
        (vec![broken()], ErrorKind::Connect, true),
        (vec![Ok(AnswerDelta::text("Wait")), broken()], ErrorKind::Stream, false),
    ] {
        let error = AnswerStream::from_deltas(stream::iter(deltas)).message().await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (kind, is_retryable), "{error}");
        assert!(error.to_string().ends_with("out of paper"), "{error}");
        let cause = error.cause().and_then(|cause| cause.downcast_ref::<std::io::Error>());
        assert_eq!(cause.map(ToString::to_string).as_deref(), Some("out of paper"));
    }
}

#[tokio::test]
async fn no_deltas_make_an_empty_answer() {
    let message = answer([]).message().await.unwrap();
    assert_eq!((message.content, message.finish_reason), (Vec::new(), FinishReason::Stop));
}

#[tokio::test]
async fn end_message_is_authoritative() {
    let mut last = AssistantMessage::new(vec![TextBlock::new("All of it.").into()]);
    (last.model, last.finish_reason) = (Some("tiny".to_owned()), FinishReason::Stop);
    let end = AnswerDelta::End { message: Box::new(last) };
    let message = answer([AnswerDelta::text("All"), end]).message().await.unwrap();
    assert_eq!((&*message.text(), message.model.as_deref()), ("All of it.", Some("tiny")));
}

/// A server may send all of its text again and again, but a delta is more text, whatever it begins with.
#[tokio::test]
async fn deltas_may_repeat_the_text_before_them() {
    let pieces = ["Ha ha, ", "Ha ha, Ha ha, ", "Ha ha, Ha ha, ho, ", "Ha ha, Ha ha, ho, hey."];
    let thinking = |text| delta(json!({ "type": "thinking", "text": text }));
    let deltas = pieces.map(thinking).into_iter().chain(pieces.map(AnswerDelta::text));
    let message = answer(deltas.collect::<Vec<_>>()).message().await.unwrap();
    let [ContentBlock::Thinking(thinking), ContentBlock::Text(text)] = &message.content[..] else {
        panic!("{message:?}")
    };
    assert_eq!((&*thinking.thinking, &*text.text), (&*pieces.concat(), &*pieces.concat()));
}

proptest! {
    /// A recording of an answer, played again, is the same answer: its deltas and its message.
    #[test]
    fn recorded_deltas_replay_the_answer(
        pieces in prop::collection::vec((0..4_u8, "[a-z<>\u{e4}\n\"]{1,12}"), 0..12),
        finish in prop::sample::select(vec!["stop", "length", "tool_calls", "content_filter"]),
        tokens in prop::option::of(0..10_000_u64),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut deltas = Vec::new();
        for (place, (kind, text)) in pieces.iter().enumerate() {
            match kind {
                0 => deltas.push(delta(json!({"type": "text", "text": text}))),
                1 => deltas.push(delta(json!({"type": "thinking", "text": text}))),
                2 => deltas.push(delta(json!({"type": "refusal", "text": text}))),
                _ => {
                    let calls = deltas.iter().filter(|it| matches!(it, AnswerDelta::CallStart { .. }));
                    let number = calls.count();
                    let id = format!("call_{place}");
                    deltas.extend(call(number, Some(&id), "look", &json!({"text": text}).to_string()));
                }
            }
        }
        if let Some(tokens) = tokens {
            let mut usage = Usage::default();
            usage.completion_tokens = Some(tokens);
            deltas.push(delta(json!({"type": "usage", "usage": usage})));
        }
        deltas.push(delta(json!({"type": "finish", "reason": finish})));
        let record = |deltas: Vec<AnswerDelta>| {
            runtime.block_on(async {
                let (mut answer, mut recording) = (answer(deltas), Vec::new());
                while let Some(delta) = answer.next_delta().await {
                    recording.push(delta.expect("nothing breaks"));
                }
                recording
            })
        };
        let first = record(deltas);
        let stored = serde_json::to_string(&first).unwrap();
        let second = record(serde_json::from_str(&stored).unwrap());
        prop_assert_eq!(first, second);
    }
}

#[tokio::test]
async fn an_unspecified_reason_stays_unspecified() {
    let reason = FinishReason::Unspecified;
    let finish = delta(json!({ "type": "finish", "reason": reason }));
    let message = answer([AnswerDelta::text("Half"), finish]).message().await.unwrap();
    assert_eq!((&*message.text(), message.finish_reason), ("Half", reason));
}
