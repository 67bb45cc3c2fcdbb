use std::io::{self, Write};

use oa_types::Message;

/// A checksum of a prompt (128-bit FNV-1a over its JSON). It finds prompts that were changed or moved; it does
/// not protect against forgery.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Fingerprint(u128);

const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

impl Fingerprint {
    pub(crate) fn of(prompt: &Message) -> Self {
        let mut sum = Self(BASIS);
        // Cannot fail: the checksum takes any bytes, and messages are JSON.
        let written = serde_json::to_writer(&mut sum, prompt);
        debug_assert!(written.is_ok(), "messages are JSON");
        sum
    }

    pub(crate) fn to_hex(self) -> String {
        format!("{:032x}", self.0)
    }

    pub(crate) fn from_hex(hex: &str) -> Option<Self> {
        u128::from_str_radix(hex, 16).ok().map(Self)
    }
}

impl Write for Fingerprint {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
