//! Finish reasons, as servers send them.

use oa_types::FinishReason;
use proptest::prelude::*;

/// The reasons that only the client produces.
const OF_THE_CALLER: [FinishReason; 10] = [
    FinishReason::ApprovalPending,
    FinishReason::Interrupted,
    FinishReason::MaxRunCost,
    FinishReason::MaxRunTime,
    FinishReason::MaxRunTokens,
    FinishReason::MaxToolCalls,
    FinishReason::MaxToolIterations,
    FinishReason::RepeatedToolCall,
    FinishReason::Stopped,
    FinishReason::WaitsForResults,
];

fn word() -> impl Strategy<Value = String> {
    let of_the_caller: Vec<_> = OF_THE_CALLER.iter().map(ToString::to_string).collect();
    let of_servers =
        ["", "content_filter", "length", "refusal", "stop", "tool_calls", "unspecified"];
    prop_oneof![
        prop::sample::select(of_the_caller),
        prop::sample::select(of_servers.map(str::to_owned).to_vec()),
        any::<String>(),
        "[a-z_]{0,12}",
    ]
}

proptest! {
    #[test]
    fn no_word_of_a_server_is_a_reason_of_the_callers(word in word()) {
        let reason = FinishReason::from_server(&word);
        prop_assert!(!OF_THE_CALLER.contains(&reason), "{word:?} is {reason:?}");
        prop_assert!(!reason.is_limit());
        let kept = if word.is_empty() { "unspecified" } else { &word };
        prop_assert_eq!(reason.as_str(), kept);
    }

    #[test]
    fn a_reason_is_read_as_it_was_written(word in word(), is_escaped in any::<bool>()) {
        let word = if is_escaped { format!("other:{word}") } else { word };
        for reason in [
            FinishReason::from_server(&word),
            FinishReason::from(&*word),
            FinishReason::Other(word.into()),
        ] {
            let json = serde_json::to_string(&reason).unwrap();
            prop_assert_eq!(serde_json::from_str::<FinishReason>(&json).unwrap(), reason);
        }
    }
}

#[test]
fn a_reason_that_was_stored_is_read_as_the_same() {
    for reason in OF_THE_CALLER {
        assert_eq!(FinishReason::from(reason.as_str()), reason);
    }
}

#[test]
fn an_answer_is_complete_if_the_server_says_so() {
    let is_complete = |word: &str| FinishReason::from_server(word).is_complete();
    for word in ["stop", "end_turn", "eos_token", "stop_sequence"] {
        assert!(is_complete(word), "{word}");
    }
    for word in ["", "length", "model_length", "content_filter", "tool_calls", "refusal", "error"] {
        assert!(!is_complete(word), "{word}");
    }
    for reason in [FinishReason::Interrupted, FinishReason::MaxRunTime, FinishReason::Stopped] {
        assert!(!reason.is_complete(), "{reason}");
    }
}
