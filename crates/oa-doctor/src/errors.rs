//! Probes of the server's error responses.

use oa_chat::RawResponse;
use serde_json::json;

use crate::context::ProbeContext;
use crate::finding::{Finding, Probe, Verdict};

/// A name that no model has.
const NO_MODEL: &str = "no-such-model-0f3a";

pub(crate) async fn unknown_model(cx: &ProbeContext) -> Finding {
    const PROBE: Probe = Probe::UnknownModel;
    let limit = cx.target.token_limit_name();
    let body = json!({
        "model": NO_MODEL,
        "messages": [{ "role": "user", "content": "Hello" }],
        limit: 1,
        "stream": false,
    });
    let reply = match cx.target.post(&body).await {
        Ok(reply) => reply,
        Err(error) => return cx.failed(PROBE, &error),
    };
    if reply.is_success() {
        let seen = "the name is ignored: the loaded model answers";
        return Finding::new(PROBE, Verdict::Ok, seen);
    }
    judged(cx, PROBE, &reply)
}

pub(crate) async fn bad_request(cx: &ProbeContext) -> Finding {
    const PROBE: Probe = Probe::BadRequest;
    let model = &*cx.learned.model;
    let limit = cx.target.token_limit_name();
    let body = json!({ "model": model, "messages": 7, limit: 1, "stream": false });
    let reply = match cx.target.post(&body).await {
        Ok(reply) => reply,
        Err(error) => return cx.failed(PROBE, &error),
    };
    if reply.is_success() {
        let seen = format!("{} for `messages` set to a number", reply.status);
        return Finding::new(PROBE, Verdict::Warn, seen)
            .advise("this server does not report invalid requests");
    }
    judged(cx, PROBE, &reply)
}

fn judged(cx: &ProbeContext, probe: Probe, reply: &RawResponse) -> Finding {
    let status = reply.status;
    let words = cx.target.quotes.quote(&reply.server_message(&cx.target.endpoint));
    if words.is_empty() {
        return Finding::new(probe, Verdict::Warn, format!("{status}, without a message"))
            .advise("check the server's log when something fails");
    }
    let seen = format!("{status}: {words}");
    // It rejects the plain prompt in the same way, so this is not about what is wrong with this request.
    if let Some(Err(error)) = &cx.plain
        && error.status() == Some(status)
        && (matches!(status, 401 | 403) || status >= 500)
    {
        return Finding::new(probe, Verdict::Unknown, seen);
    }
    if status >= 500 {
        return Finding::new(probe, Verdict::Warn, seen)
            .advise("client errors are reported as server errors, so they may be retried");
    }
    Finding::new(probe, Verdict::Ok, seen)
}
