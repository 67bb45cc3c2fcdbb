use std::hash::{DefaultHasher, Hash, Hasher};

use oa_types::{ContentBlock, Message};

/// A generator of ids for calls without one: nine letters and digits, the only form that every server accepts (QUIRKS
/// rows 12 and 91).
#[derive(Clone, Debug)]
pub struct MadeUpIds {
    state: u64,
    taken: Vec<String>,
}

impl MadeUpIds {
    /// Creates a generator. The same seed gives the same ids, none of which is in `taken`.
    #[must_use]
    pub fn new(seed: u64, taken: Vec<String>) -> Self {
        Self { state: seed, taken }
    }

    /// Returns the next id.
    pub fn next_id(&mut self) -> String {
        const ALPHABET: &[u8; 62] =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        loop {
            let mut number = self.next_number();
            let id: String = (0..9)
                .map(|_| {
                    let letter = ALPHABET[(number % 62) as usize];
                    number /= 62;
                    char::from(letter)
                })
                .collect();
            if !self.taken.contains(&id) {
                self.taken.push(id.clone());
                return id;
            }
        }
    }

    /// SplitMix64: every state gives a different number, so the loop above ends.
    fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// One id after the other, without end.
impl Iterator for MadeUpIds {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        Some(self.next_id())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

/// Replaces the id of a new call if a call in the conversation has it: results, approvals and viewers name a call by its
/// id, and some servers count anew in each answer.
///
/// The new id depends only on the old one and on the conversation.
pub fn replace_used_id(id: &mut String, history: &[Message]) {
    let calls =
        history.iter().flat_map(|message| &message.content).filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(&call.id),
            _ => None,
        });
    if !calls.clone().any(|used| used == id) {
        return;
    }
    let used: Vec<String> = calls.cloned().collect();
    let mut hasher = DefaultHasher::new();
    (&*id, used.len()).hash(&mut hasher);
    *id = MadeUpIds::new(hasher.finish(), used).next_id();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_one_by_one_and_in_a_row() {
        let mut ids = MadeUpIds::new(7, Vec::new());
        let first = [ids.next_id(), ids.next_id()];
        assert!(MadeUpIds::new(7, Vec::new()).take(2).eq(first.clone()));
        assert!(MadeUpIds::new(7, first.to_vec()).take(2).all(|id| !first.contains(&id)));
    }
}
