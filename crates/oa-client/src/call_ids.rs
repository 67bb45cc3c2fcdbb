//! Ids of calls that an earlier answer has used.

use oa_aggregate::UsedIds;
use oa_events::{AgentEvent, ToolUseDelta};

/// Makes the id of a new call unique, as [`UsedIds::replace_all`] does. `used` returns the conversation's ids.
#[inline]
pub(crate) fn replace_in<'a>(event: &mut AgentEvent, used: impl FnOnce() -> &'a UsedIds) {
    if let AgentEvent::ToolUseDelta(ToolUseDelta { id: Some(id), .. }) = event {
        used().replace(id);
    }
}
