use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::connection::Connection;
use crate::error::Error;
use crate::peer::Peer;
use crate::pool::Pool;

/// A response body. It holds its connection and drives it while being read.
///
/// Reading it to the end returns the connection to the pool. Dropping it earlier closes the connection
/// immediately, which tells the server to stop generating; the connection is kept if only the end of the body
/// was missing and it has already arrived.
///
/// Chunks are yielded as they arrive, without buffering.
///
/// # Errors
///
/// As [`chunk`](Self::chunk); the body ends after an error.
///
/// # Cancel safety
///
/// A future waiting for the next frame may be dropped without losing data.
#[must_use = "bodies do nothing unless polled"]
pub struct ResponseBody {
    /// `None` once the end was read or the body broke off.
    reading: Option<Reading>,
    /// The error in place of a body that cannot be decoded. The reader of the head still sees the status.
    refused: Option<Error>,
    received: u64,
}

struct Reading {
    connection: Box<Connection>,
    incoming: Incoming,
    peer: Arc<Peer>,
    pool: Arc<Pool>,
}

impl ResponseBody {
    pub(crate) fn new(
        connection: Box<Connection>,
        incoming: Incoming,
        peer: Arc<Peer>,
        pool: Arc<Pool>,
        coding: Option<&'static str>,
    ) -> Self {
        let refused = coding.map(|coding| Error::coding(&peer, coding));
        let reading = Reading { connection, incoming, peer, pool };
        // A response without a body gives its connection back here, because its reader may never poll.
        let reading = if reading.incoming.is_end_stream() {
            reading.finish();
            None
        } else {
            Some(reading)
        };
        Self { reading, refused, received: 0 }
    }

    /// Waits for the next chunk; `None` at the end of the body.
    ///
    /// # Errors
    ///
    /// [`Broken`](crate::ErrorKind::Broken), or [`Protocol`](crate::ErrorKind::Protocol) for a transfer coding besides
    /// `chunked`. After an error, it returns `None`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            match poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await {
                // Trailers are not part of the body.
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => return Err(error),
                None => return Ok(None),
            }
        }
    }

    /// Returns the number of body bytes read so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }
}

impl Reading {
    /// Returns the connection to the pool, unless the server closed it or responded before reading the whole
    /// request.
    fn finish(self) {
        if self.connection.is_idle() {
            self.pool.put(&self.peer, self.connection);
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        let Some(reading) = &mut this.reading else {
            return Poll::Ready(None);
        };
        if let Some(error) = this.refused.take() {
            this.reading = None;
            return Poll::Ready(Some(Err(error)));
        }
        let frame = ready!(reading.connection.poll_frame(&mut reading.incoming, cx));
        if let Some(Ok(frame)) = frame {
            if let Some(data) = frame.data_ref() {
                this.received += data.len() as u64;
            }
            return Poll::Ready(Some(Ok(frame)));
        }
        // The end or an error: the connection goes back to the pool, or is closed by the drop of `reading`.
        let reading = this.reading.take();
        Poll::Ready(reading.and_then(|reading| match frame {
            Some(Err(error)) => {
                // hyper counts down from the content length; for a chunked body there is no exact size.
                let announced = reading.incoming.size_hint().exact();
                let error = Error::broken(&reading.peer, this.received, announced, error);
                Some(Err(error))
            }
            _ => {
                reading.finish();
                None
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.reading.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.reading {
            Some(reading) => reading.incoming.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        // While panicking, the connection is just closed: a foreign stream that is polled could panic again.
        // A reader that stops at the stream's `[DONE]` has read everything but the last chunk.
        if let Some(mut reading) = self.reading.take()
            && !thread::panicking()
            && reading.connection.is_at_end(&mut reading.incoming)
        {
            reading.finish();
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("received", &self.received)
            .field("ended", &self.reading.is_none())
            .finish_non_exhaustive()
    }
}
