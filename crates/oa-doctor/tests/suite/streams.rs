//! Servers that do not stream: nothing, or no calls.

use insta::assert_snapshot;
use oa_doctor::{Probe, Verdict};
use oa_testkit::Reply;
use serde_json::json;

use crate::servers::others_are_ok;
use crate::{but, has_tools, is_plain, only, report};

#[tokio::test(start_paused = true)]
async fn calls_only_without_streaming_fail() {
    let script = but(|request| {
        let is_streamed = request.json()["stream"] == true;
        (has_tools(request) && is_streamed).then(|| Reply::text("Let me see."))
    });
    assert_snapshot!(only(Probe::ForcedCalls, script).await, @r#"
    forced calls    fail     calls arrive only without streaming
                             -> ask for answers in one piece: .extra_body(json!({"stream": false}))
    "#);
}

#[tokio::test(start_paused = true)]
async fn documents_instead_of_streams_warn() {
    let document = json!({ "choices": [{ "message": { "content": "one" } }], "usage":
        { "prompt_tokens": 3, "completion_tokens": 1 } });
    let report =
        report(but(move |request| is_plain(request).then(|| Reply::json(200, document.clone()))))
            .await;
    others_are_ok(&report.findings, &[Probe::Streaming]);
    assert_snapshot!(report.finding(Probe::Streaming).unwrap(), @"
    streaming       warn     one JSON document instead of a stream
                             -> text will arrive all at once: use a server or gateway that streams
    ");
    assert_snapshot!(report.finding(Probe::Usage).unwrap(), @"usage           ok       in the document: 3 tokens sent, 1 received");
}

#[tokio::test(start_paused = true)]
async fn refusals_to_stream_are_no_refusal_of_tools() {
    let script = but(|request| {
        let is_streamed = request.json()["stream"] == true;
        let words = "This model doesn't support tool use in streaming mode.";
        (has_tools(request) && is_streamed).then(|| Reply::error(400, words))
    });
    let finding = only(Probe::AutoCalls, script).await;
    assert_eq!(finding.verdict, Verdict::Ok);
    assert_snapshot!(finding, @r#"auto calls      ok       get_weather({"city":"Paris"}), not streamed"#);

    let script = but(|request| {
        let words = "Your organization must be verified to stream this model.";
        (request.json()["stream"] == true).then(|| Reply::error(400, words))
    });
    let report = report(script).await;
    others_are_ok(&report.findings, &[Probe::Streaming]);
    assert_snapshot!(report.finding(Probe::Streaming).unwrap(), @"
    streaming       warn     only in one piece: the server answered 400 Bad Request: Your organization
                             must be verified to stream this model.
                             -> text will arrive all at once: use a server or gateway that streams
    ");
}
