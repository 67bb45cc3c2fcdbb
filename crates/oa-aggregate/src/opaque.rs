//! What only the server understands, and wants back with the message.

use std::mem;

use serde_json::{Map, Value};

use crate::details::Details;
use crate::signed::SignedBlocks;

/// What the answer has for the server alone. Few servers send any of it.
#[derive(Debug, Default)]
pub(crate) struct Opaque {
    pub(crate) details: Details,
    pub(crate) signed: SignedBlocks,
    /// Members of the delta.
    pub(crate) members: Map<String, Value>,
}

impl Opaque {
    /// Makes members of the message of all that came.
    pub(crate) fn finish(&mut self) -> Map<String, Value> {
        let mut members = mem::take(&mut self.members);
        let signed = self.signed.finish();
        if !signed.is_empty() {
            members.insert("thinking_blocks".into(), signed.into());
        }
        let details = mem::take(&mut self.details).list;
        if !details.is_empty() {
            members.insert("reasoning_details".into(), details.into());
        }
        members
    }
}
