use serde::{Deserialize, Serialize};

use super::failed::Failure;
use crate::conversation::Conversation;
use crate::round::Round;
use crate::shorten::{OverflowSizes, ReportedTokens};

/// The state of a turn that shortening needs. Boxed, because most conversations are never shortened.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct ShortenState {
    /// The index of the prompt, or of the last user message if the conversation is continued without one.
    pub(super) prompt: Option<usize>,
    /// True if the request in progress was rejected as too long.
    pub(super) is_overflow: bool,
    /// True if it was rejected once more after the conversation was shortened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_in_vain: bool,
    /// The sizes that the server stated then.
    #[serde(default, skip_serializing_if = "OverflowSizes::is_unknown")]
    pub(super) sizes: OverflowSizes,
    /// The size of the last request and its answer, and the last revision then.
    pub(super) reported: Option<(ReportedTokens, u64)>,
    /// Present from the first shortening for a prompt until its answer begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unshortened: Option<Box<Unshortened>>,
}

/// The state that a failure restores: the conversation with the prompt, before it was shortened, and what refers to it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Unshortened {
    pub(super) conversation: Conversation,
    pub(super) round: Round,
    pub(super) failure: Option<Box<Failure>>,
    pub(super) reported: Option<(ReportedTokens, u64)>,
}
