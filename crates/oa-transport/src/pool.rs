use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::connection::Connection;
use crate::peer::Peer;

/// The idle connections, by peer.
///
/// Nothing watches them: closed and expired connections are found when one is taken or returned.
pub(crate) struct Pool {
    /// A list rather than a map, because there are few peers and usually the first matches.
    idle: Mutex<Vec<PeerConnections>>,
    max_per_peer: usize,
    timeout: Duration,
}

/// The idle connections to one peer, most recently used last.
struct PeerConnections {
    peer: Arc<Peer>,
    connections: Vec<Idle>,
}

struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(max_per_peer: usize, timeout: Duration) -> Self {
        Self { idle: Mutex::default(), max_per_peer, timeout }
    }

    /// Takes the most recently used connection that is still alive.
    pub(crate) fn take(&self, peer: &Peer) -> Option<Box<Connection>> {
        loop {
            let mut idle = self.lock();
            // Keep the entry even if it becomes empty: usually the connection comes back.
            let entry = idle.iter_mut().find(|entry| *entry.peer == *peer)?;
            // The one used last is the least likely to have been closed by the server. Those in front of it
            // are left to expire, so a burst of requests does not keep its connections alive for ever.
            let latest = entry.connections.pop();
            // Check and close connections outside the lock.
            drop(idle);
            let mut latest = latest?;
            // Nobody polled the connection while it was idle, so only `is_alive` can notice that the server
            // closed it. A dead one is dropped here, and the next is tried.
            if latest.since.elapsed() < self.timeout && latest.connection.is_alive() {
                return Some(latest.connection);
            }
        }
    }

    /// Keeps a connection for the next request, up to the limit.
    pub(crate) fn put(&self, peer: &Arc<Peer>, connection: Box<Connection>) {
        if self.max_per_peer == 0 {
            return;
        }
        // Before the lock: this drops the waker of the last reader, which can run any executor's code.
        connection.rest();
        let since = Instant::now();
        let mut idle = self.lock();
        let mut surplus = Vec::new();
        // All peers are swept, because no request may ever come again to the others.
        idle.retain_mut(|PeerConnections { peer: other, connections }| {
            // `put` appends, so the oldest come first and the expired ones are a prefix.
            let old = connections
                .iter()
                .take_while(|idle| since.duration_since(idle.since) >= self.timeout)
                .count();
            if old > 0 {
                surplus.extend(connections.drain(..old));
            }
            // The entry of this peer is about to be filled.
            !connections.is_empty() || other == peer
        });
        let entry = idle.iter_mut().find(|entry| entry.peer == *peer);
        match entry {
            Some(PeerConnections { connections, .. }) => {
                if connections.len() == self.max_per_peer {
                    surplus.push(connections.remove(0));
                }
                connections.push(Idle { connection, since });
            }
            None => {
                let connections = vec![Idle { connection, since }];
                idle.push(PeerConnections { peer: Arc::clone(peer), connections });
            }
        }
        drop(idle);
        drop(surplus);
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().iter().map(|entry| entry.connections.len()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PeerConnections>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
