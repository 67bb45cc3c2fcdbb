//! Turns panics of foreign code (tools, hooks, conditions, jobs) into values. For the crates of this workspace;
//! not part of the stable API.

use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs foreign code and returns its panic as a value.
///
/// Asserting unwind safety is sound here: state that the code left half-updated is either dropped or belongs to
/// the user, who sees what they would after a panic in a task.
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

/// The message of a panic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Panic(Option<String>);

impl Panic {
    fn new(payload: Box<dyn Any + Send>) -> Self {
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

    /// Returns the panic message, if it is text.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Returns the first 500 characters of the panic message, the most that a model is shown.
    #[must_use]
    pub fn excerpt(&self) -> Option<String> {
        self.message().map(|message| message.chars().take(EXCERPT).collect())
    }
}

const EXCERPT: usize = 500;

/// A foreign future whose panics, including those in its destructor, become values.
pub struct Contained<F: ?Sized>(Option<Pin<Box<F>>>);

impl<F: Future + ?Sized> Contained<F> {
    /// Wraps a future.
    #[must_use]
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
        // The output stands, even if dropping the future panics.
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
