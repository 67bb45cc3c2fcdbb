//! The defaults in the manual's table of limits, for the settings listed here, equal those of the code.

use oa_chat::Limits;
use oa_executor::ExecutorOptions;
use open_agent::{AgentOptions, ImageBlock, RetryConfig};

const TABLE: &str = include_str!("../../crates/open-agent/src/guide/limits.md");

/// The number in the default column, in the row for this setting.
fn documented(set_by: &str) -> u64 {
    let set_by = format!("`{set_by}`");
    let mut rows = TABLE.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let row = rows.find(|row| row.get(3) == Some(&&*set_by));
    let row = row.unwrap_or_else(|| panic!("no row of {set_by}"));
    let digits: String =
        row[2].chars().take_while(|c| *c != ' ').filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number in {row:?}"))
}

#[test]
fn documented_defaults_equal_the_code() {
    let limits = Limits::default();
    let executor = ExecutorOptions::new();
    let retry = RetryConfig::default();
    let options = AgentOptions::builder().model("any").build().unwrap();
    let seconds = |wait: Option<std::time::Duration>| wait.map_or(0, |wait| wait.as_secs());
    for (set_by, default) in [
        ("Limits::events.event_bytes", limits.events.event_bytes as u64),
        ("Limits::answer.text_bytes", limits.answer.text_bytes as u64),
        ("Limits::answer.held_bytes", limits.answer.held_bytes as u64),
        ("Limits::answer.calls", limits.answer.calls as u64),
        ("Limits::answer.argument_bytes", limits.answer.argument_bytes as u64),
        ("Limits::answer.problems", limits.answer.problems as u64),
        ("ExecutorOptions::emission_queue", executor.emission_queue as u64),
        ("ExecutorOptions::max_parallel", executor.max_parallel.unwrap() as u64),
        ("max_tool_iterations", options.max_tool_iterations().into()),
        ("repeat_guard", options.repeat_guard().unwrap().into()),
        ("ImageBlock::from_file_path_with_limit", ImageBlock::MAX_FILE_BYTES),
        ("RetryConfig::max_retries", retry.max_retries.into()),
        ("RetryConfig::budget", retry.budget.into()),
        ("RetryConfig::max_retry_after", retry.max_retry_after.as_secs()),
        ("idle_timeout", seconds(options.idle_timeout())),
        ("first_token_timeout", seconds(options.first_token_timeout())),
        ("connect_timeout", seconds(options.connect_timeout())),
    ] {
        assert_eq!(documented(set_by), default, "{set_by}");
    }
    assert!(
        format!("{:?}", executor.truncation)
            .contains(&documented("ExecutorOptions::truncation").to_string())
    );
}
