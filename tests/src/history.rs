use oa_types::{ContentBlock, Message, MessageRole};

/// Checks that each call has one result at most, in order of calls and before anything else is said, and
/// that only those at the end wait for theirs: returns their ids.
///
/// # Panics
///
/// Otherwise.
#[must_use]
#[track_caller]
pub fn open_calls(history: &[Message]) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    // Results of later calls may come before those of others.
    let mut passed = 0;
    for message in history {
        assert!(!message.content.is_empty(), "a message says nothing: {history:?}");
        if message.role != MessageRole::Tool {
            assert!(open.is_empty(), "{open:?} have no result: {history:?}");
            passed = 0;
        }
        for block in &message.content {
            match block {
                ContentBlock::ToolUse(call) => open.push(&call.id),
                ContentBlock::ToolResult(result) => {
                    let place = open.iter().skip(passed).position(|id| *id == result.tool_use_id);
                    let place = place.unwrap_or_else(|| panic!("{result:?} in {history:?}"));
                    passed += place;
                    open.remove(passed);
                }
                _ => {}
            }
        }
    }
    open.into_iter().map(str::to_owned).collect()
}

/// A letter for each message: `u`ser, `a`ssistant, assistant with `c`alls, `t`ool.
#[must_use]
pub fn letters(history: &[Message]) -> String {
    let letter = |message: &Message| {
        let is_call = |block: &ContentBlock| matches!(block, ContentBlock::ToolUse(_));
        match message.role {
            MessageRole::Tool => 't',
            MessageRole::User => 'u',
            MessageRole::Assistant if message.content.iter().any(is_call) => 'c',
            _ => 'a',
        }
    };
    history.iter().map(letter).collect()
}
