//! Every format of an error body shows the server's message, code and type.

use std::fs;
use std::path::Path;

use oa_types::wire::ServerError;
use serde_json::{Value, json};

#[test]
fn error_bodies_show_the_server_message() {
    let mut count = 0;
    for folder in ["own", "live"] {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(folder);
        let index = fs::read_to_string(folder.join("errors.json")).unwrap();
        for entry in serde_json::from_str::<Vec<Value>>(&index).unwrap() {
            let file = entry["file"].as_str().unwrap();
            let error = ServerError::from_body(&fs::read(folder.join(file)).unwrap());
            let words = entry["message"].as_str().unwrap_or_default();
            assert!(error.message.contains(words), "{file}: {error}");
            let text = |value: &Value| match value {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            assert_eq!(error.code, text(&entry["code"]), "code of {file}");
            assert_eq!(error.kind, text(&entry["type"]), "type of {file}");
            let overflows = file.contains("context") || file.contains("prompt-progress");
            assert_eq!(error.is_context_overflow(), overflows, "{file}");
            count += 1;
        }
    }
    assert!(count >= 50, "{count} error bodies");
}

#[test]
fn messages_beside_an_error_member_are_shown() {
    for (body, message, code) in [
        (
            r#"{"statusCode":400,"error":"Bad Request","message":"no stream_options here"}"#,
            "Bad Request: no stream_options here",
            None,
        ),
        (r#"{"error":{"code":429},"message":"Slow down"}"#, "Slow down", Some("429")),
        (r#"{"error":{"code":429}}"#, "429", Some("429")),
        (r#"{"error":"too long","detail":[{"msg":"51 > 50"}]}"#, "too long: 51 > 50", None),
        (r#"{"error":"Not Found","message":"","path":"/v2"}"#, "Not Found", None),
        (r#"{"error":"busy","message":"busy"}"#, "busy", None),
        (r#"{"error":"busy","message":"all slots are busy"}"#, "all slots are busy", None),
        (r#"{"error":{"message":"inner"},"message":"outer"}"#, "inner", None),
        (r#"{"message":"alone"}"#, "alone", None),
    ] {
        let error = ServerError::from_body(body.as_bytes());
        assert_eq!((&*error.message, error.code.as_deref()), (message, code), "{body}");
    }
}

/// Of OpenRouter and Vercel's gateway (QUIRKS row 151).
#[test]
fn the_reason_behind_a_gateway_is_shown() {
    let raw = |raw: Value| json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}});
    let too_long = "This model's maximum context length is 40960 tokens. However, you requested 50000 tokens \
                    (49000 in the messages, 1000 in the completion)";
    let openai = json!({"error": {"message": too_long, "code": "context_length_exceeded"}});
    for body in [
        raw(openai.clone()),
        raw(openai.to_string().into()),
        raw(format!("data: {openai}\n\n").into()),
        raw(too_long.into()),
        json!({"error": {
            "code": "error", "message": "Stream error occurred", "cause": {"message": "[invalid_union]"},
            "value": {"error_type": "validation_error", "error_message": openai.to_string()},
        }}),
    ] {
        for error in [
            ServerError::from_body(body.to_string().as_bytes()),
            ServerError::from_value(body["error"].clone()),
        ] {
            assert!(
                error.message.ends_with(&format!(" error: {too_long}"))
                    || error.message.ends_with(&format!(" occurred: {too_long}")),
                "{error}"
            );
            assert!(error.is_context_overflow(), "{error}");
            assert_eq!(error.context_sizes(), Some((49_000, 40_960)));
        }
    }
    let error = |body: Value| ServerError::from_value(body);
    assert_eq!(error(raw(openai)).kind.as_deref(), Some("context_length_exceeded"));
    assert_eq!(error(raw(json!({"detail": "no"}))).message, "Provider returned error: no");
    // Nothing new, nothing at all, or too much.
    let long = "x".repeat(20_000);
    for nothing in [json!("Provider returned error"), json!(""), json!(null), json!(5), json!(long)]
    {
        assert_eq!(error(raw(nothing)).message, "Provider returned error");
    }
    // However deep.
    let mut body = json!({"error": {"message": "end"}});
    for _ in 0..100 {
        body = raw(body);
    }
    assert!(error(body).message.ends_with("error: end"));
}

#[test]
fn only_tags_are_removed_from_plain_text() {
    for (body, message) in [
        ("<html><h1>502 Bad Gateway</h1><p>nginx", "502 Bad Gateway nginx"),
        ("<!DOCTYPE html><?x?>a<script>b</script>c<style>d", "a c"),
        ("top_p must be < 1, not 2", "top_p must be < 1, not 2"),
        ("1 <2> 3 <p", "1 <2> 3"),
        ("unknown token <|im_start|> in the prompt", "unknown token <|im_start|> in the prompt"),
    ] {
        assert_eq!(ServerError::from_body(body.as_bytes()).message, message);
    }
    let body = "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 200 `max_new_tokens`";
    let error = ServerError::from_body(body.as_bytes());
    assert_eq!((error.is_context_overflow(), error.context_sizes()), (true, Some((4000, 4096))));
}

#[test]
fn a_size_of_zero_is_no_size() {
    let body = br#"{"error":{"type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":0}}"#;
    let error = ServerError::from_body(body);
    assert!(error.is_context_overflow());
    assert_eq!((error.context_sizes(), error.context_size()), (None, None));
}

/// As a value, such a body takes a hundred times its length.
#[test]
fn bodies_of_many_values_are_text() {
    let values = |count: usize| vec![r#"{"":"[,"}"#; count].join(",");
    let body =
        |values: &str| format!(r#"{{"error":{{"message":"out of memory","of":[{values}]}}}}"#);
    let error = ServerError::from_body(body(&values(20_000)).as_bytes());
    assert_eq!((&*error.message, error.message_limit()), ("out of memory", 2_000));
    let many = body(&values(30_000));
    for body in [many.clone(), format!(": \"\ndata: {many}\n\n")] {
        let error = ServerError::from_body(body.as_bytes());
        assert!(error.message.contains("out of memory") && error.raw.is_null());
        assert_eq!((error.message_limit(), error.code), (200, None));
    }
}
