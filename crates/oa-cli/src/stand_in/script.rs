//! The answers of the stand-in.

use open_agent::{
    AnswerDelta, ChatRequest, ContentBlock, Message, MessageRole, Usage, Value, estimate_tokens,
    json,
};

const INTRODUCTION: &str = "\
# A stand-in

I am a **stand-in**: a few rules and *no language model*. Everything around me is real, so you can see how a chat looks.

| ask me to | and you see |
| --- | --- |
| `count` words | a tool that runs, with progress |
| `keep` a note | a tool that needs your permission |
| `think` | thinking, dimmed |
| `read FILE` | a file, if you start me with `--tools files:.` |
| `go on` for long | time to press Ctrl-C, or to type while I work |

```rust
let answer = client.ask(\"Why is the sky blue?\").await?;
```

- For a real model, start a model server, and run `oa chat`.
- `/help` lists the commands.
";

/// The maximum number of lines quoted from a result, and of characters if it is a single line.
const MOST_LINES: usize = 12;
const MOST_CHARACTERS: usize = 600;

/// Answers a request from the conversation alone, like a model.
pub(super) fn answer(request: &ChatRequest) -> Vec<AnswerDelta> {
    let mut deltas = said(request);
    let written: usize = deltas
        .iter()
        .map(|delta| match delta {
            AnswerDelta::Text { text } | AnswerDelta::Thinking { text } => text.len().div_ceil(4),
            _ => 0,
        })
        .sum();
    let mut usage = Usage::default();
    usage.prompt_tokens = Some(estimate_tokens(request.messages()) as u64);
    usage.completion_tokens = Some(written as u64);
    deltas.push(AnswerDelta::Usage { usage });
    deltas
}

fn said(request: &ChatRequest) -> Vec<AnswerDelta> {
    let messages = request.messages();
    let results = messages.iter().rev().take_while(|message| message.role == MessageRole::Tool);
    let mut results: Vec<_> = results.map(result_of).collect();
    if !results.is_empty() {
        results.reverse();
        return words(&quoted(&results.join("; ")));
    }
    let mut prompts = messages.iter().filter(|message| message.role == MessageRole::User);
    let count = prompts.clone().count();
    let prompt = prompts.next_back().map(Message::text).unwrap_or_default();
    let asked = prompt.to_lowercase();
    let has = |word: &str| asked.contains(word);
    let offers = |name: &str| request.tools().iter().any(|tool| tool.name == name);
    if has("count") && offers("count_words") {
        let text = "I count the words of your prompt.";
        return call(text, "count_words", json!({ "text": prompt }));
    }
    if has("keep") && offers("keep_note") {
        return call("I keep that as a note, if I may.", "keep_note", json!({ "text": prompt }));
    }
    if let Some(path) = asked.strip_prefix("read ").map(|_| prompt[5..].trim())
        && let Some(tool) = request.tools().iter().find(|tool| tool.name.ends_with("read_file"))
    {
        return call("I read that file.", &tool.name, json!({ "path": path }));
    }
    if has("think") {
        let text = "The user wants to see me think. So I think, about nothing in particular.\n";
        let mut deltas: Vec<_> = pieces(text).map(|text| AnswerDelta::Thinking { text }).collect();
        deltas.extend(words("I have thought, and this is all that came of it."));
        return deltas;
    }
    if has("go on") {
        let text = "still going on, **word** after word, until you stop me.";
        let long: Vec<_> = (1..=200).map(|n| format!("Paragraph {n}: {text}\n\n")).collect();
        return words(&long.concat());
    }
    if count <= 1 {
        return words(INTRODUCTION);
    }
    words(&format!("You said: {prompt}"))
}

fn result_of(message: &Message) -> String {
    let result = message.content.iter().find_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(&result.content),
        _ => None,
    });
    match result {
        Some(Value::String(text)) => text.clone(),
        Some(other) => {
            let told = ["reason", "error", "text"].iter().find_map(|member| other[member].as_str());
            told.map_or_else(|| other.to_string(), str::to_owned)
        }
        None => String::new(),
    }
}

/// Quotes a result; of a long one, the first lines.
fn quoted(result: &str) -> String {
    let lines: Vec<_> = result.lines().collect();
    if lines.len() <= 1 {
        return format!("The tool says: {}", oa_markdown::excerpt(result, MOST_CHARACTERS));
    }
    let first = lines[..lines.len().min(MOST_LINES)].join("\n");
    format!("The tool says:\n\n````\n{first}\n````\n\nThat has {} lines in all.", lines.len())
}

/// Says something, and calls a tool.
fn call(text: &str, name: &str, arguments: Value) -> Vec<AnswerDelta> {
    let mut deltas = words(text);
    deltas.push(AnswerDelta::CallStart { call: 0, id: None, name: Some(name.to_owned()) });
    deltas.push(AnswerDelta::CallArguments { call: 0, fragment: arguments.to_string() });
    deltas
}

fn words(text: &str) -> Vec<AnswerDelta> {
    pieces(text).map(AnswerDelta::text).collect()
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(' ').map(str::to_owned)
}
