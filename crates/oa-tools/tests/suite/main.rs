//! Tools through their public interface.

mod arguments;
mod builder;
mod cancel;
mod context;
mod errors;
mod forms;
mod laws;
mod order;
mod registry;
mod schema;
mod strict;
#[cfg(feature = "schemars")]
mod typed;
#[cfg(feature = "jsonschema")]
mod validator;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

/// Drives a future on this thread, parked while it waits.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let mut future = pin!(future);
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
