//! A stand-in for the agent builder and for the agents it creates: it understands a few sentence patterns.

use oa_testkit::Reply;
use serde_json::json;

use crate::chat::Chat;

/// Answers a request.
pub fn answer(chat: &Chat<'_>) -> Reply {
    let prompt = chat.prompt();
    let is_builder = chat.has_tool("create_agent");
    if let Some(call) = chat.calls().last() {
        let name =
            if is_builder { call.input["name"].as_str().unwrap_or_default() } else { call.name };
        return Reply::text(match (call.name, call.result) {
            (_, Err(error)) => format!("That did not work: {error}."),
            ("run_agent", Ok(answer)) => format!("{name} says: {answer}"),
            ("list_agents", Ok(agents)) => {
                let agents = agents.as_array().into_iter().flatten();
                let shown =
                    agents.map(|agent| format!("{}: {}", agent["name"], agent["system_prompt"]));
                format!("There are: {}.", shown.collect::<Vec<_>>().join("; "))
            }
            (_, Ok(result)) => format!("{name}: {result}."),
        });
    }
    if !is_builder {
        let tool = chat.tools().first().and_then(|tool| tool["function"]["name"].as_str());
        let told = format!("I was told: \"{}\" You say: \"{prompt}\"", chat.system());
        return match tool {
            Some(tool) => Reply::text(told + " ").call(tool, json!({ "text": prompt })),
            None => Reply::text(told),
        };
    }
    let is_end = |c: char| c.is_whitespace() || ".,:?!".contains(c);
    let words: Vec<_> = prompt.split(is_end).filter(|word| !word.is_empty()).collect();
    // "Delete counter", "the agent counter", "an agent called counter"
    let is_filler = |word: &&&str| ["a", "an", "the", "agent", "called", "named"].contains(*word);
    let name = words.iter().skip(1).find(|word| !is_filler(word)).copied().unwrap_or_default();
    let behind = |mark: &str| prompt.split_once(mark).map(|(_, rest)| rest.trim_end_matches('.'));
    let tools: Vec<_> =
        ["count_words", "reverse"].into_iter().filter(|tool| words.contains(tool)).collect();
    let purpose = behind(" that ").and_then(|rest| rest.split(',').next()).unwrap_or("helps");
    let purpose = format!("You are an agent that {}.", purpose.trim_start_matches("it "));
    match words.first().map(|word| word.to_lowercase()).as_deref() {
        Some("create") => Reply::text("I create it.").call(
            "create_agent",
            json!({ "name": name, "system_prompt": purpose, "tools": tools }),
        ),
        Some("change") => Reply::text("I change it.")
            .call("modify_agent", json!({ "name": name, "system_prompt": purpose })),
        Some("delete") => Reply::text("I delete it.").call("delete_agent", json!({ "name": name })),
        Some("ask") => Reply::text("I ask.")
            .call("run_agent", json!({ "name": name, "prompt": behind(": ").unwrap_or_default() })),
        _ => Reply::text("I look.").call("list_agents", json!({})),
    }
}
