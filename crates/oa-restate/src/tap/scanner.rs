/// The size of a message header: kind, flags, and the length of the rest.
const HEAD: usize = 8;
/// The kind of a message with a signal.
const SIGNAL: [u8; 2] = 0xFBFF_u16.to_be_bytes();
/// The maximum length of an inspected message. The cancel signal has four bytes.
const LONGEST: usize = 64;
/// The field with a signal's number.
const FIELD: u64 = 2;
/// The number of the cancel signal.
const CANCEL: u64 = 1;

/// Finds the engine's cancel signal among its messages, which come in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    head: Vec<u8>,
    /// The message after the header, if it may be a cancel signal.
    message: Vec<u8>,
    /// The number of its bytes still to come.
    left: usize,
    is_signal: bool,
}

impl Scanner {
    /// Returns true if a cancel signal ends in these bytes.
    pub(super) fn finds_cancel(&mut self, mut bytes: &[u8]) -> bool {
        let mut is_found = false;
        while !bytes.is_empty() {
            if self.head.len() < HEAD {
                let (part, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
                self.head.extend_from_slice(part);
                bytes = rest;
                if let [kind, sort, _, _, length @ ..] = &*self.head
                    && let Ok(length) = <[u8; 4]>::try_from(length)
                {
                    self.left = u32::from_be_bytes(length) as usize;
                    self.is_signal = [*kind, *sort] == SIGNAL && self.left <= LONGEST;
                }
            }
            // In the same pass as the end of the header, because the rest of a message may be empty.
            if self.head.len() == HEAD {
                let (part, rest) = bytes.split_at(bytes.len().min(self.left));
                bytes = rest;
                self.left -= part.len();
                if self.is_signal {
                    self.message.extend_from_slice(part);
                }
                if self.left == 0 {
                    is_found |= self.is_signal && is_cancel(&self.message);
                    self.head.clear();
                    self.message.clear();
                }
            }
        }
        is_found
    }
}

/// Returns true if a protocol buffers message is the cancel signal.
/// `10 01 22 00` is the cancel signal: field 2 as a number (tag 0x10) is 1, and field 4 (tag 0x22) is empty.
/// A signal with a name has field 3 in place of field 2.
fn is_cancel(mut message: &[u8]) -> bool {
    while let Some(tag) = number(&mut message) {
        match (tag >> 3, tag & 7) {
            (field, 0) => match number(&mut message) {
                Some(value) if field == FIELD => return value == CANCEL,
                Some(_) => {}
                None => return false,
            },
            (_, 2) => {
                let length = number(&mut message).and_then(|length| usize::try_from(length).ok());
                let Some(rest) = length.and_then(|length| message.get(length..)) else {
                    return false;
                };
                message = rest;
            }
            // A signal has no other kinds of fields.
            _ => return false,
        }
    }
    false
}

/// Takes a variable-length integer.
fn number(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for place in 0..10 {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f).checked_shl(7 * place).unwrap_or_default();
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap();
        [&kind.to_be_bytes()[..], &[0, 0], &length.to_be_bytes(), payload].concat()
    }

    #[test]
    fn cancel_is_found_by_its_number() {
        let found = |kind, payload: &[u8]| Scanner::default().finds_cancel(&message(kind, payload));
        assert!(found(0xfbff, &[0x10, 1, 0x22, 0]));
        assert!(found(0xfbff, &[0x22, 0, 0x10, 1]), "in any order");
        assert!(!found(0xfbff, &[0x10, 2, 0x22, 0]), "another signal");
        assert!(!found(0xfbff, b"\x1a\x09interrupt\x22\x00"), "one with a name");
        assert!(!found(0xfbff, b"\x1a\x02\x10\x01"), "it is in a text");
        assert!(!found(0x8000, &[0x10, 1, 0x22, 0]), "another message");
        assert!(!found(0xfbff, &[]) && !found(0xfbff, &[0x1a, 200]) && !found(0xfbff, &[0xff; 20]));
    }

    proptest! {
        #[test]
        fn splits_make_no_difference(
            before in proptest::collection::vec((any::<u16>(), proptest::collection::vec(any::<u8>(), 0..80)), 0..4),
            cuts in proptest::collection::vec(1..20_usize, 1..40),
            is_there in any::<bool>(),
        ) {
            let mut bytes: Vec<u8> = before
                .iter()
                .filter(|(kind, _)| *kind != 0xfbff)
                .flat_map(|(kind, payload)| message(*kind, payload))
                .collect();
            if is_there {
                bytes.extend(message(0xfbff, &[0x10, 1, 0x22, 0]));
            }
            let (mut scanner, mut rest, mut is_found) = (Scanner::default(), &*bytes, false);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (part, later) = rest.split_at(rest.len().min(*cut));
                is_found |= scanner.finds_cancel(part);
                rest = later;
            }
            prop_assert_eq!(is_found, is_there);
        }
    }
}
