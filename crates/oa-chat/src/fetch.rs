//! Requests and their responses, up to a small body.

use std::future::poll_fn;

use http::{HeaderMap, Request, Response, StatusCode};
use oa_transport::{RequestBody, Watch};

use crate::body::AnyBody;
use crate::destination::Destination;
use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::service::{AnyService, ResponseHead};
use crate::source::{Piece, Source};

/// Error bodies, and lists of models or tokens, are read up to these sizes, in bytes.
const LARGEST_ERROR: usize = 1 << 20;
const LARGEST_LIST: usize = 4 << 20;

/// The memory that a list may take as a value, in bytes: sixteen times its largest size. Some take a hundred times.
pub(crate) const ROOM: usize = 64 << 20;

/// Sends a chat request.
pub(crate) fn deliver_chat(
    destination: &Destination,
    envelope: &Envelope,
    body: RequestBody,
) -> ResponseHead {
    match (&destination.service, envelope.chat_head()) {
        (AnyService::Own(transport), Some(head)) => ResponseHead::Own(transport.send(head, body)),
        (service, _) => service.deliver(envelope.chat_with(body)),
    }
}

/// Sends a request and waits for the head of a successful response.
///
/// # Cancel safety
///
/// Dropping the future closes the connection; the server sees that and stops.
pub(crate) async fn send(
    destination: &Destination,
    request: Request<RequestBody>,
    watch: &mut Watch,
) -> Result<Response<AnyBody>> {
    let response = head(destination, request, watch).await?;
    if response.status().is_success() {
        check_readable(response.headers())?;
        return Ok(response);
    }
    Err(refusal(destination, response, watch).await)
}

/// Sends a request and waits for the head of its response, whatever its status.
/// As cancel safe as [`send`].
pub(crate) async fn head(
    destination: &Destination,
    request: Request<RequestBody>,
    watch: &mut Watch,
) -> Result<Response<AnyBody>> {
    let mut answer = destination.service.deliver(request);
    let head = poll_fn(|cx| answer.poll(watch, cx)).await;
    head.map_err(|error| error.masked(&destination.secrets))
}

/// Reads the error that a response carries.
pub(crate) async fn refusal(
    destination: &Destination,
    response: Response<AnyBody>,
    watch: &mut Watch,
) -> Error {
    let (head, body) = response.into_parts();
    let mut bytes = Vec::new();
    // What arrived before a failure may name the reason.
    let _ = fill(&mut bytes, body, watch, LARGEST_ERROR).await;
    let mut error = Error::response(head.status, &head.headers, &bytes, &destination.secrets);
    if matches!(head.status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
        error.add(destination.hint());
    }
    error
}

/// Returns an error for a compressed body, which was not requested and cannot be read.
pub(crate) fn check_readable(headers: &HeaderMap) -> Result<()> {
    Error::compressed(headers).map_or(Ok(()), Err)
}

/// A small body, or the part of it that arrived.
pub(crate) struct SmallBody {
    pub(crate) bytes: Vec<u8>,
    /// The error of a connection that broke. What arrived before may be all that counts.
    pub(crate) broken: Option<Error>,
}

impl SmallBody {
    /// Reads its content; `wrong` says what it is if `read` returns `None`, unless it broke off.
    pub(crate) fn read<T>(self, read: impl FnOnce(&[u8]) -> Option<T>, wrong: &str) -> Result<T> {
        let Self { bytes, broken } = self;
        let wrong = || broken.unwrap_or_else(|| Error::stream(wrong, bytes.len() as u64));
        read(&bytes).ok_or_else(wrong)
    }
}

/// Reads a small body, up to its limit. All of it must arrive within one idle timeout, so that a body that
/// trickles in ends as well.
pub(crate) async fn collect(
    of: &Destination,
    body: AnyBody,
    watch: &mut Watch,
) -> Result<SmallBody> {
    let mut bytes = Vec::new();
    let broken = fill(&mut bytes, body, watch, LARGEST_LIST).await?;
    Ok(SmallBody { bytes, broken: broken.map(|error| error.masked(&of.secrets)) })
}

/// The error of a broken connection is a value.
type Filled = Result<Option<Error>>;

async fn fill(bytes: &mut Vec<u8>, body: AnyBody, watch: &mut Watch, max: usize) -> Filled {
    let mut body = Source::new(body);
    // Starts the idle timeout, which the pieces below do not extend. Without one, that of the beginning stays.
    if watch.timeouts().idle.is_some() {
        watch.note_content();
    }
    loop {
        match poll_fn(|cx| body.poll_piece(watch, cx)).await {
            Piece::Bytes(piece) => {
                let room = max - bytes.len();
                bytes.extend_from_slice(&piece[..piece.len().min(room)]);
                if bytes.len() == max {
                    return Ok(None);
                }
            }
            // Nothing of it was delivered, so the request may be repeated.
            Piece::Broken(error) => {
                return Ok(Some(Error::transport(error, bytes.len() as u64, false)));
            }
            Piece::End => return Ok(None),
            Piece::Expired(kind) => {
                return Err(Error::timed_out(kind, watch, bytes.len() as u64));
            }
        }
    }
}
