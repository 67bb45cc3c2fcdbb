//! Who is the least busy, as tower's balance has it: of two that are drawn, the one with less to do.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tower::Service;
use tower::balance::p2c::Balance;
use tower::discover::ServiceList;
use tower::load::Load;
use tower::util::rng::{HasherRng, Rng};

/// A server that could answer, and how busy it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) server: usize,
    pub(crate) load: f64,
}

/// Picks one.
///
/// The balance neither looks at requests nor can be shared, and it chooses for whoever comes next. So it is
/// not put in the way of requests: one is made of the candidates of the moment, which answer at once, with
/// their place. That costs a few allocations (the README of this crate says how many instructions), and
/// nothing waits in it, nothing is buffered, and no error can be lost.
pub(crate) fn least_busy(candidates: Vec<Candidate>, chance: &mut Chance) -> Option<usize> {
    if candidates.len() < 2 {
        return candidates.first().map(|only| only.server);
    }
    let first = candidates.first()?.server;
    let mut balance = Balance::from_rng(ServiceList::new::<()>(candidates), chance.fork());
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(())) = balance.poll_ready(&mut cx) else { return Some(first) };
    match Pin::new(&mut balance.call(())).poll(&mut cx) {
        Poll::Ready(Ok(server)) => Some(server),
        _ => Some(first),
    }
}

impl Load for Candidate {
    type Metric = f64;

    fn load(&self) -> f64 {
        self.load
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

/// Numbers that look random, the same ones for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Chance(HasherRng<Seeded>);

#[derive(Clone, Debug)]
struct Seeded(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(HasherRng::with_hasher(Seeded(seed)))
    }

    /// Numbers for one balance.
    fn fork(&mut self) -> HasherRng<Seeded> {
        HasherRng::with_hasher(Seeded(self.0.next_u64()))
    }
}

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
        let mut chance = Chance::new(7);
        let mut counts = vec![0; loads.len()];
        for _ in 0..times {
            let candidates = loads.iter().enumerate();
            let candidates = candidates.map(|(server, load)| Candidate { server, load: *load });
            counts[least_busy(candidates.collect(), &mut chance).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn of_two_the_less_busy_one_is_always_taken() {
        assert_eq!(picks(&[1.0, 0.0], 100), [0, 100]);
        assert_eq!(picks(&[0.5, 0.75], 100), [100, 0]);
    }

    #[test]
    fn the_busiest_of_all_is_never_taken_and_equals_share() {
        let counts = picks(&[9.0, 1.0, 1.0, 1.0], 900);
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (200..400).contains(count)), "{counts:?}");
    }

    #[test]
    fn one_is_taken_and_none_is_none() {
        assert_eq!(picks(&[3.0], 5), [5]);
        assert_eq!(least_busy(Vec::new(), &mut Chance::new(1)), None);
    }
}
