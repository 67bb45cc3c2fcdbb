//! Foreign code (tools, hooks, conditions, jobs) whose panics are values. For the crates of this
//! workspace; it is no part of what is kept stable.

use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs foreign code, and returns its panic as a value.
///
/// What it left half done is not looked at again: either it is dropped, or it is the user's own and as
/// it would be after a panic in a task.
///
/// # Errors
///
/// The panic.
pub fn contain<T>(run: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(run)).map_err(Panic::new)
}

/// Drops what is foreign; a panic of that is nobody's concern.
pub fn discard<T>(foreign: T) {
    let _: Result<(), Panic> = contain(move || drop(foreign));
}

/// What a panic said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Panic(Option<String>);

impl Panic {
    fn new(payload: Box<dyn Any + Send>) -> Self {
        let payload = match payload.downcast::<String>() {
            Ok(message) => return Self(Some(*message)),
            Err(payload) => payload,
        };
        let message = payload.downcast_ref::<&str>().map(|message| (*message).to_owned());
        // Dropping what was thrown may throw again, and that again: it is leaked.
        if let Err(again) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
            mem::forget(again);
        }
        Self(message)
    }

    /// Returns its message, if it has one.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Returns the first 500 characters of its message: as much as a model is told.
    #[must_use]
    pub fn excerpt(&self) -> Option<String> {
        self.message().map(|message| message.chars().take(EXCERPT).collect())
    }
}

const EXCERPT: usize = 500;

/// A foreign future whose panics are values, those of being dropped too.
pub struct Contained<F: ?Sized>(Option<Pin<Box<F>>>);

impl<F: Future + ?Sized> Contained<F> {
    /// Takes the future.
    #[must_use]
    pub fn new(future: Pin<Box<F>>) -> Self {
        Self(Some(future))
    }
}

impl<F: Future + ?Sized> Future for Contained<F> {
    type Output = Result<F::Output, Panic>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // After its end it is never ready again.
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let output = match contain(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panic) => Err(panic),
        };
        // The answer stands, whatever its remains do.
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
