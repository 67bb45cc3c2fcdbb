//! Remembers the last server of each conversation.

use std::collections::{BTreeMap, HashMap};

/// A bounded map from conversations to servers that evicts the least recently used.
#[derive(Debug)]
pub(crate) struct Affinity {
    capacity: usize,
    servers: HashMap<u64, Entry>,
    /// Conversations by last use.
    by_use: BTreeMap<u64, u64>,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    server: usize,
    used: u64,
}

impl Affinity {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, servers: HashMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    pub(crate) fn lookup(&mut self, conversation: u64) -> Option<usize> {
        let server = self.servers.get(&conversation)?.server;
        self.record(conversation, server);
        Some(server)
    }

    pub(crate) fn record(&mut self, conversation: u64, server: usize) {
        self.uses += 1;
        // `uses` is a clock that never repeats, so each conversation has exactly one key in `by_use`: the old
        // one is removed with every use, and both maps have the same length.
        let entry = Entry { server, used: self.uses };
        if let Some(before) = self.servers.insert(conversation, entry) {
            self.by_use.remove(&before.used);
        }
        self.by_use.insert(self.uses, conversation);
        if self.servers.len() > self.capacity
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
    fn the_least_recently_used_is_evicted() {
        let mut affinity = Affinity::new(2);
        affinity.record(10, 0);
        affinity.record(20, 1);
        assert_eq!(affinity.lookup(10), Some(0));
        affinity.record(30, 2);
        assert_eq!((affinity.lookup(20), affinity.len(), affinity.by_use.len()), (None, 2, 2));
        affinity.record(10, 1);
        assert_eq!((affinity.lookup(10), affinity.lookup(30)), (Some(1), Some(2)));
        for conversation in 0..1_000 {
            affinity.record(conversation, 0);
            assert!(affinity.len() <= 2 && affinity.by_use.len() <= 2);
        }
    }
}
