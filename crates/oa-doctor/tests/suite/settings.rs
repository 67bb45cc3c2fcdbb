//! Parts of requests that a server rejects.

use insta::assert_snapshot;
use oa_doctor::{Probe, Verdict};
use oa_testkit::Reply;
use serde_json::json;

use crate::servers::{ABOUT_TOOLS, others_are_ok};
use crate::{but, has_tools, only, report, server, verdict};

/// The tools work: only a setting beside them is unknown.
#[tokio::test(start_paused = true)]
async fn rejected_tool_settings_are_named() {
    let why = "deepseek-reasoner does not support this tool_choice";
    let rejects = |name: &'static str, why: &'static str| {
        but(move |request| (!request.json()[name].is_null()).then(|| Reply::error(400, why)))
    };
    let forced = report(rejects("tool_choice", why)).await;
    others_are_ok(&forced.findings, &[Probe::ForcedCalls]);
    assert_eq!((forced.profile.tools, forced.profile.forced_calls), (Some(true), Some(false)));
    assert_snapshot!(forced.finding(Probe::ForcedCalls).unwrap(), @"
    forced calls    warn     `tool_choice` is rejected: the server answered 400 Bad Request:
                             deepseek-reasoner does not support this tool_choice
                             -> do not rely on .tool_choice(..) here: ask for the tool in the prompt
    ");
    let why = "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.";
    let parallel = report(rejects("parallel_tool_calls", why)).await;
    others_are_ok(&parallel.findings, &[Probe::ParallelCalls]);
    assert_eq!(parallel.profile.parallel_calls, Some(true));
    assert_snapshot!(parallel.finding(Probe::ParallelCalls).unwrap(), @r#"
    parallel calls  warn     get_weather({"city":"Paris"}), get_weather({"city":"Rome"}), in 8
                             fragments; `parallel_tool_calls` is rejected: the server answered 400 Bad
                             Request: Unsupported parameter: 'parallel_tool_calls' is not supported with
                             this model.
                             -> do not set .parallel_tool_calls(..) here
    "#);
    // A server that knows neither tools nor their settings lacks tools.
    let why = "Unrecognized request arguments: tools, tool_choice, parallel_tool_calls";
    let tools =
        report(but(move |request| has_tools(request).then(|| Reply::error(400, why)))).await;
    others_are_ok(&tools.findings, &ABOUT_TOOLS);
    assert_eq!(verdict(&tools, Probe::ForcedCalls), Verdict::Fail);
    assert_eq!(tools.profile.tools, Some(false));
}

#[tokio::test(start_paused = true)]
async fn broken_attempts_reject_no_token_limit() {
    let script = server(|request| match request.json()["max_completion_tokens"] == 16 {
        true => Reply::error(429, "Too many requests"),
        false => Reply::text("number ".repeat(2000)).usage(30, 2000),
    });
    assert_snapshot!(only(Probe::TokenLimit, script).await, @"
    token limit     unknown  `max_tokens` is ignored; with `max_completion_tokens`: the server answered
                             429 Too Many Requests: Too many requests
    ");
}

/// Some servers send status 200 before they look at the request.
#[tokio::test(start_paused = true)]
async fn rejections_inside_answers_are_learned() {
    let why = "registry.ollama.ai/library/gemma does not support tools";
    for error in [json!(why), json!({ "message": why, "code": 400 })] {
        let rejection = Reply::new().event(json!({ "error": error })).without_finish();
        let report =
            report(but(move |request| has_tools(request).then(|| rejection.clone()))).await;
        others_are_ok(&report.findings, &ABOUT_TOOLS);
        assert_eq!(report.profile.tools, Some(false));
        let finding = report.finding(Probe::AutoCalls).unwrap();
        assert!(
            finding.advice.as_deref().is_some_and(|advice| advice.contains("\"tools\"")),
            "{finding}"
        );
    }
}
