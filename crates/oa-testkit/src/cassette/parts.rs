//! Response bodies as readable JSON, and back, byte for byte.
//!
//! A body is a list of consecutive parts. A part is a string (text), `{"data": X}` (the event `data: X` with
//! its blank line), `{"json": X}` (X as written) or `{"base64": ".."}` (binary data).

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use super::interaction::{RecordedResponse, is_stream};
use crate::chop::Cut;
use oa_redact::base64;

/// Writes the parts of a response body, each a JSON value.
pub(super) fn write(answer: &RecordedResponse) -> Vec<String> {
    if is_stream(&answer.headers) {
        return Cut::Events.pieces(&answer.body).iter().map(|event| written(event)).collect();
    }
    write_bytes(&answer.body)
}

/// Writes the parts of a body that is not an event stream.
pub(super) fn write_bytes(body: &Bytes) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(body) else { return vec![written(body)] };
    let json = text.trim_ascii();
    if !is_json(json) {
        return text.split_inclusive('\n').map(|line| Value::from(line).to_string()).collect();
    }
    // White space around JSON is kept as parts of its own, because the body comes back byte for byte.
    let (before, rest) = text.split_at(text.len() - text.trim_ascii_start().len());
    let after = &rest[json.len()..];
    let around = |text: &str| (!text.is_empty()).then(|| Value::from(text).to_string());
    let json = Some(format!("{{\"json\": {json}}}"));
    [around(before), json, around(after)].into_iter().flatten().collect()
}

/// Parses the bytes of a part.
pub(super) fn read(part: &RawValue) -> Result<Vec<u8>, String> {
    let known = "a part of a body must be a string, or an object with `data`, `json` or `base64`";
    if let Ok(text) = serde_json::from_str::<String>(part.get()) {
        return Ok(text.into());
    }
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_str(part.get()).map_err(|_| known.to_owned())?;
    let mut members = members.into_iter();
    let (Some((name, value)), None) = (members.next(), members.next()) else {
        return Err(known.to_owned());
    };
    match name.as_str() {
        "base64" => {
            let text: Option<String> = serde_json::from_str(value.get()).ok();
            text.and_then(|text| base64::decode(&text)).ok_or_else(|| "not base64".to_owned())
        }
        "data" => Ok(format!("data: {}\n\n", in_one_line(value.get())).into()),
        "json" => Ok(value.get().into()),
        _ => Err(known.to_owned()),
    }
}

fn written(piece: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(piece) else {
        return format!("{{\"base64\": \"{}\"}}", base64::encode(piece));
    };
    let data = text.strip_prefix("data: ").and_then(|text| text.strip_suffix("\n\n"));
    match data.filter(|data| is_json(data)) {
        Some(data) => format!("{{\"data\": {data}}}"),
        None => Value::from(text).to_string(),
    }
}

/// Returns true if a text is exactly an object or list on a single line: further lines would be indented.
fn is_json(text: &str) -> bool {
    text.starts_with(['{', '['])
        && !text.contains(['\n', '\r'])
        && serde_json::from_str::<&RawValue>(text).is_ok_and(|value| value.get() == text)
}

/// Removes line breaks from JSON, which another program may have written into the file.
fn in_one_line(json: &str) -> String {
    if !json.contains(['\n', '\r']) {
        return json.to_owned();
    }
    let (mut in_string, mut escaped) = (false, false);
    let stays = |character: &char| {
        let stays = in_string || !character.is_ascii_whitespace();
        (in_string, escaped) = match character {
            '"' if !escaped => (!in_string, false),
            '\\' => (in_string, in_string && !escaped),
            _ => (in_string, false),
        };
        stays
    };
    json.chars().filter(stays).collect()
}

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    fn answer(kind: &'static str, body: &[u8]) -> RecordedResponse {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let body = body.to_vec().into();
        RecordedResponse { body, borders: None, cut: None, headers, status: http::StatusCode::OK }
    }

    fn back(parts: &[String]) -> Vec<u8> {
        let read = |part: &String| {
            let part: &RawValue = serde_json::from_str(part).expect("JSON");
            read(part).expect("a part")
        };
        parts.iter().flat_map(read).collect()
    }

    #[track_caller]
    fn check(kind: &'static str, body: &[u8], expected: &[&str]) {
        let parts = write(&answer(kind, body));
        assert_eq!(parts, expected);
        assert_eq!(back(&parts), body);
    }

    #[test]
    fn events_are_read_without_escapes() {
        let body = b"data: {\"b\": 1.0,\"a\":\"x\\ny\"}\n\n: ping\n\ndata: [DONE]\n\n";
        let expected =
            [r#"{"data": {"b": 1.0,"a":"x\ny"}}"#, r#"": ping\n\n""#, r#""data: [DONE]\n\n""#];
        check("text/event-stream; charset=utf-8", body, &expected);
    }

    #[test]
    fn unusual_events_are_kept_as_text() {
        let kind = "text/event-stream";
        check(kind, b"data: {}\r\n\r\n", &[r#""data: {}\r\n\r\n""#]);
        check(kind, b"data:{}\n\n", &[r#""data:{}\n\n""#]);
        check(kind, b"data: {\n\n", &[r#""data: {\n\n""#]);
        check(kind, b"data:  {}\n\ndata: 1", &[r#""data:  {}\n\n""#, r#""data: 1""#]);
        check(kind, b"event: x\ndata: {}\n\n", &[r#""event: x\ndata: {}\n\n""#]);
        check(
            kind,
            b"data: \xff\n\ndata: []\n\n",
            &[r#"{"base64": "ZGF0YTog/woK"}"#, r#"{"data": []}"#],
        );
        check(kind, b"", &[]);
    }

    #[test]
    fn other_bodies_are_json_or_lines_or_bytes() {
        check("application/json", b"{\"a\": [1]}", &[r#"{"json": {"a": [1]}}"#]);
        check("application/json", b" {}\n", &[r#"" ""#, r#"{"json": {}}"#, r#""\n""#]);
        check("application/json", b"{\n}", &[r#""{\n""#, r#""}""#]);
        check("application/json", b"3", &[r#""3""#]);
        check("text/html", b"<p>\n</p>", &[r#""<p>\n""#, r#""</p>""#]);
        check("image/png", b"\x89PNG\n", &[r#"{"base64": "iVBORwo="}"#]);
    }

    #[test]
    fn reformatted_files_are_read() {
        let part = "{\"data\": {\n  \"a\": \"x \\\" y\\\\\",\r\n  \"b\": [1, 2]\n}}";
        assert_eq!(back(&[part.to_owned()]), b"data: {\"a\":\"x \\\" y\\\\\",\"b\":[1,2]}\n\n");
    }

    #[test]
    fn other_parts_are_refused() {
        for part in
            ["1", "[]", "{}", r#"{"text": "a"}"#, r#"{"data": 1, "json": 2}"#, r#"{"base64": "a"}"#]
        {
            let part: &RawValue = serde_json::from_str(part).unwrap();
            assert!(read(part).is_err(), "{part}");
        }
    }

    proptest! {
        #[test]
        fn every_body_round_trips(
            body in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..60),
                r#"(data: |[{}\[\]":,a1 \\\n\r]){0,30}"#.prop_map(String::into_bytes),
            ],
            kind in prop_oneof![Just("text/event-stream"), Just("application/json")],
        ) {
            prop_assert_eq!(back(&write(&answer(kind, &body))), body);
        }
    }
}
