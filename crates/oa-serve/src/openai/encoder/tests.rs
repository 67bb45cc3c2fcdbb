use oa_event_log::EventId;
use oa_types::TextBlock;
use proptest::prelude::*;

use super::*;
use crate::encoder::Encoder;
use crate::run_stream::RunStream;
use crate::tests::sample_turn::{encode, everything, lines, turn};

fn head() -> Head {
    let calls = CallIds("7".to_owned());
    Head { id: "chatcmpl-7".to_owned(), model: "agent".to_owned(), created: 1, calls }
}

/// Returns the text of a turn, with its answers apart, as it is streamed: what was sent cannot be taken back.
fn joined(events: &[ConversationEvent]) -> String {
    let (mut text, mut turn) = (String::new(), TurnText::default());
    for event in events {
        match event {
            ConversationEvent::Agent(AgentEvent::AnswerStart) => turn.begin_answer(),
            ConversationEvent::Agent(AgentEvent::Block(ContentBlock::Text(block))) => {
                turn.push(&mut text, &block.text);
            }
            _ => {}
        }
    }
    text
}

/// Returns the text of a turn without the answers that a hook refused.
fn collected(events: &[ConversationEvent]) -> String {
    let (mut text, mut turn) = (String::new(), TurnText::default());
    for event in events {
        if let ConversationEvent::Agent(event) = event {
            turn.apply(&mut text, event);
        }
    }
    text
}

/// In chunks, too, if the agent has a hook that may refuse them.
#[test]
fn completions_omit_refused_answers() {
    let agent = |event| ConversationEvent::Agent(event);
    let block = |text: &str| agent(AgentEvent::Block(ContentBlock::Text(TextBlock::new(text))));
    let mut whole = Whole::new(head(), false);
    let run = |state| ConversationEvent::Run(RunEvent { run: 7, state, ..RunEvent::default() });
    let events = [
        run(RunState::Started),
        agent(AgentEvent::AnswerStart),
        block("The key is 1234."),
        agent(AgentEvent::AnswerRetry("it contains a key".to_owned())),
        agent(AgentEvent::AnswerStart),
        block("It is secret."),
    ];
    for (number, event) in (1..).zip(events.clone()) {
        assert!(whole.read(View::Event(EventId { run: 7, number }, event)).is_none());
    }
    assert_eq!(whole.content, "It is secret.");

    let mut chunks = RunStream::new(Chunks::new(head(), false, true));
    let chunks = encode(&mut chunks, events.into_iter().chain([run(RunState::Ended)]));
    let delta = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
    assert_eq!(chunks.iter().filter_map(delta).collect::<String>(), "It is secret.");
}

#[test]
fn every_event_is_encoded() {
    insta::assert_snapshot!(lines(&encode(
        &mut RunStream::new(Chunks::new(head(), true, false)),
        everything()
    )));
}

proptest! {
    /// Chunks have one id, one finish reason and the text of the turn; a whole completion says the same.
    #[test]
    fn client_accepts_each_turn(events in turn()) {
        let mut chunks = RunStream::new(Chunks::new(head(), false, false));
        let mut sent = encode(&mut chunks, events.clone());
        prop_assert!(chunks.is_over());
        let last = sent.pop().expect("a turn has an end");
        let failed = last["error"].is_object();
        prop_assert!(failed || last == "[DONE]");
        prop_assert!(!failed || last["error"]["message"].is_string());
        prop_assert_eq!(&sent[0]["choices"][0]["delta"]["role"], "assistant");
        prop_assert!(sent.iter().all(|chunk| chunk["id"] == sent[0]["id"]));
        let reasons = sent.iter().filter(|chunk| !chunk["choices"][0]["finish_reason"].is_null());
        prop_assert_eq!(reasons.count(), usize::from(!failed));
        let deltas = sent.iter().map(|chunk| &chunk["choices"][0]["delta"]);
        let text: String = deltas.filter_map(|delta| delta["content"].as_str()).collect();
        prop_assert_eq!(text, joined(&events));

        let mut whole = Whole::new(head(), false);
        let mut outcome = None;
        for (number, event) in (1..).zip(events.clone()) {
            outcome = outcome.or(whole.read(View::Event(EventId { run: 7, number }, event)));
        }
        match outcome.expect("a turn has an end") {
            Ok(completion) => {
                prop_assert!(!failed);
                let message = &completion["choices"][0]["message"];
                prop_assert_eq!(message["content"].as_str().unwrap_or_default(), collected(&events));
                let reason = sent.iter().find_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
                prop_assert_eq!(completion["choices"][0]["finish_reason"].as_str(), reason);
            }
            Err(_) => prop_assert!(failed),
        }
        prop_assert_eq!(encode(&mut chunks, events), Vec::<Value>::new());
    }
}
