//! Errors as data.

use insta::assert_snapshot;
use oa_types::ErrorRecord;
use proptest::prelude::*;

#[test]
fn only_known_fields_are_written() {
    let mut record = ErrorRecord::new("context_overflow", "the prompt is too long");
    assert_snapshot!(json(&record), @r#"{"kind":"context_overflow","message":"the prompt is too long"}"#);
    record.status = Some(400);
    record.code = Some("exceed_context_size_error".to_owned());
    record.request_id = Some("req_1".to_owned());
    record.retry_after_ms = Some(1_500);
    record.is_retryable = true;
    record.timeout = Some("idle".to_owned());
    (record.prompt_tokens, record.context_tokens) = (Some(5_000), Some(4_096));
    record.received_bytes = Some(0);
    record.model_output = Some("Hm.".to_owned());
    record.reported_status = Some(413);
    assert_snapshot!(json(&record), @r#"{"kind":"context_overflow","message":"the prompt is too long","status":400,"reported_status":413,"code":"exceed_context_size_error","request_id":"req_1","retry_after_ms":1500,"is_retryable":true,"timeout":"idle","prompt_tokens":5000,"context_tokens":4096,"received_bytes":0,"model_output":"Hm."}"#);
}

#[test]
fn unknown_members_are_ignored() {
    let json = r#"{"kind":"later","message":"x","since":3}"#;
    assert_eq!(serde_json::from_str::<ErrorRecord>(json).unwrap(), ErrorRecord::new("later", "x"));
    serde_json::from_str::<ErrorRecord>(r#"{"kind":"later"}"#).unwrap_err();
}

fn json(record: &ErrorRecord) -> String {
    serde_json::to_string(record).expect("a record is JSON")
}

proptest! {
    #[test]
    fn record_round_trips(
        words in (any::<String>(), any::<String>(), any::<Option<String>>(), any::<Option<String>>()),
        numbers in (any::<Option<u16>>(), any::<Option<u64>>(), any::<Option<u64>>(), any::<bool>()),
    ) {
        let mut record = ErrorRecord::new(words.0, words.1);
        (record.code, record.model_output) = (words.2, words.3);
        (record.status, record.retry_after_ms) = (numbers.0, numbers.1);
        (record.context_tokens, record.is_retryable) = (numbers.2, numbers.3);
        prop_assert_eq!(&serde_json::from_str::<ErrorRecord>(&json(&record)).unwrap(), &record);
        prop_assert_eq!(record.to_string(), record.message);
    }
}
