//! The tools of the stand-in. They change nothing outside the program.

use std::time::Duration;

use open_agent::{FnTool, Progress, json, tool};
use tokio::time::sleep;

/// Returns a slow read-only tool, and one that needs permission.
pub(crate) fn tools() -> Vec<FnTool> {
    let count = tool("count_words", "Counts the words of a text, slowly")
        .param("text", "string")
        .category("read")
        .build_with_context(|args, cx| async move {
            let words = args["text"].as_str().unwrap_or_default().split_whitespace().count();
            for step in 1..=5 {
                cx.emit_progress(Progress::new(step, Some(5)).with_message("counting"));
                sleep(Duration::from_millis(150)).await;
            }
            Ok(json!(format!("{words} words")))
        });
    let keep = tool("keep_note", "Keeps a note until the program ends")
        .param("text", "string")
        .build(|_| async { Ok(json!("kept, until the program ends")) });
    vec![count, keep]
}
