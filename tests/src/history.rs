use oa_types::{ContentBlock, Message, MessageRole};

/// Checks that each call has at most one result, in call order and before the next message, and that only calls
/// at the end are open; returns the ids of those.
///
/// # Panics
///
/// If this does not hold.
#[must_use]
#[track_caller]
pub fn open_calls(history: &[Message]) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    // Results of later calls may come first.
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

/// One letter per message: `u`ser, `a`ssistant, assistant with `c`alls, `t`ool.
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
