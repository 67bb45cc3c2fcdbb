//! Errors that pass, by status and by what they say.

use oa_types::wire::ServerError;

fn passes(status: Option<u16>, body: &str) -> bool {
    ServerError::from_body(body.as_bytes()).is_transient(status)
}

#[test]
fn statuses_of_servers_pass() {
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
        assert!(passes(Some(status), "busy") && passes(Some(status), ""), "{status}");
    }
    // Groq's limit for a minute, which one request exceeds.
    let tokens =
        r#"{"error":{"message":"Request too large: Limit 6000","code":"rate_limit_exceeded"}}"#;
    assert!(!passes(Some(413), tokens));
    for status in [301, 400, 401, 402, 403, 404, 413, 422, 501, 505, 522] {
        assert!(!passes(Some(status), "busy") && !passes(Some(status), ""), "{status}");
    }
    // QUIRKS row 103.
    for message in [
        "jinja: roles must alternate",
        "Failed to parse tools",
        "tools are not supported",
        "audio input is not supported",
    ] {
        assert!(!passes(Some(500), message), "{message}");
    }
}

/// Gateways report the failures of servers behind them as mistakes of the client (QUIRKS row 145).
#[test]
fn failures_behind_a_gateway_pass() {
    for (status, body) in [
        // Cloudflare's gateway (cloudflare/ai #436).
        (
            400,
            r#"{"success":false,"result":[],"messages":[],"error":[{"code":2005,"message":"Failed to get response from provider"}]}"#,
        ),
        // OpenCode Go (NousResearch/hermes-agent #117869).
        (
            403,
            r#"{"error":{"type":"server_error","code":"server_error","message":"Upstream request failed: [server_error] Upstream response was not valid JSON"}}"#,
        ),
        // Ollama (ollama/ollama #16082).
        (
            400,
            r#"{"error":{"message":"unexpected EOF","type":"invalid_request_error","code":null}}"#,
        ),
        (403, r#"{"error":{"message":"Slow down.","code":"rate_limit_exceeded"}}"#),
        (400, r#"{"error":{"message":"The service is busy.","status":"UNAVAILABLE"}}"#),
    ] {
        assert!(passes(Some(status), body), "{body}");
        let lasting = [401, 402, 404, 413, 422].map(|status| passes(Some(status), body));
        assert_eq!(lasting, [false; 5], "{body}");
    }
    for body in [
        r#"{"error":{"message":"messages[1].content: unexpected EOF at line 1","type":"invalid_request_error"}}"#,
        r#"{"error":{"message":"jinja: no such filter","type":"server_error"}}"#,
        r#"{"error":{"message":"model not found","type":"upstream_error"}}"#,
        r#"{"error":{"message":"no","type":"server_error"}}"#,
        r#"{"error":{"message":"Upstream request failed: [invalid_request_error] messages[4]: no name"}}"#,
    ] {
        assert!(!passes(Some(400), body), "{body}");
    }
}

/// Inside an answer there is no status but the one in the error (QUIRKS row 144).
#[test]
fn overloads_inside_an_answer_pass() {
    for body in [
        // OpenRouter (tontinton/maki #980, anomalyco/opencode #22448).
        r#"{"choices":[],"error":{"code":429,"message":"Provider returned error","metadata":{"error_type":"rate_limit_exceeded"}}}"#,
        r#"{"error":{"code":502,"message":"Network connection lost."}}"#,
        r#"{"error":{"message":"Network connection lost.","metadata":{"error_type":"provider_unavailable"}}}"#,
        // new-api (QuantumNous/new-api #6643).
        r#"{"error":{"message":"rate limited","code":"rate_limit_exceeded"}}"#,
        // OpenAI, Anthropic behind gateways (kirill-markin/expense-budget-tracker #279, QwenLM/qwen-code #11216).
        r#"{"error":{"type":"service_unavailable_error","code":"server_is_overloaded","message":"Busy."}}"#,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        r#"{"error":{"message":"Too many requests, please wait before trying again."}}"#,
        r#"{"error":"Our servers are currently overloaded. Please try again later."}"#,
        r#"{"error":"an error was encountered while running the model: unexpected EOF"}"#,
    ] {
        assert!(passes(None, body), "{body}");
    }
    for body in [
        r#"{"error":"out of memory"}"#,
        r#"{"error":{"code":500,"message":"backend went away","type":"server_error"}}"#,
        r#"{"error":{"message":"CUDA error","type":"server_error"}}"#,
        r#"{"error":{"code":400,"message":"Provider returned error"}}"#,
        r#"{"error":{"code":402,"message":"Too many requests for your credits."}}"#,
        r#"{"error":{"code":500,"message":"jinja: roles must alternate","type":"server_error"}}"#,
        r#"{"error":{"code":"content_filter","message":"No."}}"#,
    ] {
        assert!(!passes(None, body), "{body}");
    }
}
