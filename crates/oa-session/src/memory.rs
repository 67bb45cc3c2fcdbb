use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oa_types::Message;
use serde_json::{Map, Value};

use crate::append::Append;
use crate::error::Error;
use crate::id::SessionId;
use crate::ledger::{Entry, Ledger};
use crate::limits::Limits;
use crate::list::{List, SessionPage};
use crate::pending::Pending;
use crate::revision::Revision;
use crate::rules::{check_messages, check_pending, merge_metadata};
use crate::session::{NewSession, Session, SessionInfo};
use crate::store::{SessionStore, StoreFuture};
use crate::timestamp::Timestamp;

/// A store in memory, for tests and for programs without a disk.
#[derive(Default)]
pub struct MemoryStore {
    limits: Limits,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    sessions: HashMap<SessionId, Stored>,
    /// The number of changes in all sessions, so that revisions never repeat.
    changes: u64,
}

struct Stored {
    ledger: Ledger,
    messages: Vec<Message>,
    pending: Option<Pending>,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty store with custom limits.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Applies a change when the future is polled.
    fn change<'a, T: Send + 'a>(
        &'a self,
        change: impl FnOnce(&Limits, &mut Contents) -> Result<T, Error> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move { change(&self.limits, &mut self.lock()) })
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn next_revision(&mut self) -> Revision {
        self.changes += 1;
        Revision::from_bits(self.changes)
    }

    fn get(&mut self, id: &SessionId) -> Result<&mut Stored, Error> {
        self.sessions.get_mut(id).ok_or_else(|| Error::not_found(id))
    }

    /// Inserts a session without messages.
    fn insert(&mut self, session: NewSession) -> Result<&mut Stored, Error> {
        if self.sessions.contains_key(&session.id) {
            return Err(Error::already_exists(&session.id));
        }
        let id = session.id.clone();
        let ledger = Ledger::new(SessionInfo::new(session, self.next_revision()));
        let stored = Stored { ledger, messages: Vec::new(), pending: None };
        Ok(self.sessions.entry(id).or_insert(stored))
    }
}

impl SessionStore for MemoryStore {
    fn create(&self, mut session: NewSession) -> StoreFuture<'_, SessionInfo> {
        self.change(|limits, contents| {
            session.metadata = merge_metadata(Map::new(), session.metadata, limits)?;
            Ok(contents.insert(session)?.ledger.info.clone())
        })
    }

    fn append<'a>(&'a self, id: &'a SessionId, append: Append) -> StoreFuture<'a, SessionInfo> {
        self.change(move |limits, contents| {
            let json = check_messages(&append.messages, limits)?;
            // Also used up if the append is rejected: a revision only must not repeat.
            let revision = contents.next_revision();
            let stored = contents.get(id)?;
            let ledger = &mut stored.ledger;
            ledger.check_revision(append.revision)?;
            let keep = append.keep.unwrap_or(stored.messages.len());
            ledger.check_keep(keep)?;
            let bytes = json.iter().map(|json| json.len() as u64).sum();
            ledger.check_room(keep, json.len(), bytes, limits)?;
            let entries = append.messages.iter().zip(&json);
            let entries = entries.map(|(message, json)| Entry::new(message, json));
            ledger.append(keep, entries, append.at, revision);
            stored.messages.truncate(keep);
            stored.messages.extend(append.messages);
            stored.pending = None;
            Ok(ledger.info.clone())
        })
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, Session> {
        self.change(move |_, contents| {
            let Stored { ledger, messages, pending } = contents.get(id)?;
            Ok(Session::new(ledger.info.clone(), messages.clone(), pending.clone()))
        })
    }

    fn list(&self, list: List) -> StoreFuture<'_, SessionPage> {
        self.change(move |limits, contents| {
            list.check(limits)?;
            let sessions = contents.sessions.values().map(|stored| stored.ledger.info.clone());
            Ok(SessionPage::of(&list, sessions.collect()))
        })
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> StoreFuture<'a, ()> {
        self.change(move |_, contents| match contents.sessions.remove(id) {
            Some(_) => Ok(()),
            None => Err(Error::not_found(id)),
        })
    }

    fn fork<'a>(
        &'a self,
        id: &'a SessionId,
        keep: usize,
        mut fork: NewSession,
    ) -> StoreFuture<'a, SessionInfo> {
        self.change(move |limits, contents| {
            let Stored { ledger, messages, .. } = contents.get(id)?;
            ledger.check_keep(keep)?;
            let metadata = ledger.info.metadata.clone();
            fork.metadata = merge_metadata(metadata, fork.metadata, limits)?;
            // `check_keep` has made sure that there are this many.
            let entries = ledger.entries()[..keep].to_vec();
            let messages = messages[..keep].to_vec();
            let at = fork.at;
            let stored = contents.insert(fork)?;
            let revision = stored.ledger.info.revision;
            stored.ledger.append(0, entries, at, revision);
            stored.messages = messages;
            Ok(stored.ledger.info.clone())
        })
    }

    fn set_metadata<'a>(
        &'a self,
        id: &'a SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        self.change(move |limits, contents| {
            let info = &mut contents.get(id)?.ledger.info;
            info.metadata = merge_metadata(info.metadata.clone(), members, limits)?;
            info.updated_at = at;
            Ok(info.clone())
        })
    }

    fn set_pending<'a>(
        &'a self,
        id: &'a SessionId,
        revision: Revision,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> StoreFuture<'a, SessionInfo> {
        self.change(move |limits, contents| {
            let json =
                pending.as_ref().map(|pending| check_pending(pending, limits)).transpose()?;
            let next = contents.next_revision();
            let stored = contents.get(id)?;
            stored.ledger.check_revision(revision)?;
            stored.ledger.set_pending(json.map(|json| json.len() as u64), at, next);
            stored.pending = pending;
            Ok(stored.ledger.info.clone())
        })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sessions = self.lock().sessions.len();
        f.debug_struct("MemoryStore")
            .field("limits", &self.limits)
            .field("sessions", &sessions)
            .finish_non_exhaustive()
    }
}
