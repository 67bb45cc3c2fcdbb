//! Turns panics in foreign code into values: in closures ([`contain`]), in futures ([`Contained`]), and in destructors
//! ([`discard`]).
//!
//! Foreign code is whatever users pass in: tools, hooks, conditions, jobs. Its panic must end the call that it was made
//! for, and nothing else. [`catch_unwind`] alone leaves three gaps, which this crate closes: the payload of a panic may
//! panic when it is dropped, a future runs foreign code at every poll, and a value may panic in its destructor.
//!
//! # When to use this crate directly
//!
//! To run other people's closures or futures inside your own loop. To run an agent, use the facade `open-agent`, which
//! contains the panics of tools, hooks and callbacks.
//!
//! ```
//! use oa_contain::{contain, discard};
//!
//! let panic = contain(|| -> u8 { panic!("no such plugin") }).unwrap_err();
//! assert_eq!(panic.message(), Some("no such plugin"));
//!
//! struct Hostile;
//!
//! impl Drop for Hostile {
//!     fn drop(&mut self) {
//!         panic!("not without a fight");
//!     }
//! }
//!
//! discard(Hostile); // the program continues
//! ```
//!
//! # Not included
//!
//! Nothing is caught where panics abort (`panic = "abort"`), and the panic hook still runs, which by default prints
//! the message to the standard error stream.

use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs foreign code and returns its panic as a value.
///
/// Unwind safety is asserted, not required: drop any state that the code may have left half-updated, unless the state
/// belongs to the code's author, who would see the same after a panic in a thread.
///
/// # Errors
///
/// The panic, if `run` panicked.
pub fn contain<T>(run: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(run)).map_err(Panic::new)
}

/// Drops a foreign value and ignores a panic in its destructor.
pub fn discard<T>(foreign: T) {
    let _: Result<(), Panic> = contain(move || drop(foreign));
}

/// A panic that was caught; all that is kept of it is its message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Panic(Option<String>);

impl Panic {
    fn new(payload: Box<dyn Any + Send>) -> Self {
        // A `String` for a formatted message, a `&str` for a literal, and anything for `panic_any`.
        let payload = match payload.downcast::<String>() {
            Ok(message) => return Self(Some(*message)),
            Err(payload) => payload,
        };
        let message = payload.downcast_ref::<&str>().map(|message| (*message).to_owned());
        // Dropping the payload may panic, and so may dropping that panic's payload: leak it.
        if let Err(again) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
            mem::forget(again);
        }
        Self(message)
    }

    /// Returns the panic message; `None` if the payload is not text.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Returns the first 500 characters of the panic message, for readers such as a model; `None` if the payload is
    /// not text.
    #[must_use]
    pub fn excerpt(&self) -> Option<String> {
        self.message().map(|message| message.chars().take(EXCERPT).collect())
    }
}

const EXCERPT: usize = 500;

/// A foreign future whose panics, including those in its destructor, become values.
///
/// It completes with the future's output, or with the panic that stopped the future. If polled again after that, it
/// stays pending.
///
/// # Cancel safety
///
/// Dropping it drops the future; a panic in the future's destructor is ignored.
#[must_use = "futures do nothing unless polled"]
pub struct Contained<F: ?Sized>(Option<Pin<Box<F>>>);

impl<F: Future + ?Sized> Contained<F> {
    /// Wraps a future.
    pub fn new(future: Pin<Box<F>>) -> Self {
        Self(Some(future))
    }
}

impl<F: Future + ?Sized> Future for Contained<F> {
    type Output = Result<F::Output, Panic>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Polled again after it finished: stay pending rather than panic.
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let output = match contain(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panic) => Err(panic),
        };
        // Dropped here rather than with the wrapper, so that what the future holds is free once it has ended.
        // The output stands, even if dropping panics.
        discard(self.0.take());
        Poll::Ready(output)
    }
}

impl<F: ?Sized> Drop for Contained<F> {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

impl<F: ?Sized> fmt::Debug for Contained<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contained").field("has_ended", &self.0.is_none()).finish()
    }
}

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
