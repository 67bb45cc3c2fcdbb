//! The server on a loopback socket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time;

use crate::act::{Act, Opening, PlannedResponse};
use crate::http1::{self, Inbox, Malformed};
use crate::reply::{Closing, Ending, Framing};
use crate::requests::{Request, RequestParts};
use crate::script::Script;
use crate::stage::{Curtain, Playing, Stage};

/// A server on a loopback socket that plays a [`Script`] over HTTP/1.1.
///
/// Serves any number of concurrent connections. Dropping it stops it: tasks are aborted, connections closed,
/// and the script is [verified](Self::verify).
///
/// A client counts as gone when it has closed its side of the connection: one that only closes it for writing
/// does not get its response.
///
/// Do not pause time in a test with sockets: tokio would skip to the next timer while bytes are in transit.
///
/// # Examples
///
/// ```
/// use oa_testkit::{Reply, SocketServer};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::TcpStream;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = SocketServer::start(Reply::text("Hello").announce_close()).await?;
///
/// let mut client = TcpStream::connect(server.address()).await?;
/// let request = "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";
/// client.write_all(request.as_bytes()).await?;
/// let mut response = String::new();
/// client.read_to_string(&mut response).await?;
/// assert!(response.starts_with("HTTP/1.1 200 OK\r\n"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SocketServer {
    accepting: JoinHandle<()>,
    address: SocketAddr,
    curtain: Curtain,
}

impl SocketServer {
    /// Starts a server that plays `script`, on a free port.
    ///
    /// # Errors
    ///
    /// If the socket cannot be opened.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O and time enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn start(script: impl Into<Script>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let stage = Stage::new(script.into());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&stage)));
        Ok(Self { accepting, address, curtain: Curtain { stage } })
    }

    /// Stops the server; returns when the port is closed and every connection is closed, so new connections are
    /// refused.
    ///
    /// # Panics
    ///
    /// The same as [`verify`](Self::verify).
    ///
    /// # Cancel safety
    ///
    /// The server stops even if the future is dropped.
    pub async fn stop(mut self) {
        self.curtain.stage.stop();
        self.accepting.abort();
        // An aborted task is expected.
        let _ = (&mut self.accepting).await;
        self.curtain.stage.wait_for_close(Duration::MAX).await;
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL for clients: `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the number of connections opened so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.curtain.stage.connections()
    }

    /// Returns the number of connections not yet closed by both sides.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.curtain.stage.open_connections()
    }

    /// Returns the requests so far, in order of arrival: the latest 1,024, or fewer if their bodies exceed 64
    /// MiB.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.curtain.stage.requests()
    }

    /// Describes the script, the requests, and any problems so far.
    #[must_use]
    pub fn story(&self) -> String {
        self.curtain.stage.story()
    }

    /// Checks that the script was played as written.
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if a request did not meet an expectation or came after the end of the
    /// script, or if a reply was not played.
    #[track_caller]
    pub fn verify(&self) {
        self.curtain.stage.verify();
    }

    /// Waits until a client closes a connection before the end of a response, and returns the first such
    /// request.
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if that takes longer than `limit`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn wait_for_abort(&self, limit: Duration) -> Request {
        self.curtain.stage.wait_for_abort(limit).await
    }

    /// Waits until no connection is open.
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if that takes longer than `limit`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn wait_for_close(&self, limit: Duration) {
        self.curtain.stage.wait_for_close(limit).await;
    }

    /// Waits until a condition on the requests holds. It is checked whenever a request arrives, a response
    /// ends, or a connection opens or closes.
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if that takes longer than `limit`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn wait_until<F>(&self, limit: Duration, condition: F)
    where
        F: FnMut(&[Request]) -> bool,
    {
        self.curtain.stage.wait_until(limit, condition).await;
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        self.curtain.stage.stop();
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, stage: Arc<Stage>) {
    // Dropped with this task, which aborts its tasks.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&stage)));
                }
                // Most likely out of file descriptors; some will be closed soon.
                Err(_) => time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The fate of a connection after a response.
enum Next {
    Close,
    Keep,
    Reset,
}

async fn serve(stream: TcpStream, stage: Arc<Stage>) {
    let (number, _open) = stage.connect();
    // Dropped before the guard, so that a connection is closed before it stops counting as open.
    let mut stream = stream;
    // Any failure here or below means that the client is gone.
    let _ = converse(&mut stream, number, &stage).await;
}

async fn converse(stream: &mut TcpStream, number: usize, stage: &Arc<Stage>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut inbox = Inbox::default();
    loop {
        let request = match inbox.next_request() {
            Ok(Some(request)) => request,
            Ok(None) => {
                if inbox.wants_continue() {
                    stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                }
                if stream.read_buf(&mut inbox.buffer).await? == 0 {
                    return Ok(());
                }
                continue;
            }
            Err(malformed) => {
                stage.note(format!("connection {number} was refused: {}", malformed.reason));
                stream.write_all(&refusal(&malformed)).await?;
                return close(stream).await;
            }
        };

        let (closes, old) = (request.closes(), request.old);
        let (body, headers, method, uri) =
            (request.body, request.headers, request.method, request.uri);
        let connection = Some(number);
        let (mut act, playing) = stage.ask(RequestParts { body, connection, headers, method, uri });
        if let Opening::Response(answer) = &mut act.opening {
            // HTTP/1.0 has no chunks: the end of the connection is the end of the body.
            if old && answer.framing == Framing::Chunked {
                answer.framing = Framing::Close;
            }
            if closes && answer.closing == Closing::Keep {
                answer.closing = Closing::Announced;
            }
        }

        let (mut reader, mut writer) = stream.split();
        let next = tokio::select! {
            // A response that can be written counts as sent, even if its reader is gone by then.
            biased;
            next = play(&mut writer, act, &playing) => next?,
            () = gone(&mut reader, &mut inbox.buffer) => return Ok(()),
        };
        match next {
            Next::Close => return close(stream).await,
            Next::Keep => {}
            Next::Reset => return stream.set_zero_linger(),
        }
    }
}

async fn play(writer: &mut WriteHalf<'_>, act: Act, playing: &Playing) -> io::Result<Next> {
    wait(act.delay).await;
    let next = match act.opening {
        Opening::Response(answer) => return play_answer(writer, answer, playing).await,
        Opening::HangUp => Next::Close,
        Opening::Raw(bytes) => {
            writer.write_all(&bytes).await?;
            Next::Close
        }
        Opening::Reset => Next::Reset,
        Opening::Silence => std::future::pending().await,
    };
    playing.cut();
    Ok(next)
}

async fn play_answer(
    writer: &mut WriteHalf<'_>,
    mut answer: PlannedResponse,
    playing: &Playing,
) -> io::Result<Next> {
    writer.write_all(&http1::head_of(&answer)).await?;

    let chunked = answer.framing == Framing::Chunked;
    let whole = answer.ending == Ending::Whole;
    if chunked && whole && answer.pieces.is_empty() {
        writer.write_all(LAST_CHUNK).await?;
    }
    // Each piece is one write, with its frame around it, so that a client reads it as one where the network
    // allows.
    let mut written = BytesMut::new();
    while let Some(piece) = answer.pieces.pop_front() {
        wait(piece.delay).await;
        written.clear();
        if chunked {
            written.put_slice(http1::chunk_head(piece.announced).as_bytes());
        }
        written.put_slice(&piece.bytes);
        // A piece that the script cuts short is announced in full and has no line end, like that of a server
        // that died while it was writing.
        if chunked && piece.bytes.len() == piece.announced {
            written.put_slice(b"\r\n");
        }
        // The response is over with its last piece: a client that saw all of it aborts nothing.
        if chunked && whole && answer.pieces.is_empty() {
            written.put_slice(LAST_CHUNK);
        }
        writer.write_all(&written).await?;
    }

    match answer.ending {
        Ending::Close => {
            playing.cut();
            Ok(Next::Close)
        }
        Ending::Reset => {
            playing.cut();
            Ok(Next::Reset)
        }
        Ending::Stall => std::future::pending().await,
        Ending::Whole => {
            playing.finish();
            let keeps = answer.closing == Closing::Keep && answer.framing != Framing::Close;
            Ok(if keeps { Next::Keep } else { Next::Close })
        }
    }
}

async fn wait(delay: Duration) {
    if !delay.is_zero() {
        time::sleep(delay).await;
    }
}

/// Returns when the client has closed the connection or its side of it, keeping anything it sends until then.
async fn gone(reader: &mut ReadHalf<'_>, buffer: &mut BytesMut) {
    // What a client sends early is its next request, which `converse` reads from the same buffer. A client
    // that sends too much is no longer watched.
    while buffer.len() < http1::MAX_BODY {
        match reader.read_buf(buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    std::future::pending::<()>().await;
}

/// Closes the connection gracefully: with unread bytes, closing would reset it and could lose written data.
async fn close(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut unread = BytesMut::new();
    let drain = async {
        while stream.read_buf(&mut unread).await? > 0 {
            unread.clear();
        }
        Ok(())
    };
    time::timeout(PATIENCE, drain).await.unwrap_or(Ok(()))
}

fn refusal(malformed: &Malformed) -> Vec<u8> {
    let body = format!(r#"{{"error":{{"message":"{}"}}}}"#, malformed.reason);
    format!(
        "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        malformed.status,
        body.len(),
    )
    .into_bytes()
}

const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// The time a client has to close its side of a connection.
const PATIENCE: Duration = Duration::from_secs(1);
