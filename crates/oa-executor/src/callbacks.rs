use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use oa_contain::{contain, discard};

use crate::event::{CallStart, ToolEvent};
use crate::result::ExecutionResult;
use crate::stream::BatchStream;

/// Callbacks for starting and finished calls, as an alternative to matching on events.
///
/// A callback that panics is not called again; the events continue.
///
/// ```
/// use oa_executor::Callbacks;
///
/// let callbacks = Callbacks::new()
///     .on_start(|start| println!("{} runs", start.tool_name))
///     .on_complete(|result| println!("{}: {}", result.tool_name, result.outcome));
/// ```
#[derive(Default)]
pub struct Callbacks {
    on_start: Option<Callback<CallStart>>,
    on_complete: Option<Callback<ExecutionResult>>,
}

type Callback<T> = Box<dyn FnMut(&T) + Send>;

impl Callbacks {
    /// Creates an empty set of callbacks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the callback for a call that starts.
    #[must_use]
    pub fn on_start(mut self, callback: impl FnMut(&CallStart) + Send + 'static) -> Self {
        self.on_start = Some(Box::new(callback));
        self
    }

    /// Sets the callback for a call that has ended.
    #[must_use]
    pub fn on_complete(mut self, callback: impl FnMut(&ExecutionResult) + Send + 'static) -> Self {
        self.on_complete = Some(Box::new(callback));
        self
    }

    fn tell(&mut self, event: &ToolEvent) {
        match event {
            ToolEvent::CallStart(start) => call(&mut self.on_start, start),
            ToolEvent::CallComplete(result) => call(&mut self.on_complete, result),
            _ => {}
        }
    }
}

fn call<T>(slot: &mut Option<Callback<T>>, of: &T) {
    let Some(callback) = slot else { return };
    if contain(|| callback(of)).is_err() {
        // Its state may be half-updated, so it is not called again.
        discard(slot.take());
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks").finish_non_exhaustive()
    }
}

/// The events of a batch, passed to [`Callbacks`] on the way; returned by [`BatchStream::observe`].
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Observed {
    events: BatchStream,
    callbacks: Callbacks,
}

impl BatchStream {
    /// Calls the callbacks for every start and completion from now on.
    pub fn observe(self, callbacks: Callbacks) -> Observed {
        Observed { events: self, callbacks }
    }
}

impl Observed {
    /// Waits for the next event.
    ///
    /// # Panics
    ///
    /// If polled outside a tokio runtime, or in one without time enabled.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ToolEvent> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns the underlying stream.
    pub fn get_ref(&self) -> &BatchStream {
        &self.events
    }

    /// Returns the underlying stream, without the callbacks.
    pub fn into_inner(self) -> BatchStream {
        self.events
    }
}

impl Stream for Observed {
    type Item = ToolEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ToolEvent>> {
        let event = Pin::new(&mut self.events).poll_next(cx);
        if let Poll::Ready(Some(event)) = &event {
            self.callbacks.tell(event);
        }
        event
    }
}
