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

use crate::act::{Act, Answer, Opening};
use crate::http1::{self, Inbox, Malformed};
use crate::reply::{Closing, Ending, Framing};
use crate::requests::{Asked, Request};
use crate::script::Script;
use crate::stage::{Curtain, Playing, Stage};

/// A server on a socket of the loopback interface, which plays a [`Script`] over HTTP/1.1.
///
/// It serves any number of connections at once. Dropping it stops it: its tasks are aborted, its
/// connections closed, and the script is [verified](Self::verify).
///
/// A client is gone when it has closed its side of the connection: one which closes it for writing
/// and still wants the answer does not get it.
///
/// Time should not be paused in a test with sockets: tokio would skip to the next timer while bytes
/// are on their way.
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
    /// Starts a server which plays `script`, on a port that the system chooses.
    ///
    /// # Errors
    ///
    /// If no socket can be opened.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O and time.
    ///
    /// # Cancel safety
    ///
    /// Nothing is left behind if this is dropped.
    pub async fn start(script: impl Into<Script>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let stage = Stage::new(script.into());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&stage)));
        Ok(Self { accepting, address, curtain: Curtain { stage } })
    }

    /// Stops the server, and returns when nobody listens any more and every connection is closed:
    /// a client which connects then is refused.
    ///
    /// # Panics
    ///
    /// As [`verify`](Self::verify).
    ///
    /// # Cancel safety
    ///
    /// The server stops all the same if this is dropped.
    pub async fn stop(mut self) {
        self.curtain.stage.stop();
        self.accepting.abort();
        // That the task was aborted is what was asked for.
        let _ = (&mut self.accepting).await;
        self.curtain.stage.wait_for_close(Duration::MAX).await;
    }

    /// Returns the address at which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL which clients want: `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns how many connections were opened so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.curtain.stage.connections()
    }

    /// Returns how many connections are open now: neither side, or only one, has closed them.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.curtain.stage.open_connections()
    }

    /// Returns the requests so far, in the order of arrival: the latest 1,024, or fewer if their
    /// bodies are more than 64 MiB.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.curtain.stage.requests()
    }

    /// Tells what was scripted, what was asked, and what is wrong about it so far.
    #[must_use]
    pub fn story(&self) -> String {
        self.curtain.stage.story()
    }

    /// Checks that the script was played as written.
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if a request did not meet an expectation or came when the
    /// script was over, or a reply was never played.
    #[track_caller]
    pub fn verify(&self) {
        self.curtain.stage.verify();
    }

    /// Waits until a client closes a connection before the end of an answer, and returns the first
    /// request to which that happened.
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if that takes longer than `limit`.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if this is dropped.
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
    /// Nothing is lost if this is dropped.
    pub async fn wait_for_close(&self, limit: Duration) {
        self.curtain.stage.wait_for_close(limit).await;
    }

    /// Waits until a condition on the requests so far holds: it is asked again whenever a request
    /// comes, whenever an answer ends, and whenever a connection opens or closes.
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if that takes longer than `limit`.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if this is dropped.
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
    // Dropped with this task, and its tasks with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&stage)));
                }
                // Out of file descriptors, most likely: some will be closed.
                Err(_) => time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// What becomes of a connection after an answer.
enum Next {
    Close,
    Keep,
    Reset,
}

async fn serve(stream: TcpStream, stage: Arc<Stage>) {
    let (number, _open) = stage.connect();
    // Dropped before the guard: what does not count as open is closed.
    let mut stream = stream;
    // A failure here, as in all below, means that the client is gone: there is nobody to tell.
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
        let (mut act, playing) = stage.ask(Asked { body, connection, headers, method, uri });
        if let Opening::Answer(answer) = &mut act.opening {
            if old && answer.framing == Framing::Chunked {
                answer.framing = Framing::Close;
            }
            if closes && answer.closing == Closing::Keep {
                answer.closing = Closing::Announced;
            }
        }

        let (mut reader, mut writer) = stream.split();
        let next = tokio::select! {
            // An answer which is written is an answer, though its reader be gone by then.
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
        Opening::Answer(answer) => return play_answer(writer, answer, playing).await,
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
    mut answer: Answer,
    playing: &Playing,
) -> io::Result<Next> {
    writer.write_all(&http1::head_of(&answer)).await?;

    let chunked = answer.framing == Framing::Chunked;
    let whole = answer.ending == Ending::Whole;
    if chunked && whole && answer.pieces.is_empty() {
        writer.write_all(LAST_CHUNK).await?;
    }
    let mut written = BytesMut::new();
    while let Some(piece) = answer.pieces.pop_front() {
        wait(piece.delay).await;
        written.clear();
        if chunked {
            written.put_slice(http1::chunk_head(piece.announced).as_bytes());
        }
        written.put_slice(&piece.bytes);
        if chunked && piece.bytes.len() == piece.announced {
            written.put_slice(b"\r\n");
        }
        // With its last piece an answer is over: a client which saw it all aborts nothing.
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

/// Returns when the client has closed the connection, or its side of it. What it says meanwhile is
/// kept for later.
async fn gone(reader: &mut ReadHalf<'_>, buffer: &mut BytesMut) {
    while buffer.len() < http1::MAX_BODY {
        match reader.read_buf(buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    std::future::pending::<()>().await;
}

/// Closes the connection so that all that was written arrives: closing it with bytes unread would
/// reset it.
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
/// How long a client may take to close its side of a connection.
const PATIENCE: Duration = Duration::from_secs(1);
