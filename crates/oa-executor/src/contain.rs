use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use oa_tools::ErrorBody;

/// How much of a panic's text is kept, in characters.
const TEXT: usize = 500;

/// What a panic said.
#[derive(Debug)]
pub(crate) struct Panic(String);

impl Panic {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        let text = match payload.downcast_ref::<&str>() {
            Some(text) => *text,
            None => payload.downcast_ref::<String>().map_or("", String::as_str),
        };
        let text = text.chars().take(TEXT).collect();
        // Dropping what was thrown may throw again, and that again: it is leaked.
        if let Err(again) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
            mem::forget(again);
        }
        Self(text)
    }

    pub(crate) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn into_body(self) -> ErrorBody {
        let body = ErrorBody::new("", "the tool panicked");
        if self.0.is_empty() { body } else { body.with_reason(self.0) }
    }
}

/// Runs foreign code, and returns its panic as a value.
///
/// What it left half done is not looked at again: either it is dropped, or it is the user's own and as
/// it would be after a panic in a task.
pub(crate) fn contain<T>(run: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(run)).map_err(Panic::new)
}

/// A foreign future whose panics are values, those of being dropped too.
pub(crate) struct Contained<F>(Option<Pin<Box<F>>>);

impl<F: Future> Contained<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<F: Future> Future for Contained<F> {
    type Output = Result<F::Output, Panic>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        match contain(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

impl<F> Drop for Contained<F> {
    fn drop(&mut self) {
        let future = self.0.take();
        let _ = contain(move || drop(future));
    }
}
