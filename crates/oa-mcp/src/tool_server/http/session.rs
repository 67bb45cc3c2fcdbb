use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, MissedTickBehavior};

use crate::tool_server::call::Connection;
use crate::tool_server::http::body::Event;

/// The interval at which a session with an open stream is marked as used.
const TOUCH: Duration = Duration::from_secs(60);

/// A session: its conversation and its notification stream, of which there is one at a time.
pub(crate) struct Session {
    pub(crate) connection: Arc<Connection>,
    /// The number of the current stream. Streams end with the session.
    turn: watch::Sender<u64>,
    /// The number of the last notification that a stream has sent.
    seen: Arc<AtomicU64>,
}

/// A session's notification stream.
pub(crate) struct Follower {
    connection: Arc<Connection>,
    turn: watch::Receiver<u64>,
    own_turn: u64,
    seen: u64,
    told: Arc<AtomicU64>,
}

impl Session {
    pub(crate) fn new(connection: Connection) -> Self {
        let seen = Arc::new(AtomicU64::new(connection.live().last()));
        Self { connection: Arc::new(connection), turn: watch::Sender::new(0), seen }
    }

    /// Begins a stream, which replaces the previous one. It starts after the notification with this number, or where
    /// the last stream ended.
    pub(crate) fn follow(&self, after: Option<u64>) -> Follower {
        let mut own_turn = 0;
        self.turn.send_modify(|turn| {
            *turn += 1;
            own_turn = *turn;
        });
        Follower {
            connection: Arc::clone(&self.connection),
            turn: self.turn.subscribe(),
            own_turn,
            seen: after.unwrap_or_else(|| self.seen.load(Ordering::Acquire)),
            told: Arc::clone(&self.seen),
        }
    }
}

impl Follower {
    /// Sends notifications until another stream takes over, the session ends or the client disconnects.
    pub(crate) async fn run(self, out: mpsc::Sender<Event>, touch: impl Fn() + Send) {
        let Self { connection, mut turn, own_turn, mut seen, told } = self;
        let mut changes = connection.live().subscribe();
        // The first pass sends what the stream before this one has not.
        changes.mark_changed();
        let mut touches = tokio::time::interval(TOUCH);
        touches.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let telling = async {
            loop {
                tokio::select! {
                    biased;
                    () = out.closed() => return,
                    changed = changes.changed() => if changed.is_err() { return },
                    _ = touches.tick() => {
                        touch();
                        continue;
                    }
                }
                let (news, last) = connection.news(seen);
                for (number, text) in news {
                    if out.send(Event { id: Some(event_id(number)), text }).await.is_err() {
                        return;
                    }
                    // Counted once queued: what a broken connection loses, a client resumes by `Last-Event-ID`.
                    told.fetch_max(number, Ordering::AcqRel);
                }
                seen = last;
                told.fetch_max(last, Ordering::AcqRel);
            }
        };
        tokio::select! {
            biased;
            // Also while the client leaves this stream unread. An error means that the session has ended.
            _ = turn.wait_for(|turn| *turn != own_turn) => {}
            () = telling => {}
        }
    }
}

pub(crate) fn event_id(number: u64) -> String {
    format!("n{number}")
}

pub(crate) fn number_of(event_id: &str) -> Option<u64> {
    event_id.strip_prefix('n')?.parse().ok()
}
