//! The cancellation signal: no lost wakeups, nothing left behind.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use oa_tools::Cancel;

use crate::wait;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_triggered_signal_stays_triggered() {
    let cancel = Cancel::default();
    assert!(!cancel.is_cancelled());
    cancel.cancel();
    cancel.cancel();
    assert!(cancel.is_cancelled() && cancel.clone().is_cancelled());
    wait(cancel.cancelled());
    assert!(cancel.child().is_cancelled());
}

#[test]
fn children_follow_their_parents_only() {
    let run = Cancel::new();
    let (one, other) = (run.child(), run.child());
    let grandchild = one.child();
    one.cancel();
    assert!(one.is_cancelled() && grandchild.is_cancelled());
    assert!(!other.is_cancelled() && !run.is_cancelled());
    run.cancel();
    assert!(other.is_cancelled());
}

#[test]
fn a_child_outlives_the_handle_of_its_parent() {
    let run = Cancel::new();
    let handle = run.clone();
    let grandchild = run.child().child();
    drop(run);
    handle.cancel();
    assert!(grandchild.is_cancelled());
}

#[test]
fn waiters_are_woken_once_by_latest_waker() {
    let cancel = Cancel::new();
    let child = cancel.child();
    let counts: Vec<Arc<Count>> = (0..4).map(|_| Arc::default()).collect();
    let mut waiting: Vec<_> = counts
        .iter()
        .zip([&cancel, &cancel, &child, &child])
        .map(|(_, cancel)| Box::pin(cancel.cancelled()))
        .collect();
    let stale = Arc::new(Count::default());
    for (count, future) in counts.iter().zip(&mut waiting) {
        for count in [&stale, count] {
            let waker = Waker::from(Arc::clone(count));
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
    }
    drop(waiting.pop());
    cancel.cancel();
    let woken: Vec<usize> = counts.iter().map(|count| count.0.load(Ordering::SeqCst)).collect();
    assert_eq!((woken, stale.0.load(Ordering::SeqCst)), (vec![1, 1, 1, 0], 0));
    for future in &mut waiting {
        assert_eq!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
    }
}

#[test]
fn wakers_may_reenter_the_signal() {
    /// Uses the signal and drops its waiters while being woken.
    struct Reenter(Cancel);
    impl Wake for Reenter {
        fn wake(self: Arc<Self>) {
            self.0.cancel();
            let mut waiting = pin!(self.0.cancelled());
            let mut cx = Context::from_waker(Waker::noop());
            assert!(waiting.as_mut().poll(&mut cx).is_ready());
            assert!(self.0.child().is_cancelled());
        }
    }
    let cancel = Cancel::new();
    let mut waiting = Box::pin(cancel.cancelled());
    let waker = Waker::from(Arc::new(Reenter(cancel.clone())));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    cancel.cancel();
}

#[test]
fn no_wakeup_is_lost_between_threads() {
    for _ in 0..2_000 {
        let cancel = Cancel::new();
        let child = cancel.child();
        thread::scope(|scope| {
            scope.spawn(|| wait(child.cancelled()));
            scope.spawn(|| wait(cancel.child().cancelled()));
            scope.spawn(|| cancel.cancel());
        });
    }
}
