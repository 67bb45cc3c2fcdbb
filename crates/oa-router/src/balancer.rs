//! Finds the least busy server with tower's balancer: of two random servers, the one with the lower load.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use tower::Service;
use tower::balance::p2c::Balance;
use tower::discover::Change;
use tower::load::Load;
use tower::util::rng::HasherRng;

use crate::server_set::ServerSet;

/// A balancer that chooses a server instead of forwarding requests.
///
/// Its services are the servers' indices and respond immediately. Before each choice it receives the available
/// servers as discovery events. So nothing waits in it, nothing is buffered, and no error can be lost.
pub(crate) struct Balancer {
    balance: Balance<Discovery, ()>,
    discovery: Discovery,
    /// The servers that the balancer currently knows.
    known: ServerSet,
    loads: Vec<Arc<AtomicU64>>,
}

/// A server's index and its load.
#[derive(Debug)]
struct Candidate {
    server: usize,
    /// The load as the bits of a float.
    load: Arc<AtomicU64>,
}

/// The queue of discovery events.
#[derive(Clone, Debug, Default)]
struct Discovery(Arc<Mutex<VecDeque<Change<usize, Candidate>>>>);

impl Balancer {
    pub(crate) fn new(servers: usize, seed: u64) -> Self {
        let discovery = Discovery::default();
        let balance = Balance::from_rng(discovery.clone(), HasherRng::with_hasher(Seeded(seed)));
        let loads = (0..servers).map(|_| Arc::default()).collect();
        Self { balance, discovery, known: ServerSet::default(), loads }
    }

    /// Picks one of these servers; `None` if there are none.
    pub(crate) fn pick(&mut self, of: ServerSet, load: impl Fn(usize) -> f64) -> Option<usize> {
        // Without a choice the balancer is not asked. `known` stays as it was, and the next choice catches
        // up.
        let first = of.iter().next()?;
        if of.iter().nth(1).is_none() {
            return Some(first);
        }
        for server in of.iter() {
            self.loads[server].store(load(server).to_bits(), Ordering::Relaxed);
        }
        if of != self.known {
            let gone = self.known.without(of).iter().map(Change::Remove);
            let come = of.without(self.known).iter().map(|server| {
                let load = Arc::clone(&self.loads[server]);
                Change::Insert(server, Candidate { server, load })
            });
            self.discovery.lock().extend(gone.chain(come));
            self.known = of;
        }
        let mut cx = Context::from_waker(Waker::noop());
        // Applies all changes: discovery is read until it is pending, and every candidate is ready at once.
        // The fallbacks stand in for a panic, with a server that is allowed.
        let Poll::Ready(Ok(())) = self.balance.poll_ready(&mut cx) else { return Some(first) };
        match Pin::new(&mut self.balance.call(())).poll(&mut cx) {
            Poll::Ready(Ok(server)) => Some(server),
            _ => Some(first),
        }
    }
}

impl fmt::Debug for Balancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Balancer").field("known", &self.known).finish_non_exhaustive()
    }
}

impl Load for Candidate {
    type Metric = f64;

    fn load(&self) -> f64 {
        f64::from_bits(self.load.load(Ordering::Relaxed))
    }
}

impl Service<()> for Candidate {
    type Response = usize;
    type Error = Infallible;
    type Future = Ready<Result<usize, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, (): ()) -> Self::Future {
        ready(Ok(self.server))
    }
}

impl Discovery {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Change<usize, Candidate>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream for Discovery {
    type Item = Result<Change<usize, Candidate>, Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // No waker is registered, because every choice polls again.
        self.lock().pop_front().map_or(Poll::Pending, |change| Poll::Ready(Some(Ok(change))))
    }
}

/// A random number generator with a fixed seed.
#[derive(Clone, Debug)]
struct Seeded(u64);

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(loads: &[f64], times: usize) -> Vec<usize> {
        let mut balancer = Balancer::new(loads.len(), 7);
        let mut counts = vec![0; loads.len()];
        for _ in 0..times {
            counts[balancer.pick((0..loads.len()).collect(), |server| loads[server]).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn less_busy_of_two_is_picked() {
        assert_eq!(picks(&[1.0, 0.0], 100), [0, 100]);
        assert_eq!(picks(&[0.5, 0.75], 100), [100, 0]);
    }

    #[test]
    fn busiest_is_never_picked() {
        let counts = picks(&[9.0, 1.0, 1.0, 1.0], 900);
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (200..400).contains(count)), "{counts:?}");
    }

    #[test]
    fn only_available_servers_are_picked() {
        let mut balancer = Balancer::new(6, 1);
        let mut bits = 1_u64;
        for _ in 0..2_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let of: ServerSet = (0..6).filter(|server| bits >> (40 + server) & 1 == 1).collect();
            match balancer.pick(of, |_| 0.0) {
                Some(server) => assert!(of.contains(server)),
                None => assert!(of.is_empty()),
            }
            assert!(balancer.balance.len() <= 6);
        }
    }

    #[test]
    fn picks_use_current_loads() {
        let (mut balancer, both) = (Balancer::new(2, 1), [0, 1].into_iter().collect());
        for busy in [0, 1, 1, 0, 1, 0] {
            let load = |server| if server == busy { 5.0 } else { 4.0 };
            assert_eq!(balancer.pick(both, load), Some(1 - busy));
        }
    }
}
