//! How the server says that something is wrong.

use serde_json::json;

use super::chart::Chart;
use super::finding::{Finding, Probe, Verdict};
use super::patient::Reply;

/// No model is called so.
const NO_MODEL: &str = "no-such-model-0f3a";

pub(super) async fn unknown_model(chart: &Chart) -> Finding {
    const PROBE: Probe = Probe::UnknownModel;
    let limit = chart.patient.token_limit_name();
    let body = json!({
        "model": NO_MODEL,
        "messages": [{ "role": "user", "content": "Hello" }],
        limit: 1,
        "stream": false,
    });
    let reply = match chart.patient.post(&body).await {
        Ok(reply) => reply,
        Err(error) => return chart.failed(PROBE, &error),
    };
    if reply.status.is_success() {
        let seen = "the name is not looked at: what is loaded answers";
        return Finding::new(PROBE, Verdict::Ok, seen);
    }
    judged(chart, PROBE, &reply)
}

pub(super) async fn bad_request(chart: &Chart) -> Finding {
    const PROBE: Probe = Probe::BadRequest;
    let model = &*chart.learned.model;
    let limit = chart.patient.token_limit_name();
    let body = json!({ "model": model, "messages": 7, limit: 1, "stream": false });
    let reply = match chart.patient.post(&body).await {
        Ok(reply) => reply,
        Err(error) => return chart.failed(PROBE, &error),
    };
    if reply.status.is_success() {
        let seen = format!("{} to messages that are a number", reply.status.as_u16());
        return Finding::new(PROBE, Verdict::Warn, seen)
            .advise("mistakes in requests will not show here");
    }
    judged(chart, PROBE, &reply)
}

fn judged(chart: &Chart, probe: Probe, reply: &Reply) -> Finding {
    let status = reply.status.as_u16();
    let words = reply.complaint(&chart.patient.quotes);
    if words.is_empty() {
        return Finding::new(probe, Verdict::Warn, format!("{status}, without a word"))
            .advise("look into the server's log when something fails");
    }
    let seen = format!("{status}: {words}");
    if status >= 500 {
        return Finding::new(probe, Verdict::Warn, seen)
            .advise("a mistake is said to be the server's: it may be tried again, in vain");
    }
    Finding::new(probe, Verdict::Ok, seen)
}
