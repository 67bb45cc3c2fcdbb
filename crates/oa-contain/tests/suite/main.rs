//! Panics of foreign code become values, whatever the payload.

use std::future;
use std::panic::panic_any;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use oa_contain::{Contained, contain, discard};

/// Panics with another of its kind when it is dropped.
struct Hostile;

impl Drop for Hostile {
    fn drop(&mut self) {
        panic_any(Self);
    }
}

#[test]
fn text_payloads_become_messages() {
    assert_eq!(contain(|| 5).unwrap(), 5);
    let plain = contain(|| -> u8 { panic!("plain") }).unwrap_err();
    assert_eq!(plain.message(), Some("plain"));
    let made = contain(|| -> u8 { panic!("{}", "é".repeat(501)) }).unwrap_err();
    assert_eq!(made.message().map(str::len), Some(1002));
    assert_eq!(made.excerpt(), Some("é".repeat(500)));
    assert_eq!(contain(|| panic_any(5_u8)).unwrap_err().message(), None);
}

#[test]
fn payloads_may_panic_on_drop() {
    assert_eq!(contain(|| panic_any(Hostile)).unwrap_err().message(), None);
    discard(Hostile);
}

#[test]
fn futures_are_contained_until_drop() {
    let cx = &mut Context::from_waker(Waker::noop());

    let hostile = Hostile;
    let left = Contained::new(Box::pin(async move {
        let _hostile = hostile;
        future::pending::<()>().await;
    }));
    let mut left = Box::pin(left);
    assert!(left.as_mut().poll(cx).is_pending());
    drop(left);

    let mut panics = pin!(Contained::new(Box::pin(async { panic_any(Hostile) })));
    let Poll::Ready(Err(panic)) = panics.as_mut().poll(cx) else { panic!("it panicked") };
    assert_eq!(panic.message(), None);
    assert!(panics.as_mut().poll(cx).is_pending());

    // A future that panics when dropped does not change its output.
    let remains = Hostile;
    let mut ends = pin!(Contained::new(Box::pin(future::poll_fn(move |_| {
        let _here = &remains;
        Poll::Ready(7)
    }))));
    let Poll::Ready(Ok(answer)) = ends.as_mut().poll(cx) else { panic!("it ended") };
    assert_eq!(answer, 7);
}

#[test]
fn a_panic_in_a_later_poll_is_contained() {
    let cx = &mut Context::from_waker(Waker::noop());
    let mut polls = 0;
    let future: Pin<Box<dyn Future<Output = u8> + Send>> = Box::pin(future::poll_fn(move |_| {
        polls += 1;
        if polls < 3 { Poll::Pending } else { panic!("poll {polls}") }
    }));
    let mut contained = pin!(Contained::new(future));
    assert!(contained.as_mut().poll(cx).is_pending());
    assert!(contained.as_mut().poll(cx).is_pending());
    let Poll::Ready(Err(panic)) = contained.as_mut().poll(cx) else { panic!("it panicked") };
    assert_eq!(panic.message(), Some("poll 3"));
    assert_eq!(format!("{contained:?}"), "Contained { has_ended: true }");
}

#[test]
fn a_future_is_dropped_when_it_ends() {
    let cx = &mut Context::from_waker(Waker::noop());
    let held = Arc::new(());
    for ends in [true, false] {
        let captured = Arc::clone(&held);
        let mut contained = pin!(Contained::new(Box::pin(async move {
            let _captured = captured;
            assert!(ends, "it panics");
        })));
        assert_eq!(Arc::strong_count(&held), 2);
        assert!(contained.as_mut().poll(cx).is_ready());
        assert_eq!(Arc::strong_count(&held), 1, "although the wrapper is still here");
    }
}

#[test]
fn discard_contains_panicking_destructors() {
    let held = Arc::new(());
    // The second member is dropped although the first one panics.
    discard((Hostile, Arc::clone(&held)));
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn excerpts_end_after_500_characters() {
    for (length, wanted) in [(0, 0), (499, 499), (500, 500), (501, 500), (100_000, 500)] {
        let panic = contain(|| -> u8 { panic!("{}", "x".repeat(length)) }).unwrap_err();
        assert_eq!(panic.message().map(str::len), Some(length));
        assert_eq!(panic.excerpt().map(|excerpt| excerpt.len()), Some(wanted));
    }
}
