//! Errors as data, and back.

use std::time::Duration;

use oa_chat::{Error, ErrorKind};
use oa_types::ErrorRecord;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;

const KINDS: [&str; 16] = [
    "api",
    "blocked",
    "config",
    "connect",
    "context_overflow",
    "hook",
    "interrupted",
    "invalid_input",
    "limit",
    "max_turns",
    "output",
    "storage",
    "stream",
    "timeout",
    "tool",
    "unavailable",
];

const TIMEOUTS: [&str; 6] = ["connect", "content", "end", "first_token", "idle", "total"];

#[test]
fn errors_become_records() {
    let wait = Duration::from_millis(1_500);
    let record = Error::unavailable("all servers are busy", Some(wait)).to_record();
    let json = serde_json::to_value(&record).unwrap();
    let expected = json!({
        "kind": "unavailable",
        "message": "all servers are busy",
        "retry_after_ms": 1_500,
        "is_retryable": true,
    });
    assert_eq!(json, expected);
    assert_eq!(Error::new(ErrorKind::ContextOverflow, "").to_record().kind, "context_overflow");
    assert_eq!(ErrorKind::MaxTurns.to_string(), "max_turns");
    assert_eq!("max_turns".parse::<ErrorKind>().unwrap(), ErrorKind::MaxTurns);
    let unknown = "MaxTurns".parse::<ErrorKind>().unwrap_err();
    assert_eq!(unknown.to_string(), r#""MaxTurns" is not an error kind"#);
}

#[test]
fn unknown_records_become_errors_too() {
    let mut record = ErrorRecord::new("of_a_later_version", "it failed");
    record.timeout = Some("lunch".to_owned());
    let error = Error::from(record.clone());
    assert_eq!((error.kind(), error.timeout()), (ErrorKind::Stream, None));
    assert_eq!(error.to_string(), "it failed");
    record.status = Some(503);
    assert_eq!(Error::from(record.clone()).kind(), ErrorKind::Api);
    record.status = Some(7);
    assert_eq!(Error::from(record).status(), None);
}

#[test]
fn retry_after_is_rounded_up() {
    for (wait, told) in [(0, 0), (1, 1), (1_000_000, 1), (1_000_001, 2)] {
        let error = Error::unavailable("busy", Some(Duration::from_nanos(wait)));
        assert_eq!(error.to_record().retry_after_ms, Some(told), "{wait}");
    }
    let forever = Error::unavailable("busy", Some(Duration::MAX)).to_record();
    assert_eq!(forever.retry_after_ms, Some(u64::MAX));
}

prop_compose! {
    fn record()(
        (kind, message) in (prop::sample::select(KINDS.to_vec()), ".*"),
        (status, reported_status) in (option::of(100_u16..1_000), option::of(300_u16..600)),
        (code, request_id) in (option::of(".*"), option::of(".*")),
        (retry_after_ms, is_retryable) in any::<(Option<u64>, bool)>(),
        timeout in option::of(prop::sample::select(TIMEOUTS.to_vec())),
        (sizes, received_bytes) in any::<(Option<(Option<u64>, u64)>, Option<u64>)>(),
        said in option::of(".*"),
    ) -> ErrorRecord {
        let mut record = ErrorRecord::new(kind, message);
        (record.status, record.reported_status) = (status, reported_status);
        (record.code, record.request_id) = (code, request_id);
        (record.retry_after_ms, record.is_retryable) = (retry_after_ms, is_retryable);
        record.timeout = timeout.map(str::to_owned);
        record.prompt_tokens = sizes.and_then(|(prompt, _)| prompt);
        record.context_tokens = sizes.map(|(_, context)| context);
        (record.received_bytes, record.model_output) = (received_bytes, said);
        record
    }
}

proptest! {
    #[test]
    fn records_round_trip(record in record()) {
        let error = Error::from(record.clone());
        let json = serde_json::to_string(&error.to_record()).unwrap();
        let again = Error::from(serde_json::from_str::<ErrorRecord>(&json).unwrap());
        // Each method answers the same.
        prop_assert_eq!(again.kind(), error.kind());
        prop_assert_eq!(again.to_string(), error.to_string());
        prop_assert_eq!(again.status(), error.status());
        prop_assert_eq!(again.api_code(), error.api_code());
        prop_assert_eq!(again.request_id(), error.request_id());
        prop_assert_eq!(again.retry_after(), error.retry_after());
        prop_assert_eq!(again.is_retryable(), error.is_retryable());
        prop_assert_eq!(again.timeout(), error.timeout());
        prop_assert_eq!(again.context_sizes(), error.context_sizes());
        prop_assert_eq!(again.context_size(), error.context_size());
        prop_assert_eq!(again.received(), error.received());
        prop_assert_eq!(again.model_output(), error.model_output());
        prop_assert_eq!(again.refuses("tools"), error.refuses("tools"));
        prop_assert_eq!(format!("{again:?}"), format!("{error:?}"));
        // Nothing of the record was lost on the way.
        prop_assert_eq!(error.to_record(), record);
    }
}
