use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{AssistantMessage, ContentBlock, Message};

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
        loop {
            let id = nine_letters(self.next_number());
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

/// The ids of a conversation's calls. A new call must not have one of them: results, approvals and viewers name a call
/// by its id, and some servers restart their numbering in each answer (QUIRKS row 11).
#[derive(Clone, Debug, Default)]
pub struct UsedIds {
    ids: HashSet<String>,
    /// Messages with this revision or a later one were not read yet.
    next_revision: u64,
}

impl UsedIds {
    /// Reads a whole conversation.
    #[must_use]
    pub fn of(history: &[Message]) -> Self {
        let mut this = Self::default();
        this.read(history);
        this
    }

    /// Reads the messages that are new or have changed since the last call, so that a conversation that grows is read
    /// once. `revisions` has a number for each message, which grows with each change; `last` is that of the last change.
    ///
    /// Ids of messages that are gone stay used, until none of the messages read before is left.
    pub fn follow(&mut self, history: &[Message], revisions: &[u64], last: u64) {
        let first = self.next_revision;
        if last < first {
            return;
        }
        if revisions.iter().all(|revision| *revision >= first) {
            self.ids.clear();
        }
        // From the end: the last few messages are new, as a rule. If one is gone, all are searched.
        let mut left = (last - first).saturating_add(1);
        for (message, revision) in history.iter().zip(revisions).rev() {
            // Each change since has its own number, so no more messages than numbers can be new.
            if *revision >= first {
                self.read([message]);
                left -= 1;
            }
            if left == 0 {
                break;
            }
        }
        self.next_revision = last.saturating_add(1);
    }

    fn read<'a>(&mut self, messages: impl IntoIterator<Item = &'a Message>) {
        let blocks = messages.into_iter().flat_map(|message| &message.content);
        self.ids.extend(blocks.filter_map(id_of).map(str::to_owned));
    }

    /// Gives the calls of a new answer unused ids.
    pub fn replace_all(&self, answer: &mut AssistantMessage) {
        for block in &mut answer.content {
            match block {
                ContentBlock::ToolUse(call) => self.replace(&mut call.id),
                ContentBlock::ToolUseError(error) => {
                    error.id.iter_mut().for_each(|id| self.replace(id));
                }
                _ => {}
            }
        }
    }

    /// Replaces an id if it is used. The new id depends on nothing but the old one and the used ones.
    pub fn replace(&self, id: &mut String) {
        if !self.ids.contains(id) {
            return;
        }
        let mut hasher = DefaultHasher::new();
        (&*id, self.ids.len()).hash(&mut hasher);
        let free = MadeUpIds::new(hasher.finish(), Vec::new()).find(|id| !self.ids.contains(id));
        *id = free.expect("there are more ids than a conversation has calls");
    }
}

/// Returns nine letters and digits for a number. 64 bits are enough for them: 62⁹ is less than 2⁵⁴.
pub(crate) fn nine_letters(mut number: u64) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let letters = (0..9).map(|_| {
        let letter = ALPHABET[(number % 62) as usize];
        number /= 62;
        char::from(letter)
    });
    letters.collect()
}

fn id_of(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::ToolUse(call) => Some(&call.id),
        ContentBlock::ToolUseError(error) => error.id.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::ToolUseBlock;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn calls(ids: &[impl AsRef<str>]) -> Vec<ContentBlock> {
        ids.iter().map(|id| ToolUseBlock::new(id.as_ref(), "f", json!({})).into()).collect()
    }

    proptest! {
        /// A conversation never has two calls of one id, and ids that are free stay as they are.
        #[test]
        fn call_ids_are_unique_in_a_conversation(
            answers in prop::collection::vec(prop::collection::btree_set("[a-c]", 0..3), 0..12),
        ) {
            let mut history: Vec<Message> = Vec::new();
            let mut taken: Vec<String> = Vec::new();
            for ids in answers {
                let given: Vec<String> = ids.into_iter().collect();
                let mut answer = AssistantMessage::new(calls(&given));
                UsedIds::of(&history).replace_all(&mut answer);
                for (id, given) in answer.content.iter().filter_map(id_of).zip(&given) {
                    if taken.contains(given) {
                        prop_assert_eq!(id.len(), 9);
                    } else {
                        prop_assert_eq!(id, given);
                    }
                    prop_assert!(!taken.iter().any(|taken| taken == id));
                    taken.push(id.to_owned());
                }
                history.push(Message::assistant(answer.content));
            }
        }
    }

    #[test]
    fn only_changed_messages_are_read_again() {
        let calls = |ids: &[&str]| Message::assistant(calls(ids));
        let mut used = UsedIds::default();
        let is_used = |used: &UsedIds, id: &str| {
            let mut replaced = id.to_owned();
            used.replace(&mut replaced);
            replaced != id
        };
        used.follow(&[calls(&["a"]), calls(&["b"])], &[1, 2], 2);
        assert!(is_used(&used, "a") && is_used(&used, "b") && !is_used(&used, "c"));
        // The first was not changed, so it is not read again; the second was, and a third has come.
        used.follow(&[calls(&["x"]), calls(&["c"]), calls(&["d"])], &[1, 3, 4], 4);
        assert!(is_used(&used, "b") && is_used(&used, "c") && is_used(&used, "d"));
        assert!(!is_used(&used, "x"));
        // Another conversation.
        used.follow(&[calls(&["y"])], &[6], 6);
        assert!(is_used(&used, "y") && !is_used(&used, "a") && !is_used(&used, "d"));
    }

    #[test]
    fn iterator_yields_the_same_ids() {
        let mut ids = MadeUpIds::new(7, Vec::new());
        let first = [ids.next_id(), ids.next_id()];
        assert!(MadeUpIds::new(7, Vec::new()).take(2).eq(first.clone()));
        assert!(MadeUpIds::new(7, first.to_vec()).take(2).all(|id| !first.contains(&id)));
    }
}
