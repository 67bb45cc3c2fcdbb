//! Errors that servers report inside a stream with status 200, in all formats.

use oa_client::ErrorKind;
use oa_testkit::{MemoryServer, Reply};
use serde_json::json;

use suite::talk::{client, manual, read_on};

/// Returns the text received from a reply with this body, the kind of its error, and the message.
async fn outcome(body: &str) -> (Vec<String>, Option<(ErrorKind, String)>) {
    let server = MemoryServer::new(Reply::sse(body.to_owned()));
    let mut client = client(manual(&server));
    client.send("Go.").await.expect("the prompt is taken");
    let (seen, error) = read_on(&mut client).await;
    (seen, error.map(|error| (error.kind(), error.to_string())))
}

/// The text that arrived before the error is delivered first.
#[tokio::test]
async fn every_format_is_an_api_error() {
    let begin = json!({ "choices": [{ "index": 0, "delta": { "content": "So far" } }] });
    let words = r#"{"code":500,"message":"the mill stands still"}"#;
    let spellings = [
        format!("error: {words}\n\ndata: [DONE]\n\n"),
        format!("error:{words}\n\n"),
        format!("event: error\ndata: {words}\n\n"),
        "event: error\ndata: the mill stands still\n\n".to_owned(),
        r#"data: {"object":"error","message":"the mill stands still","code":500}"#.to_owned()
            + "\n\n",
        r#"data: {"text":"the mill stands still","error_code":50001}"#.to_owned() + "\n\n",
        format!(
            r#"data: {{"choices":[{{"delta":{{}},"finish_reason":"error","error":{words}}}]}}"#
        ) + "\n\ndata: [DONE]\n\n",
        r#"data: {"choices":[{"delta":{},"finish_reason":"error"}]}"#.to_owned()
            + "\n\ndata: {\"error\":\"the mill stands still\"}\n\n",
    ];
    for spelling in spellings {
        let (seen, error) = outcome(&format!("data: {begin}\n\n{spelling}")).await;
        let (kind, words) = error.unwrap_or_else(|| panic!("no error: {spelling}"));
        assert_eq!((seen, kind), (vec!["So far".to_owned()], ErrorKind::Api), "{spelling}");
        assert!(words.contains("the mill stands still"), "{words}: {spelling}");
    }
}

#[tokio::test]
async fn finish_reason_error_is_an_error() {
    let body = r#"data: {"choices":[{"delta":{"content":"So far"},"finish_reason":"error"}]}"#;
    for end in ["\n\n", "\n\ndata: [DONE]\n\n"] {
        let (seen, error) = outcome(&format!("{body}{end}")).await;
        let (kind, words) = error.expect("an error");
        assert_eq!((seen, kind), (vec!["So far".to_owned()], ErrorKind::Api));
        assert!(words.contains("finish reason"), "{words}");
    }
}

#[tokio::test]
async fn overflow_is_recognized_in_an_error_field() {
    let body = include_str!("../../../../tests/fixtures/own/llamacpp-error-field-overflow.sse");
    let (seen, error) = outcome(body).await;
    let (kind, words) = error.expect("an error");
    assert_eq!((seen.len(), kind), (0, ErrorKind::ContextOverflow), "{words}");
}

#[tokio::test]
async fn similar_field_names_are_ignored() {
    let words =
        json!({ "choices": [{ "delta": { "content": "Well." }, "finish_reason": "stop" }] });
    let body = format!("errors: none\n\nerror\n\nerror:\n\nerror_rate: 0.1\n\ndata: {words}\n\n");
    assert_eq!(outcome(&body).await, (vec!["Well.".to_owned()], None));
}
