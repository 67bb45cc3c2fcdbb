use crate::error::Error;
use crate::record::Draft;

/// A running checksum over a file (64-bit FNV-1a), stored at the end of each line.
///
/// It detects accidental changes, and shows whether a file that has grown still starts with the same bytes. It
/// does not protect against forgery.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Chain(u64);

// A line, and the part of it that its checksum covers, together with all lines before it:
//
//     {"v":1,"op":"pending","at":0,"pending":null,"sum":"0123456789abcdef"}\n
//     ^------------------------------------------^
//
// The checksum of the next line continues behind the newline, so it covers this one's `sum` as well.
const OPEN: &str = ",\"sum\":\"";
const DIGITS: usize = 16;
const CLOSE: &str = "\"}";

/// The length of a line's checksum member, in bytes.
const SEAL: usize = OPEN.len() + DIGITS + CLOSE.len();

impl Chain {
    /// Creates the checksum of an empty file.
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns the end of a line with this checksum.
    pub(crate) fn closing(sum: u64) -> String {
        format!("{sum:0DIGITS$x}{CLOSE}")
    }

    /// Returns the record as the next line, with its checksum.
    pub(crate) fn seal(mut self, draft: &Draft) -> (String, u64) {
        let body = draft.as_str();
        self.update(body.as_bytes());
        (format!("{body}{OPEN}{}", Self::closing(self.0)), self.0)
    }

    /// Checks the end of the next line and returns its checksum.
    pub(crate) fn check(mut self, line: &str) -> Result<u64, Error> {
        let parts = line.len().checked_sub(SEAL).and_then(|at| line.split_at_checked(at));
        let sealed = parts.and_then(|(body, seal)| {
            let digits = seal.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
            // `from_str_radix` also takes a sign and uppercase digits, which no store has written.
            let is_hex = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
            Some((body, u64::from_str_radix(digits, 16).ok().filter(|_| is_hex)?))
        });
        let Some((body, sum)) = sealed else {
            return Err(Error::corrupt("the checksum is missing"));
        };
        self.update(body.as_bytes());
        if self.0 != sum {
            let message = "checksum mismatch: this or an earlier line was changed";
            return Err(Error::corrupt(message));
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::Timestamp;

    #[test]
    fn checksum_matches_published_vectors() {
        // Test vectors published by the authors of FNV.
        let sum = |text: &str| {
            let mut chain = Chain::new();
            chain.update(text.as_bytes());
            chain.value()
        };
        assert_eq!(sum("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(sum("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn changed_or_moved_lines_are_rejected() {
        let draft = Draft::pending(Timestamp::default(), None);
        let mut chain = Chain::new();
        chain.update(b"before");
        let (line, sum) = chain.seal(&draft);
        assert_eq!(line.len(), draft.as_str().len() + SEAL);
        assert_eq!(chain.check(&line).unwrap(), sum);
        assert!(Chain::new().check(&line).is_err());
        for at in 0..line.len() {
            let mut changed = line.clone().into_bytes();
            changed[at] ^= 1;
            let changed = String::from_utf8(changed).unwrap();
            assert!(chain.check(&changed).is_err(), "{changed}");
        }
        assert!(chain.check("é").is_err());
    }

    #[test]
    fn checksums_have_one_spelling() {
        // Until the sum begins with 0 and has a letter.
        let lines =
            (0..).map(|at| Chain::new().seal(&Draft::pending(Timestamp::from_millis(at), None)));
        let is_wanted = |sum: u64| sum >> 60 == 0 && format!("{sum:x}").contains('a');
        let (line, sum) = lines.into_iter().find(|(_, sum)| is_wanted(*sum)).unwrap();
        let digits = format!("{sum:016x}");
        assert_eq!(Chain::new().check(&line).unwrap(), sum);
        for other in [digits.to_uppercase(), digits.replacen('0', "+", 1)] {
            assert!(Chain::new().check(&line.replace(&digits, &other)).is_err(), "{other}");
        }
    }
}
