//! The scripted model: the word in brackets in the last user message selects its behavior.

use std::time::Duration;

use oa_testkit::{Reply, Request};
use serde_json::{Value, json};

const TEXT: &str = "Hello, wörld! 👋\n\ndata: [DONE]\n\"quoted\" \\ end\u{2028}.";

/// Answers a request.
pub(crate) fn answer(request: &Request) -> Reply {
    let messages = request.messages();
    if let Some(open) = open_call(messages) {
        return Reply::error(400, format!("the call {open} has no result"));
    }
    let users: Vec<_> = messages.iter().filter(|message| message["role"] == "user").collect();
    let prompt = users.last().map(|message| text(message)).unwrap_or_default();
    let from = messages.iter().rposition(|message| message["role"] == "user").unwrap_or_default();
    let results: Vec<_> =
        messages[from..].iter().filter(|message| message["role"] == "tool").map(text).collect();
    let word = prompt.split(' ').next().unwrap_or_default();
    let reply = match (word, &*results) {
        ("[error-start]", _) | ("[tool-then-error]", [_, ..]) => {
            return Reply::error(503, "model loading");
        }
        ("[text]", _) => Reply::text(TEXT),
        ("[think]", _) => Reply::new().think("Let me think.").say("Thought done."),
        ("[tool]" | "[tool-then-error]", []) => Reply::new().call("add", json!({"a": 2, "b": 3})),
        ("[tool]", _) => Reply::text("The sum is 5."),
        ("[parallel]", []) => Reply::new()
            .call("slow_add", json!({"a": 1, "b": 2}))
            .call("add", json!({"a": 3, "b": 4})),
        ("[parallel]", _) => Reply::text("3 and 7."),
        ("[steps]", []) => Reply::text("First. ").call("add", json!({"a": 1, "b": 1})),
        ("[steps]", [_]) => Reply::text("Then. ").call("add", json!({"a": 2, "b": 2})),
        ("[steps]", _) => Reply::text("Done."),
        ("[tool-error]", []) => Reply::new().call("fail", json!({"why": "no such city"})),
        ("[tool-error]", _) => Reply::text("It failed."),
        ("[bad-args]", []) => Reply::new().call("add", "{\"a\": 2, \"b\":"),
        ("[bad-args]", _) => Reply::text("Bad arguments."),
        ("[odd]", []) => Reply::new().call("odd", json!({})),
        ("[odd]", _) => Reply::text("Odd result."),
        ("[progress]", []) => Reply::new().call("count", json!({"to": 3})),
        ("[progress]", _) => Reply::text("Counted to 3."),
        ("[approve]", []) => Reply::new().call("delete_file", json!({"path": "notes.txt"})),
        ("[approve]", [result, ..]) => {
            Reply::text(if result.contains("error") { "Not deleted." } else { "Deleted." })
        }
        ("[client]", []) => Reply::new().call("pick_color", json!({"palette": "warm"})),
        ("[client]", [color, ..]) => Reply::text(format!("You picked {color}.")),
        ("[mixed]", []) => Reply::new()
            .call("add", json!({"a": 2, "b": 3}))
            .call("pick_color", json!({"palette": "cold"})),
        ("[mixed]", results) => {
            let color = results.last().map_or("?", |color| &**color);
            let sum = results
                .iter()
                .find_map(|result| serde_json::from_str::<Value>(result).ok()?["sum"].as_i64());
            let sum = sum.map_or_else(|| "?".to_owned(), |sum| sum.to_string());
            Reply::text(format!("Sum {sum}, color {color}."))
        }
        ("[state]", []) => Reply::new().call("set_title", json!({"title": "Report"})),
        ("[state]", _) => Reply::text("Titled."),
        ("[slow]", _) => ticks(40),
        ("[long]", _) => ticks(600),
        ("[slow-tool]", []) => Reply::new().call("wait", json!({"seconds": 30})),
        ("[slow-tool]", _) => Reply::text("Waited."),
        ("[error]", _) => Reply::text("Partial")
            .event(json!({"error": {"message": "model exploded", "code": 500}}))
            .delay(Duration::from_millis(50)),
        ("[echo]", _) => {
            let words = prompt.strip_prefix("[echo] ").unwrap_or_default();
            Reply::text(format!("You said: {words} (turn {})", users.len()))
        }
        (word, _) => return Reply::error(400, format!("no script for {word:?}")),
    };
    reply.usage(11, 7)
}

/// `tick 0 tick 1 `, and so on: one each 50 ms, each of two words.
fn ticks(count: usize) -> Reply {
    let text: String = (0..count).map(|tick| format!("tick {tick} ")).collect();
    Reply::text(text).delay(Duration::from_millis(25))
}

fn text(message: &Value) -> String {
    match &message["content"] {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::String(text) => text.clone(),
        _ => String::new(),
    }
}

/// Returns the id of a call that has no result behind it.
fn open_call(messages: &[Value]) -> Option<String> {
    messages.iter().enumerate().find_map(|(place, message)| {
        let results: Vec<_> = messages[place + 1..]
            .iter()
            .take_while(|message| message["role"] == "tool")
            .map(|message| &message["tool_call_id"])
            .collect();
        let calls = message["tool_calls"].as_array()?;
        let open = calls.iter().find(|call| !results.contains(&&call["id"]))?;
        Some(open["id"].to_string())
    })
}
