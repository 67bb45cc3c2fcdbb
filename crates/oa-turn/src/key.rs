//! Idempotency keys of calls.

use std::fmt;
use std::sync::Arc;

use oa_types::ToolUseBlock;
use serde_json::Value;

/// The idempotency key of a call, as returned by [`Turn::call_key`](crate::Turn::call_key), but computed only when it
/// is displayed. Cheap to create and to clone.
///
/// It consists of the seed, the number of the answer, the call's index there, and a digest of the call. Number and
/// index make it unique among the keys with this seed. The digest distinguishes the call from one at the same index in
/// an answer that was never recorded.
#[derive(Clone, Debug)]
pub struct CallKey {
    pub(crate) seed: Arc<str>,
    pub(crate) answer: u64,
    pub(crate) place: usize,
    pub(crate) call: Arc<ToolUseBlock>,
}

impl CallKey {
    /// Returns the seed, which is empty unless the turn was given one.
    #[must_use]
    pub fn seed(&self) -> &str {
        &self.seed
    }
}

impl fmt::Display for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, answer, place, call } = self;
        let mut digest = Digest::default();
        digest.text(&call.id);
        digest.text(&call.name);
        digest.value(&call.input);
        write!(f, "{seed}:{answer}:{place}:{:016x}", digest.0)
    }
}

/// A 64-bit FNV-1a hash: small, and stable across processes and versions.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Hashes the length first, so that equal bytes split differently into two texts give different digests.
    fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    /// Hashes members in the order of their names, because JSON stores may reorder them.
    fn value(&mut self, value: &Value) {
        // A byte for each kind of value keeps `1` and `"1"` apart.
        match value {
            Value::Null => self.bytes(b"n"),
            Value::Bool(value) => self.bytes(if *value { b"t" } else { b"f" }),
            Value::Number(number) => {
                self.bytes(b"0");
                self.text(&number.to_string());
            }
            Value::String(text) => {
                self.bytes(b"s");
                self.text(text);
            }
            Value::Array(values) => {
                self.bytes(b"a");
                self.bytes(&(values.len() as u64).to_le_bytes());
                for value in values {
                    self.value(value);
                }
            }
            Value::Object(members) => {
                self.bytes(b"o");
                self.bytes(&(members.len() as u64).to_le_bytes());
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                for (name, value) in members {
                    self.text(name);
                    self.value(value);
                }
            }
        }
    }
}
