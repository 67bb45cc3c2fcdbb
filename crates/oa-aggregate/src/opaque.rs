//! Members that only the server understands, and expects back with the message.

use std::mem;

use serde_json::{Map, Value};

use crate::details::Details;
use crate::signed::SignedBlocks;

/// The members of the answer that only the server understands. Few servers send any.
#[derive(Debug, Default)]
pub(crate) struct Opaque {
    pub(crate) details: Details,
    pub(crate) signed: SignedBlocks,
    /// Other members of the deltas.
    pub(crate) members: Map<String, Value>,
}

impl Opaque {
    /// Removes and returns everything so far, as members of the message.
    pub(crate) fn finish(&mut self) -> Map<String, Value> {
        let mut members = mem::take(&mut self.members);
        let signed = self.signed.finish();
        if !signed.is_empty() {
            members.insert("thinking_blocks".into(), signed.into());
        }
        let details = mem::take(&mut self.details).into_list();
        if !details.is_empty() {
            members.insert("reasoning_details".into(), details.into());
        }
        members
    }
}
