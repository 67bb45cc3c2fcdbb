use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::conversation::View;
use crate::encoder::Encoder;
use crate::run_stream::RunStream;
use crate::tests::sample_turn::{encode, everything, lines, text_of, turn};

fn stream() -> RunStream<MessageWriter> {
    RunStream::new(MessageWriter::new("msg-7".to_owned(), []))
}

#[test]
fn every_event_is_encoded() {
    insta::assert_snapshot!(lines(&encode(&mut stream(), everything())));
}

proptest! {
    /// A front end never sees a part that stays open, an output without its call or a second one, or anything behind the
    /// end. A tool of its own gets only calls that wait for its result.
    #[test]
    fn client_accepts_each_turn(events in turn(), is_external in any::<bool>()) {
        let external = is_external.then(|| "add".to_owned());
        let mut stream = stream().external(Arc::new(external.into_iter().collect()));
        let mut chunks = encode(&mut stream, events.clone());
        prop_assert!(stream.is_over());
        let last = chunks.pop().expect("a turn has an end");
        let failed = last["type"] == "error";
        prop_assert!(failed || last == "[DONE]");
        prop_assert_eq!(&chunks[0]["type"], "start");

        let (mut open, mut seen, mut outputs, mut inputs) =
            (HashSet::new(), HashSet::new(), HashSet::new(), HashSet::new());
        let (mut text, mut begun, mut shown) = (String::new(), HashSet::new(), HashSet::new());
        for chunk in &chunks[1..] {
            let kind = chunk["type"].as_str().expect("each chunk has a type");
            let id = chunk["id"].as_str().unwrap_or_default();
            let call = chunk["toolCallId"].as_str().unwrap_or_default();
            match kind {
                "text-start" | "reasoning-start" => {
                    prop_assert!(open.is_empty() && seen.insert(id));
                    open.insert(id);
                }
                "text-delta" | "reasoning-delta" => {
                    prop_assert!(open.contains(id));
                    if kind == "text-delta" {
                        text.push_str(chunk["delta"].as_str().expect("deltas are text"));
                    }
                }
                "text-end" | "reasoning-end" => prop_assert!(open.remove(id)),
                "tool-input-available" => {
                    inputs.insert(call);
                }
                "tool-input-error" => prop_assert!(outputs.insert(call)),
                "tool-output-available" | "tool-output-error" | "tool-output-denied" => {
                    let has_input = if is_external { shown.contains(call) } else { inputs.contains(call) };
                    prop_assert!(has_input && outputs.insert(call));
                }
                "tool-approval-request" if is_external => {
                    prop_assert!(shown.contains(call) && !inputs.contains(call));
                }
                "tool-approval-request" => prop_assert!(inputs.contains(call)),
                "tool-input-start" => prop_assert!(begun.insert(call)),
                "tool-input-delta" => {
                    prop_assert!(begun.contains(call));
                    shown.insert(call);
                }
                "start-step" | "finish-step" => prop_assert!(open.is_empty()),
                "finish" | "abort" => {}
                "data-agent" => prop_assert!(is_external || inputs.contains(id)),
                "data-agent-event" => prop_assert_eq!(&chunk["transient"], true),
                other => prop_assert!(false, "{}", other),
            }
        }
        prop_assert!(open.is_empty() && (!is_external || inputs.is_disjoint(&outputs)));
        prop_assert_eq!(text, text_of(&events));
        let steps = |word| chunks.iter().filter(|chunk| chunk["type"] == word).count();
        prop_assert!(failed || steps("start-step") == steps("finish-step"));
        // A client must never find a last step of finished calls alone: it would send the message again.
        if let Some(step) = chunks.iter().rposition(|chunk| chunk["type"] == "start-step")
            && let Some(reason) = chunks.last().and_then(|chunk| chunk["finishReason"].as_str())
            && reason != "tool-calls"
        {
            // Versions 5 and 6 know these reasons alone, and reject a stream with any other.
            prop_assert!(["stop", "length", "content-filter", "other"].contains(&reason), "{}", reason);
            let calls: Vec<_> =
                chunks[step..].iter().filter_map(|chunk| chunk["toolCallId"].as_str()).collect();
            prop_assert!(calls.is_empty() || calls.iter().any(|call| !outputs.contains(call)));
        }
        // Nothing follows the end.
        prop_assert_eq!(encode(&mut stream, events), Vec::<Value>::new());
    }
}

/// A stream that ends cleanly would pass for a complete answer.
#[test]
fn gap_fails_the_stream() {
    let (mut stream, mut out) = (stream(), Vec::new());
    stream.write(View::Gap, &mut out);
    assert!(stream.is_over() && String::from_utf8_lossy(&out).contains("\"type\":\"error\""));
}
