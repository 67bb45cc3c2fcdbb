use serde::{Deserialize, Serialize};

use crate::shorten::{OverflowSizes, ReportedTokens};

/// The state of a turn that shortening needs. Boxed, because most conversations are never shortened.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct ShortenState {
    /// The index of the prompt, or of the last user message if the conversation is continued without one.
    pub(super) prompt: Option<usize>,
    /// True if the request in progress was rejected as too long.
    pub(super) is_overflow: bool,
    /// The sizes that the server stated then.
    #[serde(default, skip_serializing_if = "OverflowSizes::is_unknown")]
    pub(super) sizes: OverflowSizes,
    /// The size of the last request and its answer, and the last revision then.
    pub(super) reported: Option<(ReportedTokens, u64)>,
}
