//! A stand-in that analyzes logs with tools: it looks for times in the question, quoted text, or errors.

use oa_testkit::Reply;
use serde_json::{Value, json};

use crate::chat::Chat;

/// Answers a request.
pub fn answer(chat: &Chat<'_>) -> Reply {
    let prompt = chat.prompt();
    let is_time = |word: &&str| word.len() == 5 && word.find(':') == Some(2);
    let mut times = prompt.split([' ', '?', '.', ',']).filter(is_time);
    let calls: Vec<_> = chat.calls().collect();
    if let Some(failed) = calls.iter().find_map(|call| call.result.as_ref().err()) {
        return Reply::text(format!("I cannot read the log: {failed}."));
    }
    if let Some(found) = chat.result("search").or(chat.result("lines_between")) {
        let lines = found["lines"].as_array().into_iter().flatten();
        let shown: Vec<_> = lines.filter_map(Value::as_str).take(3).collect();
        let why = chat.result("most_frequent").map_or_else(String::new, |kinds| why(&kinds[0]));
        return Reply::text(format!(
            "{why}{} lines, among them {}.",
            found["count"],
            shown.join(" | ")
        ));
    }
    if let (Some(from), Some(to)) = (times.next(), times.next()) {
        return Reply::text("I look at that time.")
            .call("lines_between", json!({ "from": from, "to": to }));
    }
    if let Some(text) = prompt.split('"').nth(1) {
        return Reply::text("I search for it.").call("search", json!({ "text": text }));
    }
    let level = if prompt.to_lowercase().contains("warn") { "WARN" } else { "ERROR" };
    let Some(kinds) = chat.result("most_frequent") else {
        return Reply::text("I count.")
            .call("count_by_level", json!({}))
            .call("most_frequent", json!({ "level": level }));
    };
    let Some(first) = kinds[0]["first"].as_str() else {
        return Reply::text(format!("There is no line of level {level}."));
    };
    Reply::text("And what was there at that time?")
        .call("lines_between", json!({ "from": first.get(..16).unwrap_or(first), "to": first }))
}

fn why(kind: &Value) -> String {
    let text = |name: &str| kind[name].as_str().unwrap_or_default();
    format!(
        "\"{}\" occurs {} times, from {} on. Around it: ",
        text("message"),
        kind["count"],
        text("first")
    )
}
