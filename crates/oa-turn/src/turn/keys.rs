//! Idempotency keys of calls.

use std::sync::Arc;

use super::Turn;
use crate::key::CallKey;

impl Turn {
    /// Sets the prefix of call keys; see [`call_key`](Self::call_key).
    #[must_use]
    pub fn with_key_seed(mut self, seed: impl Into<String>) -> Self {
        self.set_key_seed(seed);
        self
    }

    /// Sets the prefix of call keys from now on, and counts answers anew: the last one becomes number 0, the next one
    /// number 1. Two turns with equal messages and equal seeds then give their open calls equal keys, whatever happened
    /// before. See [`call_key`](Self::call_key).
    pub fn set_key_seed(&mut self, seed: impl Into<String>) {
        self.key_seed = seed.into().into();
        (self.answers, self.round.number) = (0, 0);
    }

    /// Returns the idempotency key of a call of the last answer; `None` if there is no such call.
    ///
    /// The key consists of the seed, the number of the answer since the seed was set, the call's index, and a digest of
    /// the call. A restored snapshot and a replay of the same answers give the same key; no two calls share one. A
    /// `Turn` that is created again from messages counts its answers from the start: give it a new seed each time, such
    /// as the id of the conversation and the number of the prompt.
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
