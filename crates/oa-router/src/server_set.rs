//! A set of servers, by index.

/// The largest number of servers in a router.
pub(crate) const MAX_SERVERS: usize = 64;

/// A set of servers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ServerSet(u64);

impl ServerSet {
    pub(crate) fn insert(&mut self, server: usize) {
        self.0 |= 1 << server;
    }

    pub(crate) fn contains(self, server: usize) -> bool {
        self.0 & (1 << server) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Iterates in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_SERVERS).filter(move |server| self.contains(*server))
    }
}

impl FromIterator<usize> for ServerSet {
    fn from_iter<I: IntoIterator<Item = usize>>(servers: I) -> Self {
        let mut set = Self::default();
        for server in servers {
            set.insert(server);
        }
        set
    }
}
