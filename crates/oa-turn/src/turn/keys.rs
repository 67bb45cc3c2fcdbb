//! Idempotency keys of calls.

use std::sync::Arc;

use super::Turn;
use crate::key::CallKey;

impl Turn {
    /// Returns the idempotency key of a call of the last answer; `None` if there is no such call.
    ///
    /// The key consists of the seed, the number of the answer since the seed was set, the call's index, and a digest of
    /// the call. A restored snapshot and a replay of the same answers give the same key; no two calls share one. A `Turn`
    /// that is created again from messages counts its answers from the start: give it a new seed each time, such as the
    /// id of the conversation and the number of the prompt.
    #[must_use]
    pub fn call_key(&self, call: usize) -> Option<String> {
        self.lazy_call_key(call).map(|key| key.to_string())
    }

    /// Returns the idempotency key of a call like [`call_key`](Self::call_key), to be computed only if it is needed.
    #[must_use]
    pub fn lazy_call_key(&self, call: usize) -> Option<CallKey> {
        let block = Arc::clone(&self.calls().get(call)?.block);
        let seed = Arc::clone(&self.key_seed);
        Some(CallKey { seed, answer: self.round.number, place: call, call: block })
    }
}
