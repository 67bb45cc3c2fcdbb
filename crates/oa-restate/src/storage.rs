//! Conversations in a store outside the engine.
//!
//! The journal of a turn holds the revision and the number of messages that it began with, but not the messages: each
//! attempt loads them. A turn is appended once, even if a worker dies between the append and its journal entry, because
//! a repeated append finds its own messages at the end of the session.
//!
//! If the session has become shorter when an attempt loads it, the recorded steps are still replayed: an attempt that
//! leaves the path of the journal would be repeated forever. Either this turn has shortened the session itself, and its
//! repeated append finds that; or another writer has, and the first entry that is not recorded says so.

use std::sync::{Arc, Mutex, PoisonError};

use oa_session::Timestamp;
use oa_session::{
    Append, Error, ErrorKind, NewSession, Revision, Session, SessionId, SessionStore,
};
use oa_types::{Message, json_size};
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};

/// The state of a stored session.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct StoredAt {
    pub(crate) revision: Revision,
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// A permanent error of a store: a retry would fail again.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Refusal {
    code: u16,
    message: String,
}

impl Refusal {
    fn new(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Converts a permanent error. `Err` is a temporary error, after which the engine retries.
    fn of(error: Error) -> Result<Self, HandlerError> {
        let code = match error.kind() {
            ErrorKind::Busy | ErrorKind::Closed | ErrorKind::Io => return Err(error.into()),
            ErrorKind::AlreadyExists | ErrorKind::Conflict | ErrorKind::NewerVersion => 409,
            ErrorKind::InvalidInput => 400,
            ErrorKind::Limit => 413,
            ErrorKind::NotFound => 404,
            _ => 500,
        };
        Ok(Self::new(code, error.to_string()))
    }
}

impl From<Refusal> for TerminalError {
    fn from(Refusal { code, message }: Refusal) -> Self {
        Self::new_with_code(code, message)
    }
}

type Stored<T> = Result<T, Refusal>;

/// A conversation as loaded.
pub(crate) struct Loaded {
    pub(crate) messages: Vec<Message>,
    pub(crate) at: StoredAt,
    /// True if messages are missing that were there in the first attempt.
    pub(crate) is_lost: bool,
}

/// A slot that passes the messages of a session around the journal.
type Aside = Arc<Mutex<Option<Vec<Message>>>>;

/// Returns the messages of a session and its state. Creates the session if it does not exist.
pub(crate) async fn load(
    ctx: &ObjectContext<'_>,
    store: &Arc<dyn SessionStore>,
) -> Result<Loaded, HandlerError> {
    let id = id(ctx.key())?;
    let aside = Aside::default();
    let closure = {
        let (store, id, aside) = (Arc::clone(store), id.clone(), Arc::clone(&aside));
        move || async move { open(&*store, id, &aside).await.map(Json) }
    };
    let Json(at) = ctx.run(closure).name("load").await?;
    let at = at.map_err(TerminalError::from)?;
    // Filled by the closure in the attempt that runs it. A replay has only the entry, and loads the messages
    // itself.
    let loaded = aside.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut messages = match loaded {
        Some(messages) => messages,
        // In a replay, messages that others have added since are ignored.
        None => match store.load(&id).await {
            Ok(session) => session.messages,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            // Retried, because the replay must not end before the journal does.
            Err(error) => return Err(error.into()),
        },
    };
    // Only a shortened session is noticed here. Other changes conflict with the revision when the turn is
    // saved.
    let is_lost = messages.len() < at.messages;
    messages.truncate(at.messages);
    if is_lost {
        // What is left may end with open calls, which no turn begins with.
        messages = oa_turn::repair(messages);
    }
    Ok(Loaded { messages, at, is_lost })
}

/// The error message for a session that was shortened during a turn.
const OTHER_WRITER: &str = "another writer has removed messages of the stored session";

/// Returns the error for a session that was shortened during a turn.
pub(crate) fn other_writer() -> TerminalError {
    Refusal::new(409, OTHER_WRITER).into()
}

/// Returns true for the error of [`other_writer`].
pub(crate) fn is_other_writer(error: &TerminalError) -> bool {
    error.message() == OTHER_WRITER
}

/// The change of a conversation in a turn.
pub(crate) enum Change {
    /// These messages were added.
    Added(Vec<Message>),
    /// The conversation was shortened, and is replaced completely.
    Replaced(Vec<Message>),
}

async fn open(
    store: &dyn SessionStore,
    id: SessionId,
    aside: &Aside,
) -> Result<Stored<StoredAt>, HandlerError> {
    let session = match store.load(&id).await {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let created = store.create(NewSession::new(id, Timestamp::now())).await;
            created.map(|info| Session::new(info, Vec::new(), None))
        }
        loaded => loaded,
    };
    let session = match session {
        Ok(session) => session,
        // Another writer created the session: the next attempt loads it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(error.into()),
        Err(error) => return Refusal::of(error).map(Err),
    };
    if session.pending.is_some() {
        let message = "a call of the stored session waits for permission: decide on it first";
        return Ok(Err(Refusal::new(409, message)));
    }
    let (revision, messages) = (session.info.revision, session.messages.len());
    let at = StoredAt { revision, messages, bytes: json_size(&session.messages) };
    *aside.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.messages);
    Ok(Ok(at))
}

/// Writes the change of a turn, once. `bytes` is the size of the conversation after it.
pub(crate) async fn save(
    ctx: &ObjectContext<'_>,
    store: &Arc<dyn SessionStore>,
    at: &StoredAt,
    change: Change,
    bytes: usize,
    is_lost: bool,
) -> Result<StoredAt, HandlerError> {
    let (messages, keep) = match change {
        Change::Added(messages) if messages.is_empty() => return Ok(at.clone()),
        Change::Added(messages) => (messages, None),
        Change::Replaced(messages) => (messages, Some(0)),
    };
    let closure = {
        let (store, id, at) = (Arc::clone(store), id(ctx.key())?, at.clone());
        move || async move {
            // A conversation that this turn has replaced may be shorter because it is saved already.
            if is_lost && keep.is_none() {
                return Ok(Json(Err(Refusal::new(409, OTHER_WRITER))));
            }
            let mut append = Append::new(at.revision, messages, Timestamp::now());
            append.keep = keep;
            let stored = match store.append_once(&id, at.messages, append).await {
                Ok(info) => {
                    Ok(StoredAt { revision: info.revision, messages: info.message_count, bytes })
                }
                // Another writer has deleted the session.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Err(Refusal::new(409, OTHER_WRITER))
                }
                Err(error) => Err(Refusal::of(error)?),
            };
            Ok(Json(stored))
        }
    };
    let Json(stored) = ctx.run(closure).name("save").await?;
    Ok(stored.map_err(TerminalError::from)?)
}

/// Removes the messages of a session, if it exists.
pub(crate) async fn clear(
    ctx: &ObjectContext<'_>,
    store: &Arc<dyn SessionStore>,
) -> Result<(), HandlerError> {
    let Ok(id) = id(ctx.key()) else { return Ok(()) };
    let store = Arc::clone(store);
    // No journal entry for the revision is needed, because this may be repeated.
    let closure = move || async move {
        let session = match store.load(&id).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Json(Ok(()))),
            Err(error) => return Ok(Json(Err(Refusal::of(error)?))),
            Ok(session) => session,
        };
        let cleared = store.rewind(&id, session.info.revision, 0, Timestamp::now()).await;
        match cleared {
            // Another writer changed the session: load it again.
            Err(error) if error.kind() == ErrorKind::Conflict => Err(error.into()),
            Err(error) => Ok(Json(Err(Refusal::of(error)?))),
            Ok(_) => Ok(Json(Ok(()))),
        }
    };
    let Json(cleared) = ctx.run(closure).name("clear").await?;
    let cleared: Stored<()> = cleared;
    Ok(cleared.map_err(TerminalError::from)?)
}

/// Returns the messages of a session; `None` if the store does not have it.
pub(crate) async fn read(
    store: &dyn SessionStore,
    key: &str,
) -> Result<Option<Vec<Message>>, HandlerError> {
    let Ok(id) = id(key) else { return Ok(None) };
    match store.load(&id).await {
        Ok(session) => Ok(Some(session.messages)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TerminalError::from(Refusal::of(error)?).into()),
    }
}

fn id(key: &str) -> Result<SessionId, TerminalError> {
    SessionId::new(key).map_err(|error| TerminalError::new_with_code(400, error.to_string()))
}
