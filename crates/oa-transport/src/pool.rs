use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::connection::Connection;
use crate::peer::Peer;

/// The connections on which nothing happens, by peer.
///
/// Nobody watches them: that one was closed, or has been here too long, is found when something is
/// taken or put.
pub(crate) struct Pool {
    /// A list, because there are few peers: mostly it is the first.
    idle: Mutex<Vec<Place>>,
    max_per_peer: usize,
    timeout: Duration,
}

/// The connections to one peer, the one used last behind.
struct Place {
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

    /// Takes a connection that still seems to work, the one used last.
    pub(crate) fn take(&self, peer: &Peer) -> Option<Box<Connection>> {
        loop {
            let mut idle = self.lock();
            // The place of the last one stays: mostly it comes back.
            let place = idle.iter_mut().find(|place| *place.peer == *peer)?;
            let latest = place.connections.pop();
            // What is looked at, or closed, is so outside of the lock.
            drop(idle);
            let mut latest = latest?;
            if latest.since.elapsed() < self.timeout && latest.connection.is_alive() {
                return Some(latest.connection);
            }
        }
    }

    /// Keeps a connection for the next request, unless there are enough.
    pub(crate) fn put(&self, peer: &Arc<Peer>, connection: Box<Connection>) {
        if self.max_per_peer == 0 {
            return;
        }
        connection.rest();
        let since = Instant::now();
        let mut idle = self.lock();
        let mut surplus = Vec::new();
        idle.retain_mut(|Place { peer: other, connections }| {
            let old = connections
                .iter()
                .take_while(|idle| since.duration_since(idle.since) >= self.timeout)
                .count();
            if old > 0 {
                surplus.extend(connections.drain(..old));
            }
            !connections.is_empty() || other == peer
        });
        let place = idle.iter_mut().find(|place| place.peer == *peer);
        match place {
            Some(Place { connections, .. }) => {
                if connections.len() == self.max_per_peer {
                    surplus.push(connections.remove(0));
                }
                connections.push(Idle { connection, since });
            }
            None => {
                let connections = vec![Idle { connection, since }];
                idle.push(Place { peer: Arc::clone(peer), connections });
            }
        }
        drop(idle);
        drop(surplus);
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().iter().map(|place| place.connections.len()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Place>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
