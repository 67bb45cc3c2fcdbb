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
    fn server_words_are_never_client_reasons(word in word()) {
        let reason = FinishReason::from_server(&word);
        prop_assert!(!OF_THE_CALLER.contains(&reason), "{word:?} is {reason:?}");
        prop_assert!(!reason.is_limit());
        // Apart from the case of known reasons, a word is kept.
        let kept = if word.is_empty() { "unspecified" } else { &word };
        prop_assert!(reason.as_str().eq_ignore_ascii_case(kept), "{word:?} is {reason:?}");
    }

    #[test]
    fn reason_round_trips(word in word(), is_escaped in any::<bool>()) {
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
fn stored_reasons_are_read_back() {
    for reason in OF_THE_CALLER {
        assert_eq!(FinishReason::from(reason.as_str()), reason);
    }
}

#[test]
fn is_complete_knows_server_spellings() {
    let is_complete = |word: &str| FinishReason::from_server(word).is_complete();
    for word in ["stop", "STOP", "end", "end_turn", "eos_token", "stop_sequence"] {
        assert!(is_complete(word), "{word}");
    }
    for word in ["", "length", "model_length", "content_filter", "tool_calls", "refusal", "error"] {
        assert!(!is_complete(word), "{word}");
    }
    for word in ["length", "MAX_TOKENS", "model_context_window_exceeded", "model_length"] {
        assert!(FinishReason::from_server(word).is_length(), "{word}");
    }
    for word in ["content_filter", "content_filter: RECITATION", "SAFETY", "sensitive", "SPII"] {
        let reason = FinishReason::from_server(word);
        assert!(reason.is_filtered() && !reason.is_complete() && !reason.is_length(), "{word}");
    }
    for word in ["", "stop", "length", "refusal", "content_filtering", "tool_calls"] {
        assert!(!FinishReason::from_server(word).is_filtered(), "{word}");
    }
    for word in ["tool_calls", "TOOL_CALLS", "function_call", "tool_use", "Tool_Use"] {
        let reason = FinishReason::from_server(word);
        assert!(reason.is_tool_calls() && !reason.is_malformed_call(), "{word}");
    }
    for word in ["malformed_function_call", "function_call_filter: MALFORMED_FUNCTION_CALL"] {
        let reason = FinishReason::from_server(word);
        assert!(reason.is_malformed_call() && !reason.is_tool_calls(), "{word}");
    }
    for word in ["", "stop", "tool_calling", "malformed"] {
        let reason = FinishReason::from_server(word);
        assert!(!reason.is_tool_calls() && !reason.is_malformed_call(), "{word}");
    }
    for reason in [FinishReason::Interrupted, FinishReason::MaxRunTime, FinishReason::Stopped] {
        assert!(!reason.is_complete(), "{reason}");
    }
}

/// Of TensorRT-LLM and imp, beside those of the rows (QUIRKS row 106).
#[test]
fn a_server_that_gives_up_says_so() {
    for word in ["cancelled", "Canceled", "timeout", "capacity", "abort", "ERROR", "network_error"]
    {
        assert!(FinishReason::from_server(word).is_failure(), "{word}");
    }
    for word in ["stop", "length", "tool_calls", "end", "", "safety", "cancel_requested"] {
        assert!(!FinishReason::from_server(word).is_failure(), "{word}");
    }
    assert!(!FinishReason::Interrupted.is_failure());
}
