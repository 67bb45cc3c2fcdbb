//! The table of changed lines in MIGRATING.md.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn lines(folder_name: &str, example: &str) -> Vec<String> {
    let path = folder(folder_name).join(example).with_extension("rs");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines().map(str::to_owned).collect()
}

fn names(folder_name: &str) -> Vec<String> {
    let entries = fs::read_dir(folder(folder_name)).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let rust = paths.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let mut names: Vec<String> =
        rust.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    names
}

/// Returns how many lines two texts have in common, in order: the longest common subsequence, as `diff` finds it.
fn common(a: &[String], b: &[String]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for line in a {
        let mut diagonal = 0;
        for (at, other) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if line == other { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[b.len()]
}

#[test]
fn common_lines_are_counted_in_order() {
    let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(common(&lines("a b c d"), &lines("a x c d")), 3);
    assert_eq!(common(&lines("a b"), &lines("b a")), 1);
    assert_eq!(common(&lines("a"), &lines("b")), 0);
}

#[test]
fn each_example_is_ported() {
    assert_eq!(names("original"), names("ported"));
    assert_eq!(names("original").len(), 14);
}

#[test]
fn the_page_has_the_table_of_changes() {
    let mut table = String::from(
        "| example | lines | removed | written | left as they were |\n| --- | --- | --- | --- | --- |\n",
    );
    let mut total = [0; 3];
    let mut row = |name: &str, counts: [usize; 3]| {
        let [lines, removed, written] = counts;
        let kept = (lines - removed) * 100 / lines;
        writeln!(table, "| {name} | {lines} | {removed} | {written} | {kept} % |")
    };
    for name in names("original") {
        let (before, after) = (lines("original", &name), lines("ported", &name));
        let common = common(&before, &after);
        let counts = [before.len(), before.len() - common, after.len() - common];
        for (total, count) in total.iter_mut().zip(counts) {
            *total += count;
        }
        row(&format!("`{name}`"), counts).expect("a string takes it");
    }
    row("together", total).expect("a string takes it");
    let page = fs::read_to_string(folder("../../MIGRATING.md")).expect("the page is there");
    println!("{table}");
    assert!(page.contains(&table), "MIGRATING.md should say:\n\n{table}");
}

/// Every name that `open-agent-sdk` 0.11.8 exports at its root, and in `retry`.
const NAMES: &[&str] = &[
    "AgentOptions",
    "AgentOptionsBuilder",
    "AnthropicBlockStart",
    "AnthropicDelta",
    "AnthropicErrorBody",
    "AnthropicEvent",
    "AnthropicMessage",
    "AnthropicMessageDelta",
    "AnthropicRequest",
    "ApiProtocol",
    "BaseUrl",
    "Client",
    "ContentBlock",
    "Error",
    "EventStream",
    "FinishReason",
    "HOOK_POST_TOOL_USE",
    "HOOK_PRE_TOOL_USE",
    "HOOK_USER_PROMPT_SUBMIT",
    "HookDecision",
    "Hooks",
    "ImageBlock",
    "ImageDetail",
    "Message",
    "MessageRole",
    "ModelName",
    "OpenAIContent",
    "OpenAIContentPart",
    "OpenAIFunction",
    "OpenAIMessage",
    "OpenAIRequest",
    "OpenAIToolCall",
    "PostToolUseEvent",
    "PreToolUseEvent",
    "Provider",
    "Result",
    "RetryConfig",
    "StreamEvent",
    "Temperature",
    "TextBlock",
    "Tool",
    "ToolBuilder",
    "ToolResultBlock",
    "ToolUseBlock",
    "UserPromptSubmitEvent",
    "anthropic_finish_reason",
    "coalesce_text_blocks",
    "estimate_tokens",
    "get_base_url",
    "get_model",
    "is_approaching_limit",
    "is_retryable_error",
    "prelude",
    "query",
    "retry_with_backoff",
    "retry_with_backoff_conditional",
    "tool",
    "truncate_messages",
];

#[test]
fn the_page_has_every_public_name() {
    let page = fs::read_to_string(folder("../../MIGRATING.md")).expect("the page is there");
    let names = page.split_once("### Name by name").expect("a section").1;
    let names = names.split_once("This compiles:").expect("its end").0;
    let quoted: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<&str> = quoted.iter().flat_map(|code| code.split(|c| !is_word(c))).collect();
    let missing: Vec<_> = NAMES.iter().filter(|name| !words.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
