//! The end of a body whose answer is complete.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::body::AnyBody;

/// The longest wait for the last bytes of a body after `[DONE]`, so that the connection can be reused.
const LAST_BYTES: Duration = Duration::from_millis(100);

/// The maximum number of frames read after that, because a server that sends more will not stop.
const LAST_FRAMES: u32 = 16;

/// Waits briefly for the end of a body, so that the connection can be reused.
pub struct Closing {
    body: AnyBody,
    timer: Option<Pin<Box<Sleep>>>,
    frames: u32,
}

impl Closing {
    pub(crate) fn new(body: AnyBody) -> Self {
        Self { body, timer: None, frames: 0 }
    }
}

impl fmt::Debug for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closing").field("frames", &self.frames).finish_non_exhaustive()
    }
}

impl Future for Closing {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { body, timer, frames } = &mut *self;
        loop {
            match body.poll_frame(cx) {
                Poll::Ready(Some(Ok(_))) if *frames < LAST_FRAMES => *frames += 1,
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    // Mostly the end has arrived with `[DONE]`, and no timer is needed.
                    let timer = timer.get_or_insert_with(|| Box::pin(sleep(LAST_BYTES)));
                    return timer.as_mut().poll(cx);
                }
            }
        }
    }
}
