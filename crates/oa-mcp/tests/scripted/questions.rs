//! Requests to the client: each tool call sends one and returns the answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Lines, print, say};

/// The number of calls that may require pages.
static CALLS: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn is_one(what: &str) -> bool {
    what.starts_with("ask ")
}

pub(crate) fn run(what: &str, id: &Value, lines: &mut Lines) {
    match what {
        "ask form" => say(id, &ask(&form(), lines).to_string()),
        "ask url" => {
            let params = json!({ "mode": "url", "message": "Sign in", "url": "https://example.org/sign-in", "elicitationId": "e" });
            say(id, &ask(&("elicitation/create", params), lines).to_string());
        }
        "ask model" => say(id, &ask(&sampling(), lines).to_string()),
        "ask roots" => say(id, &ask(&("roots/list", json!({})), lines).to_string()),
        "ask model wrongly" => {
            say(id, &ask(&("sampling/createMessage", json!({})), lines).to_string());
        }
        "ask with a long id" => {
            send(&("ping", json!({})), &"x".repeat(1_000));
            let answer = answers(lines).next().unwrap_or_default();
            say(id, &answer.to_string());
        }
        // Takes the question back, so there must be no answer before that of the ping.
        "ask in vain" => {
            send(&form(), "q");
            thread::sleep(Duration::from_millis(100));
            let params = json!({ "requestId": "q", "reason": "never mind" });
            print(
                &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
                    .to_string(),
            );
            say(id, &ask(&("ping", json!({})), lines).to_string());
        }
        // Ends while its question is open.
        "ask and go" => {
            send(&form(), "q");
            thread::sleep(Duration::from_millis(100));
            say(id, "gone");
        }
        "ask and die" => {
            send(&form(), "q");
            thread::sleep(Duration::from_millis(100));
            std::process::exit(3);
        }
        // Four are open, and the others are refused at once.
        "ask often" => {
            (0..6).for_each(|n| send(&form(), &format!("q{n}")));
            let answer = answers(lines).find(|answer| answer["id"] == "q5").unwrap_or_default();
            say(id, &answer["error"].to_string());
        }
        "ask for a page" => require(id, 1, 1),
        "ask for a page and tell" => {
            require(id, 1, 1);
            let params = json!({ "elicitationId": "e0" });
            print(&json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params }).to_string());
        }
        "ask for a page each time" => require(id, 1, usize::MAX),
        "ask for two pages" => require(id, 2, 1),
        "ask for many pages" => require(id, 9, 1),
        // Is silent, with questions in between.
        "ask slowly" => {
            for _ in 0..3 {
                thread::sleep(Duration::from_millis(100));
                ask(&form(), lines);
            }
            say(id, "patient");
        }
        _ => {}
    }
}

/// Refuses the first calls until pages were visited.
fn require(id: &Value, pages: usize, calls: usize) {
    let call = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    if call > calls {
        return say(id, &format!("call {call}"));
    }
    let page = |n| json!({ "mode": "url", "elicitationId": format!("e{n}"), "url": format!("https://example.org/{n}"), "message": "Sign in" });
    let pages: Vec<_> = (0..pages).map(page).collect();
    let error = json!({ "code": -32042, "message": format!("call {call} needs you"), "data": { "elicitations": pages } });
    print(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string());
}

type Request = (&'static str, Value);

pub(crate) fn form() -> Request {
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "age": { "type": "integer", "minimum": 18 } },
        "required": ["name"],
    });
    ("elicitation/create", json!({ "message": "Who are you?", "requestedSchema": schema }))
}

pub(crate) fn sampling() -> Request {
    let content = json!({ "type": "text", "text": "A haiku, please." });
    let params = json!({
        "messages": [{ "role": "user", "content": content }],
        "systemPrompt": "You are a poet.",
        "maxTokens": 1_000_000,
        "temperature": 0.25,
    });
    ("sampling/createMessage", params)
}

fn send((method, params): &Request, id: &str) {
    print(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
}

fn answers(lines: &mut Lines) -> impl Iterator<Item = Value> {
    let lines = lines.by_ref().map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_str(&line).ok())
}

/// Asks, and returns the result or the error.
pub(crate) fn ask(request: &Request, lines: &mut Lines) -> Value {
    send(request, "asked");
    let answer = answers(lines).find(|answer: &Value| answer["id"] == "asked").unwrap_or_default();
    match answer.get("result") {
        Some(result) => result.clone(),
        None => answer["error"].clone(),
    }
}
