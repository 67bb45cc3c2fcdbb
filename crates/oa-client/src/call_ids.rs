//! Ids of calls that an earlier answer has used.

use oa_aggregate::replace_used_id;
use oa_events::AgentEvent;
use oa_types::{AssistantMessage, ContentBlock, Message};

/// Gives the calls of an answer ids of their own, as [`rename_event`] did while it arrived.
pub(crate) fn rename_calls(answer: &mut AssistantMessage, history: &[Message]) {
    for block in &mut answer.content {
        match block {
            ContentBlock::ToolUse(call) => replace_used_id(&mut call.id, history),
            ContentBlock::ToolUseError(error) => {
                error.id.iter_mut().for_each(|id| replace_used_id(id, history));
            }
            _ => {}
        }
    }
}

/// Gives a call that begins an id of its own.
#[inline]
pub(crate) fn rename_event(event: &mut AgentEvent, history: &[Message]) {
    if let AgentEvent::ToolUseDelta(delta) = event {
        delta.id.iter_mut().for_each(|id| replace_used_id(id, history));
    }
}

#[cfg(test)]
mod tests {
    use oa_types::ToolUseBlock;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> ContentBlock {
        ToolUseBlock::new(id, "f", json!({})).into()
    }

    proptest! {
        /// A conversation never has two calls of one id, and ids that are free stay as they are.
        #[test]
        fn each_call_of_a_conversation_has_its_own_id(
            answers in prop::collection::vec(prop::collection::btree_set("[a-c]", 0..3), 0..12),
        ) {
            let mut history: Vec<Message> = Vec::new();
            let mut taken: Vec<String> = Vec::new();
            for ids in answers {
                let mut answer = AssistantMessage::new(ids.iter().map(|id| call(id)).collect());
                rename_calls(&mut answer, &history);
                for (block, given) in answer.content.iter().zip(&ids) {
                    let ContentBlock::ToolUse(call) = block else { panic!("{block:?}") };
                    if taken.contains(given) {
                        prop_assert_eq!(call.id.len(), 9);
                    } else {
                        prop_assert_eq!(&call.id, given);
                    }
                    prop_assert!(!taken.contains(&call.id));
                    taken.push(call.id.clone());
                }
                history.push(Message::assistant(answer.content));
            }
        }
    }
}
