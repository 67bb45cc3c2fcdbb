//! Event streams as responses.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use oa_sse::Frame;
use tokio::time::sleep;

use crate::conversation::Viewer;
use crate::encoder::Encoder;
use crate::run::Phase;
use crate::served::Served;

/// The size in bytes from which no more events are joined into a piece of the body.
const PIECE: usize = 64 << 10;

/// Returns a response that streams a viewer's events in a protocol, with keep-alive comments. The stream ends when the
/// encoder is over, and when the conversation is deleted or the server shuts down, once no run is in progress.
pub(crate) fn event_stream(served: &Served, viewer: Viewer, encoder: impl Encoder) -> Response {
    let keep_alive = match served.conversations.limits().keep_alive {
        Duration::ZERO => Duration::MAX,
        keep_alive => keep_alive,
    };
    let state = (viewer, encoder, served.conversations.phase(), true);
    // Each piece has what the viewer can read now, up to `PIECE`, so a slow client only misses what the log
    // drops meanwhile. A client that hangs up drops the body and its viewer; runs end without viewers.
    let body =
        stream::unfold(state, move |(mut viewer, mut encoder, mut phase, is_first)| async move {
            let mut out = Vec::new();
            // Not restarted by events for which the protocol has no bytes: a proxy sees none of them.
            let mut silence = pin!(sleep(keep_alive));
            loop {
                while out.len() < PIECE
                    && !encoder.is_over()
                    && let Some(view) = viewer.read()
                {
                    encoder.write(view, &mut out);
                }
                if is_first && out.is_empty() {
                    // Sends the response head immediately. Not before an event: some clients fail on a comment there.
                    Frame::write_comment("open", &mut out);
                }
                if !out.is_empty() {
                    let piece = Ok::<_, Infallible>(Bytes::from(out));
                    return Some((piece, (viewer, encoder, phase, false)));
                }
                let conversation = viewer.conversation();
                // A run that is stopped still publishes its end, which a client must not miss.
                let is_ending =
                    *phase.borrow_and_update() != Phase::Open || conversation.is_deleted();
                // `is_running` comes before `is_at_end`. A run ends and publishes its last event under one
                // lock, so when no run is in progress, `is_at_end` sees that event; in the other order, it
                // could be missed.
                if encoder.is_over()
                    || is_ending && !conversation.is_running() && viewer.is_at_end()
                {
                    return None;
                }
                tokio::select! {
                    () = viewer.changed() => {}
                    // Fails if the server was dropped, whose streams go on.
                    Ok(()) = phase.changed() => {}
                    () = &mut silence => {
                        encoder.keep_alive(&mut out);
                        silence.set(sleep(keep_alive));
                    }
                }
            }
        });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Development servers and other proxies compress what may be transformed, and hold it back meanwhile.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
