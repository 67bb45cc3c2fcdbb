//! The progress of a server that reads the prompt, as llama.cpp sends it.

use std::time::Duration;

use oa_types::PromptProgress;
use serde_json::json;

#[test]
fn progress_is_an_object_of_numbers() {
    let progress = |total, cached, processed, micros| {
        Some(PromptProgress::new(total, cached, processed, Duration::from_micros(micros)))
    };
    let long = |length: usize| format!(r#"{{"total":1,"{}":0}}"#, "x".repeat(length - 16));
    for (raw, expected) in [
        (
            r#"{"total":100,"cache":20,"processed":60,"time_ms":1500.5}"#,
            progress(100, 20, 60, 1_500_500),
        ),
        (r#"{"processed":7,"time_ms":3,"speed":{"now":[1]}}"#, progress(0, 0, 7, 3_000)),
        ("{}", progress(0, 0, 0, 0)),
        (r#"{"total":4294967295}"#, progress(u32::MAX.into(), 0, 0, 0)),
        (&long(1024), progress(1, 0, 0, 0)),
        (&long(1025), None),
        (r#"{"total":4294967296}"#, None),
        (r#"{"total":-1}"#, None),
        (r#"{"cache":"1"}"#, None),
        (r#"{"processed":null}"#, None),
        (r#"{"time_ms":-1}"#, None),
        (r#"{"time_ms":"1"}"#, None),
        (r#"{"time_ms":1e300}"#, None),
        (r#"{"total":1"#, None),
        ("[1]", None),
        ("null", None),
        ("5", None),
    ] {
        assert_eq!(PromptProgress::from_wire(raw), expected, "{raw}");
    }
}

#[test]
fn times_are_stored_in_whole_milliseconds() {
    let progress = PromptProgress::new(3, 1, 2, Duration::from_micros(1_999));
    let stored = json!({ "total": 3, "cached": 1, "processed": 2, "elapsed_ms": 1 });
    assert_eq!(json!(progress), stored);
    let read: PromptProgress = serde_json::from_value(stored).unwrap();
    assert_eq!(read, PromptProgress::new(3, 1, 2, Duration::from_millis(1)));
}
