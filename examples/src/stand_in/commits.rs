//! A stand-in that writes commit messages: it names the changed files, in the style of the log.

use oa_testkit::Reply;
use serde_json::json;

use crate::chat::Chat;

/// Answers a request.
pub fn answer(chat: &Chat<'_>) -> Reply {
    let calls: Vec<_> = chat.calls().collect();
    let text = |tool: &str| chat.result(tool).and_then(|text| Some(text.as_str()?.to_owned()));
    match calls.last() {
        None => Reply::text("I read the repository.")
            .call("git_status", json!({}))
            .call("git_diff", json!({}))
            .call("git_log", json!({})),
        Some(call) if call.name == "commit" => Reply::text(match &call.result {
            Ok(line) => format!("Committed: {}.", line.as_str().unwrap_or_default()),
            Err(error) => format!("Not committed: {error}. I proposed: {}.", call.input["message"]),
        }),
        Some(_) => match text("git_diff").as_deref() {
            None => Reply::text("I cannot read what is staged here."),
            Some("") => Reply::text("Nothing is staged, so there is nothing to commit."),
            // Without a commit there is no log.
            Some(diff) => {
                let message = propose(diff, &text("git_log").unwrap_or_default());
                Reply::text("I propose a message.").call("commit", json!({ "message": message }))
            }
        },
    }
}

fn propose(diff: &str, log: &str) -> String {
    let files: Vec<_> = diff
        .lines()
        .filter_map(|line| Some(line.strip_prefix("diff --git a/")?.split_once(" b/")?.1))
        .collect();
    let count = |mark: &str| diff.lines().filter(|line| line.starts_with(mark)).count();
    let verb = match files.len() {
        all if count("new file mode") == all => "add",
        all if count("deleted file mode") == all => "remove",
        _ => "change",
    };
    let subject = match &*files {
        [one] => format!("{verb} {one}"),
        [one, other] => format!("{verb} {one} and {other}"),
        files => format!("{verb} {} files", files.len()),
    };

    // "docs: explain", "parser: fix" or "Explain"?
    let lines: Vec<_> = log.lines().collect();
    let area = |line: &&str| Some(line.split_once(": ")?.0.to_owned());
    let areas: Vec<_> = lines.iter().filter_map(area).filter(|area| !area.contains(' ')).collect();
    if 2 * areas.len() > lines.len() {
        let has_kinds =
            areas.iter().any(|area| area.starts_with("fix") || area.starts_with("feat"));
        let first = files.first().copied().unwrap_or_default();
        let area = match verb {
            _ if !has_kinds => first.split(['/', '.']).next().unwrap_or_default(),
            _ if first.ends_with(".md") => "docs",
            "add" => "feat",
            _ => "fix",
        };
        return format!("{area}: {subject}");
    }
    let capitals = lines.iter().filter(|line| line.starts_with(char::is_uppercase)).count();
    let (begin, rest) = subject.split_at(1);
    if 2 * capitals > lines.len() { begin.to_uppercase() + rest } else { subject }
}
