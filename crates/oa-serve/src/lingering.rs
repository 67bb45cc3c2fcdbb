//! Connections that are closed without losing the last answer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// The time without input after which a connection is closed.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection that reads what its peer still sends after the last answer, such as the rest of a body that was refused.
///
/// The system resets a connection that is closed with unread input. Then a client that still sends gets an error instead
/// of the answer.
#[derive(Debug)]
pub(crate) struct Lingering {
    stream: TcpStream,
    /// The longest time that it reads on.
    limit: Duration,
    closing: Option<Closing>,
}

#[derive(Debug)]
struct Closing {
    pause: Pin<Box<Sleep>>,
    until: Instant,
}

impl Lingering {
    pub(crate) fn new(stream: TcpStream, limit: Duration) -> Self {
        Self { stream, limit, closing: None }
    }
}

impl AsyncRead for Lingering {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, limit, closing } = &mut *self;
        let mut stream = Pin::new(stream);
        let closing = match closing {
            Some(closing) => closing,
            None => {
                ready!(stream.as_mut().poll_shutdown(cx))?;
                let (pause, until) = (Box::pin(sleep(PAUSE)), Instant::now() + *limit);
                closing.insert(Closing { pause, until })
            }
        };
        let mut piece = [0; 16 << 10];
        loop {
            let mut buf = ReadBuf::new(&mut piece);
            match stream.as_mut().poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                    let now = Instant::now();
                    if now >= closing.until {
                        return Poll::Ready(Ok(()));
                    }
                    closing.pause.as_mut().reset(now + PAUSE);
                }
                // The peer has closed the connection.
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return closing.pause.as_mut().poll(cx).map(Ok),
            }
        }
    }
}
