//! Event streams as bodies.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use oa_sse::Frame;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::conversation::{View, Viewer};
use crate::run::Phase;

/// The most bytes that are joined into one piece of the body.
const PIECE: usize = 64 << 10;

/// Returns a body with the events that a viewer reads, and comments while there are none. It ends when the
/// conversation is deleted, or the server shuts down and nothing runs.
pub(crate) fn event_stream(
    viewer: Viewer,
    phase: watch::Receiver<Phase>,
    keep_alive: Duration,
    write: fn(&View, &mut Vec<u8>),
) -> Body {
    let state = (viewer, phase, true);
    Body::from_stream(stream::unfold(state, move |(mut viewer, mut phase, is_first)| async move {
        let mut out = Vec::new();
        if is_first {
            // The head is on its way at once.
            Frame::write_comment("open", &mut out);
        }
        loop {
            while out.len() < PIECE
                && let Some(view) = viewer.read()
            {
                write(&view, &mut out);
            }
            if !out.is_empty() {
                return Some((Ok::<_, Infallible>(Bytes::from(out)), (viewer, phase, false)));
            }
            let conversation = viewer.conversation();
            let is_closing = *phase.borrow_and_update() != Phase::Open;
            if conversation.is_deleted() || is_closing && !conversation.is_running() {
                return None;
            }
            tokio::select! {
                () = viewer.changed() => {}
                _ = phase.changed() => {}
                () = sleep(keep_alive) => Frame::write_comment("alive", &mut out),
            }
        }
    }))
}
