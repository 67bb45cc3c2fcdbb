//! Idempotency keys of calls.

use oa_types::ToolUseBlock;
use serde_json::Value;

/// Returns the key of a call: the seed, the number of its answer, its index there, and a digest of the call.
///
/// Number and index make the key unique within a [`Turn`](crate::Turn). The digest distinguishes the call from one
/// at the same index in an answer that was never recorded.
pub(crate) fn key(seed: &str, answer: u64, place: usize, call: &ToolUseBlock) -> String {
    let mut digest = Digest::default();
    digest.text(&call.id);
    digest.text(&call.name);
    digest.value(&call.input);
    format!("{seed}:{answer}:{place}:{:016x}", digest.0)
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

    /// Hashes the length first, so that two texts differ from the same bytes split elsewhere.
    fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    /// Hashes members in the order of their names, because JSON stores may reorder them.
    fn value(&mut self, value: &Value) {
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
