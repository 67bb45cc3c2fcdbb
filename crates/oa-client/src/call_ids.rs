//! Ids of calls that an earlier answer has used.

use oa_aggregate::UsedIds;
use oa_events::{AgentEvent, ToolUseDelta};

/// Gives a call that begins an id of its own, as [`UsedIds::replace_all`] does once it is whole. `used` returns the ids of
/// the conversation.
#[inline]
pub(crate) fn replace_in<'a>(event: &mut AgentEvent, used: impl FnOnce() -> &'a UsedIds) {
    if let AgentEvent::ToolUseDelta(ToolUseDelta { id: Some(id), .. }) = event {
        used().replace(id);
    }
}
