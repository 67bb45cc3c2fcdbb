//! Writes whose outcome the program does not learn.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use oa_session::contract::block_on;
use oa_session::{
    Append, Error, ErrorKind, List, MemoryStore, NewSession, Pending, Revision, SavedSession,
    Session, SessionId, SessionInfo, SessionPage, SessionStore, StoreFuture, Timestamp,
};
use oa_types::{Message, ToolResultBlock, ToolUseBlock};
use serde_json::{Map, Value, json};

use crate::{at, id, kind, turn};

/// A store that is told which of its writes nobody learns of.
#[derive(Debug, Default)]
struct Silent {
    inner: MemoryStore,
    /// One bit for each write, the next one in the lowest.
    unlearned: AtomicU32,
    /// True if these writes never end, so that their futures are dropped. Otherwise they report an error.
    hangs: bool,
    fate: Fate,
    /// Writes that the next learned write waits for.
    late: Mutex<Vec<Write>>,
}

/// The outcome of a write that nobody learns of.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Fate {
    /// Before the program continues.
    #[default]
    Stored,
    Lost,
    /// Later than loads, but before a later write.
    Late,
    /// The same, but the last one comes first.
    LateReversed,
}

const FATES: [Fate; 4] = [Fate::Stored, Fate::Lost, Fate::Late, Fate::LateReversed];

#[derive(Debug)]
enum Write {
    Append(SessionId, Append),
    SetPending(SessionId, Revision, Box<Option<Pending>>, Timestamp),
}

impl Silent {
    async fn perform(&self, write: Write) -> Result<SessionInfo, Error> {
        match write {
            Write::Append(id, append) => self.inner.append(&id, append).await,
            Write::SetPending(id, revision, pending, at) => {
                self.inner.set_pending(&id, revision, *pending, at).await
            }
        }
    }

    async fn write(&self, write: Write) -> Result<SessionInfo, Error> {
        let unlearned = self.unlearned.load(Ordering::Relaxed);
        self.unlearned.store(unlearned >> 1, Ordering::Relaxed);
        if unlearned & 1 == 0 {
            let mut late =
                std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner));
            if self.fate == Fate::LateReversed {
                late.reverse();
            }
            for late in late {
                // All but the first are conflicts, which nobody learns of either.
                let _ = self.perform(late).await;
            }
            return self.perform(write).await;
        }
        match self.fate {
            Fate::Stored => drop(self.perform(write).await?),
            Fate::Lost => {}
            Fate::Late | Fate::LateReversed => {
                self.late.lock().unwrap_or_else(PoisonError::into_inner).push(write);
            }
        }
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Err(Error::new(ErrorKind::Io, "the connection broke"))
    }
}

impl SessionStore for Silent {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionInfo> {
        self.inner.create(session)
    }

    fn append<'a>(&'a self, id: &'a SessionId, append: Append) -> StoreFuture<'a, SessionInfo> {
        Box::pin(self.write(Write::Append(id.clone(), append)))
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, Session> {
        self.inner.load(id)
    }

    fn list(&self, list: List) -> StoreFuture<'_, SessionPage> {
        self.inner.list(list)
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, ()> {
        self.inner.delete(id)
    }

    fn fork<'a>(
        &'a self,
        id: &'a SessionId,
        keep: usize,
        fork: NewSession,
    ) -> StoreFuture<'a, SessionInfo> {
        self.inner.fork(id, keep, fork)
    }

    fn set_metadata<'a>(
        &'a self,
        id: &'a SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        self.inner.set_metadata(id, members, at)
    }

    fn set_pending<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        Box::pin(self.write(Write::SetPending(id.clone(), revision, Box::new(pending), at)))
    }
}

/// A conversation at each of its checkpoints: two turns, the second with a call that waits twice.
fn checkpoints() -> Vec<Vec<Message>> {
    let call = |id: &str| Message::assistant(vec![ToolUseBlock::new(id, "ask", json!({})).into()]);
    let result = |id: &str| Message::tool(ToolResultBlock::new(id, json!("Yes.")));
    let added = [
        turn(0),
        vec![Message::user("Tidy up."), call("1")],
        vec![result("1"), call("2")],
        vec![result("2")],
        turn(1),
    ];
    (1..=added.len()).map(|count| added[..count].concat()).collect()
}

/// Polls a save once and drops it; true if it ended well.
fn poll_once(save: impl Future<Output = Result<(), Error>>) -> bool {
    let save = std::pin::pin!(save);
    matches!(save.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())))
}

#[test]
fn lost_write_outcomes_cause_no_conflict() {
    for (hangs, fate) in [false, true].into_iter().flat_map(|hangs| FATES.map(|fate| (hangs, fate)))
    {
        for unlearned in 0..64 {
            let silent = Arc::new(Silent { hangs, fate, ..Silent::default() });
            let store: Arc<dyn SessionStore> = Arc::<Silent>::clone(&silent);
            let new = NewSession::new(id("a"), at(1));
            let mut saved = block_on(SavedSession::open_or_create(store, new)).unwrap();
            silent.unlearned.store(unlearned, Ordering::Relaxed);
            for (number, history) in (2..).zip(checkpoints()) {
                if poll_once(saved.save_waiting(&history, at(number))) {
                    assert_eq!(saved.session().conversation(), history);
                }
            }
            // Whatever has failed, the next save writes everything.
            silent.unlearned.store(0, Ordering::Relaxed);
            let history = [&checkpoints()[4][..], &turn(9)].concat();
            block_on(saved.save_waiting(&history, at(9))).unwrap();
            let stored = block_on(silent.load(&id("a"))).unwrap();
            assert_eq!(stored.conversation(), history, "{unlearned:b} {fate:?}");
            assert_eq!(*saved.session(), stored);
        }
    }
}

#[test]
fn late_writes_are_found_after_a_conflict() {
    let silent = Arc::new(Silent { hangs: true, fate: Fate::Late, ..Silent::default() });
    let store: Arc<dyn SessionStore> = Arc::<Silent>::clone(&silent);
    let new = NewSession::new(id("a"), at(1));
    let mut saved = block_on(SavedSession::open_or_create(store, new)).unwrap();
    let first = turn(0);
    let second = [turn(0), turn(1)].concat();

    silent.unlearned.store(1, Ordering::Relaxed);
    assert!(!poll_once(saved.save(&first, at(2))));
    block_on(saved.save(&second, at(3))).unwrap();
    assert_eq!(block_on(silent.load(&id("a"))).unwrap(), *saved.session());
    assert_eq!(saved.session().messages, second);

    // A call that waits, and a call that no longer waits.
    let waits = |id: &str| Some(Pending::new(ToolUseBlock::new(id, "ask", json!({})), at(4)));
    silent.unlearned.store(1, Ordering::Relaxed);
    assert!(!poll_once(saved.set_pending(waits("1"), at(4))));
    block_on(saved.set_pending(waits("2"), at(5))).unwrap();
    assert_eq!(saved.session().pending, waits("2"));
    silent.unlearned.store(1, Ordering::Relaxed);
    assert!(!poll_once(saved.set_pending(None, at(6))));
    block_on(saved.set_pending(None, at(7))).unwrap();
    assert_eq!(block_on(silent.load(&id("a"))).unwrap(), *saved.session());
}

#[test]
fn writes_of_others_are_conflicts() {
    for fate in [Fate::Stored, Fate::Lost] {
        let silent = Arc::new(Silent { fate, ..Silent::default() });
        let store = || -> Arc<dyn SessionStore> { Arc::<Silent>::clone(&silent) };
        let new = NewSession::new(id("a"), at(1));
        let mut saved = block_on(SavedSession::open_or_create(store(), new)).unwrap();
        silent.unlearned.store(1, Ordering::Relaxed);
        assert_eq!(kind(block_on(saved.save(&turn(0), at(2)))), ErrorKind::Io);
        let mut other = block_on(SavedSession::open(store(), &id("a"))).unwrap();
        block_on(other.save(&[turn(0), turn(7)].concat(), at(3))).unwrap();
        for _ in 0..2 {
            let again = block_on(saved.save(&[turn(0), turn(1)].concat(), at(4)));
            assert_eq!(kind(again), ErrorKind::Conflict);
        }
        block_on(saved.reload()).unwrap();
        assert_eq!(saved.session(), other.session());
    }
}
