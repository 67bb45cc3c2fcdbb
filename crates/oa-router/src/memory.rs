//! Remembers the last server of each conversation.

use std::collections::{BTreeMap, HashMap};

/// A bounded map from conversations to servers that evicts the least recently used.
#[derive(Debug)]
pub(crate) struct Memory {
    most: usize,
    servers: HashMap<u64, Place>,
    /// Conversations by last use.
    by_use: BTreeMap<u64, u64>,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    server: usize,
    used: u64,
}

impl Memory {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, servers: HashMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    pub(crate) fn recall(&mut self, conversation: u64) -> Option<usize> {
        let server = self.servers.get(&conversation)?.server;
        self.note(conversation, server);
        Some(server)
    }

    pub(crate) fn note(&mut self, conversation: u64, server: usize) {
        self.uses += 1;
        let place = Place { server, used: self.uses };
        if let Some(before) = self.servers.insert(conversation, place) {
            self.by_use.remove(&before.used);
        }
        self.by_use.insert(self.uses, conversation);
        if self.servers.len() > self.most
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.servers.remove(&oldest);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.servers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_not_used_for_longest_goes() {
        let mut memory = Memory::new(2);
        memory.note(10, 0);
        memory.note(20, 1);
        assert_eq!(memory.recall(10), Some(0));
        memory.note(30, 2);
        assert_eq!((memory.recall(20), memory.len(), memory.by_use.len()), (None, 2, 2));
        memory.note(10, 1);
        assert_eq!((memory.recall(10), memory.recall(30)), (Some(1), Some(2)));
        for conversation in 0..1_000 {
            memory.note(conversation, 0);
            assert!(memory.len() <= 2 && memory.by_use.len() <= 2);
        }
    }
}
