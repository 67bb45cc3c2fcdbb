//! Panics of foreign code become values, whatever the payload.

use std::future;
use std::panic::panic_any;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use oa_types::contain::{Contained, contain, discard};

/// Panics with another of its kind when it is dropped.
struct Hostile;

impl Drop for Hostile {
    fn drop(&mut self) {
        panic_any(Self);
    }
}

#[test]
fn the_message_is_kept_if_there_is_one() {
    assert_eq!(contain(|| 5).unwrap(), 5);
    let plain = contain(|| -> u8 { panic!("plain") }).unwrap_err();
    assert_eq!(plain.message(), Some("plain"));
    let made = contain(|| -> u8 { panic!("{}", "é".repeat(501)) }).unwrap_err();
    assert_eq!(made.message().map(str::len), Some(1002));
    assert_eq!(made.excerpt(), Some("é".repeat(500)));
    assert_eq!(contain(|| panic_any(5_u8)).unwrap_err().message(), None);
}

#[test]
fn what_is_thrown_may_throw_when_it_is_dropped() {
    assert_eq!(contain(|| panic_any(Hostile)).unwrap_err().message(), None);
    discard(Hostile);
}

#[test]
fn a_future_is_contained_from_its_first_poll_to_its_drop() {
    let cx = &mut Context::from_waker(Waker::noop());

    let hostile = Hostile;
    let left = Contained::new(Box::pin(async move {
        let _hostile = hostile;
        future::pending::<()>().await;
    }));
    let mut left = Box::pin(left);
    assert!(left.as_mut().poll(cx).is_pending());
    drop(left);

    let mut throws = pin!(Contained::new(Box::pin(async { panic_any(Hostile) })));
    let Poll::Ready(Err(panic)) = throws.as_mut().poll(cx) else { panic!("it threw") };
    assert_eq!(panic.message(), None);
    assert!(throws.as_mut().poll(cx).is_pending());

    // A future that panics when dropped does not change its output.
    let remains = Hostile;
    let mut ends = pin!(Contained::new(Box::pin(future::poll_fn(move |_| {
        let _here = &remains;
        Poll::Ready(7)
    }))));
    let Poll::Ready(Ok(answer)) = ends.as_mut().poll(cx) else { panic!("it ended") };
    assert_eq!(answer, 7);
}
