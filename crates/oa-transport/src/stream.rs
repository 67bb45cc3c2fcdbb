use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::relay::Relay;

/// A byte stream to a peer.
pub(crate) enum Stream {
    Tcp(TcpStream),
    /// An encrypted stream, or a custom connector's. The lock is never taken; it only makes the type `Sync`.
    Other(Mutex<Box<dyn Duplex>>),
}

impl Stream {
    pub(crate) fn other(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self::Other(Mutex::new(Box::new(stream)))
    }
}

/// Both directions as one trait.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Calls a method on the inner stream.
macro_rules! each {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            Stream::Tcp(inner) => {
                let $inner = Pin::new(inner);
                $call
            }
            Stream::Other(inner) => {
                let $inner = Pin::new(inner.get_mut().unwrap_or_else(PoisonError::into_inner));
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self.get_mut(), inner => inner.poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self.get_mut(), inner => inner.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self.get_mut(), inner => inner.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Other(stream) => {
                stream.lock().unwrap_or_else(PoisonError::into_inner).is_write_vectored()
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), inner => inner.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), inner => inner.poll_shutdown(cx))
    }
}

/// A stream that reports received bytes to the relay and does not let a failed write hide a response.
///
/// A server may reject a large request before reading all of it (413, 401), respond and close. Writing then
/// fails while the response is waiting in the socket. So when the peer is gone, writing stops silently and
/// reading reports the rest, ending with an end or an error of its own.
pub(crate) struct Wire {
    stream: Stream,
    relay: Arc<Relay>,
    is_mute: bool,
}

impl Wire {
    pub(crate) fn new(stream: Stream, relay: Arc<Relay>) -> Self {
        Self { stream, relay, is_mute: false }
    }

    fn poll_speak<T>(
        &mut self,
        speak: impl FnOnce(Pin<&mut Stream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        // `Pending` without a waker is safe here: hyper polls the read half before each write, so the task is
        // woken by the response or by the end of the stream.
        if self.is_mute {
            return Poll::Pending;
        }
        match speak(Pin::new(&mut self.stream)) {
            Poll::Ready(Err(error))
                if matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset) =>
            {
                self.is_mute = true;
                Poll::Pending
            }
            spoken => spoken,
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buf);
        this.relay.hear(&buf.filled()[before..]);
        polled
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_speak(|stream| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_speak(|stream| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_speak(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_speak(|stream| stream.poll_shutdown(cx))
    }
}
