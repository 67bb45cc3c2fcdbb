//! Requests in place of a result, as in version 2026-07-28. The answers arrive with the next request.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{print, questions, respond, say};

/// Strange, but a text like any other.
pub(crate) const STATE: &str = "{\"at\": 1}\u{0}\u{202e} é \\u0041 ";

pub(crate) fn is_one(what: &str) -> bool {
    what.starts_with("round ")
}

fn request((method, params): (&'static str, Value)) -> Value {
    json!({ "method": method, "params": params })
}

fn asks(id: &Value, requests: &Value, state: &Value) {
    let mut result = json!({ "resultType": "input_required" });
    for (name, value) in [("inputRequests", requests), ("requestState", state)] {
        if !value.is_null() {
            result[name] = value.clone();
        }
    }
    respond(id, result);
}

fn progress(params: &Value, step: u32) {
    let params = json!({ "progressToken": params["_meta"]["progressToken"], "progress": step });
    print(
        &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
            .to_string(),
    );
}

pub(crate) fn run(what: &str, id: &Value, params: &Value) {
    let arguments = &params["arguments"];
    let state = params["requestState"].as_str();
    let form = request(questions::form());
    // Says what came with the last request.
    let tell = || {
        let said = json!({ "responses": params.get("inputResponses"), "state": params.get("requestState") });
        say(id, &said.to_string());
    };
    match (what, state) {
        ("round form", None) => asks(id, &json!({ "who": form }), &json!(STATE)),
        ("round url", None) => {
            let params = json!({ "mode": "url", "message": "Sign in", "url": "https://example.org/sign-in" });
            let request = request(("elicitation/create", params));
            asks(id, &json!({ "where": request }), &json!("s"));
        }
        ("round model", None) => {
            asks(id, &json!({ "poem": request(questions::sampling()) }), &json!("s"));
        }
        ("round all", None) => {
            let roots = json!({ "method": "roots/list" });
            let model = request(questions::sampling());
            asks(id, &json!({ "a": form, "b": model, "c": roots }), &json!("s"));
        }
        // Without a state, the answers tell how far it is.
        ("round stateless", _) => match params.get("inputResponses") {
            None => asks(id, &json!({ "first": form }), &Value::Null),
            Some(said) if said.get("first").is_some() => {
                asks(id, &json!({ "second": form }), &Value::Null);
            }
            Some(_) => tell(),
        },
        // A question, then time, then another question.
        ("round thrice", None) => asks(id, &json!({ "first": form }), &json!("1")),
        ("round thrice", Some("1")) => asks(id, &Value::Null, &json!("2")),
        ("round thrice", Some("2")) => {
            // The answers of the first round are not sent again.
            let is_clean = params.get("inputResponses").is_none();
            asks(id, &json!({ "second": form }), &json!(if is_clean { "3" } else { "dirty" }));
        }
        ("round endless", _) => asks(id, &json!({ "again": form }), &json!("s")),
        ("round wait", _) => {
            thread::sleep(Duration::from_millis(arguments["millis"].as_u64().unwrap_or(0)));
            asks(id, &json!({}), &json!("s"));
        }
        ("round many", _) => {
            let many = (0..5).map(|n| (n.to_string(), form.clone()));
            asks(id, &Value::Object(many.collect()), &Value::Null);
        }
        ("round huge", None) => {
            let bytes = arguments["bytes"].as_u64().unwrap_or(0) as usize;
            asks(id, &Value::Null, &json!("x".repeat(bytes)));
        }
        ("round huge", Some(state)) => say(id, &format!("{} bytes", state.len())),
        ("round unknown", _) => {
            let unknown = json!({ "method": "tools/call", "params": {} });
            asks(id, &json!({ "a": form, "b": unknown }), &Value::Null);
        }
        ("round shapeless", _) => asks(id, &json!([form]), &json!("s")),
        ("round shapeless state", _) => asks(id, &json!({}), &json!({ "s": 1 })),
        ("round shapeless form", _) => {
            let shapeless = request(("elicitation/create", json!({ "message": "Who?" })));
            asks(id, &json!({ "a": form, "b": shapeless }), &Value::Null);
        }
        ("round for nothing", _) => asks(id, &Value::Null, &Value::Null),
        // The same question again, by its own id and by one that nobody has.
        ("round twice", None) => {
            asks(id, &json!({ "who": form }), &json!("s"));
            asks(id, &json!({ "who": form }), &json!("other"));
            asks(&json!(999_999), &json!({ "who": form }), &json!("other"));
        }
        ("round and die", None) => {
            asks(id, &json!({ "who": form }), &json!("s"));
            std::process::exit(3);
        }
        ("round and die later", None) => asks(id, &json!({ "who": form }), &json!("s")),
        ("round and die later", Some(_)) => std::process::exit(3),
        ("round progress", None) => {
            progress(params, 1);
            progress(params, 2);
            asks(id, &json!({ "who": form }), &json!("s"));
            progress(params, 9);
        }
        ("round progress", Some(_)) => {
            progress(params, 3);
            say(id, "done");
        }
        ("round and silence", None) => asks(id, &json!({ "who": form }), &json!("s")),
        ("round and silence", Some(_)) => {}
        _ => tell(),
    }
}
