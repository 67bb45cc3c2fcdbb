use std::sync::Arc;

use oa_types::{ContentBlock, Message, MessageRole};

use crate::append::Append;
use crate::error::{Error, ErrorKind};
use crate::id::SessionId;
use crate::pending::Pending;
use crate::rules::open_calls;
use crate::session::{NewSession, Session};
use crate::store::SessionStore;
use crate::timestamp::Timestamp;

/// A session of a store, and what was last written of it: keeps a conversation for a program while it goes
/// on.
///
/// After each turn it is given the whole history, and writes what is new. It knows the revision, so
/// that another program that goes on with the same session is noticed.
///
/// ```
/// # oa_session::contract::block_on(async {
/// use std::sync::Arc;
///
/// use oa_session::{MemoryStore, NewSession, SavedSession, SessionId, SessionStore, Timestamp};
/// use oa_types::Message;
///
/// let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
/// let new = NewSession::new(SessionId::new("chat-1")?, Timestamp::now());
///
/// let mut saved = SavedSession::open_or_create(store, new).await?;
/// // A client goes on from these: Client::with_history(options, messages)
/// let mut history = saved.session().messages.clone();
/// history.extend([Message::user("Hi"), Message::assistant(vec![])]);
/// // After each turn: saved.save_now(client.history())
/// saved.save_now(&history).await?;
/// assert_eq!(saved.session().info.message_count, 2);
/// # Ok::<(), oa_session::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct SavedSession {
    store: Arc<dyn SessionStore>,
    session: Session,
}

impl SavedSession {
    /// Opens a session that is there.
    ///
    /// # Errors
    ///
    /// As [`load`](SessionStore::load).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn open(store: Arc<dyn SessionStore>, id: &SessionId) -> Result<Self, Error> {
        let session = store.load(id).await?;
        Ok(Self { store, session })
    }

    /// Creates a session, or opens the one that is there under this id as it is.
    ///
    /// # Errors
    ///
    /// As [`create`](SessionStore::create) and [`load`](SessionStore::load).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave a new session without messages.
    pub async fn open_or_create(
        store: Arc<dyn SessionStore>,
        session: NewSession,
    ) -> Result<Self, Error> {
        let id = session.id.clone();
        match store.create(session).await {
            Ok(info) => Ok(Self { store, session: Session::new(info, Vec::new(), None) }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Self::open(store, &id).await,
            Err(error) => Err(error),
        }
    }

    /// Returns what is saved.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn SessionStore> {
        &self.store
    }

    /// Reads the session again: after a conflict, or after a future that was dropped.
    ///
    /// # Errors
    ///
    /// As [`load`](SessionStore::load); what was known stays.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn reload(&mut self) -> Result<(), Error> {
        self.session = self.store.load(&self.session.info.id).await?;
        Ok(())
    }

    /// Writes the conversation in one step: new messages are appended, and from the first message on that
    /// differs from what was saved, the new ones replace the old. A call that waited for permission is no
    /// longer pending. Does nothing if nothing has changed.
    ///
    /// The time is the caller's; [`save_now`](Self::save_now) takes the system's.
    ///
    /// # Errors
    ///
    /// As [`append`](SessionStore::append): `Conflict` if somebody else has written, `InvalidInput` while
    /// a call has no result. After `Io`, [`reload`](Self::reload) tells what is there.
    ///
    /// # Cancel safety
    ///
    /// What was to be written is there, or not: [`reload`](Self::reload) tells.
    pub async fn save(&mut self, history: &[Message], at: Timestamp) -> Result<(), Error> {
        let saved = &self.session.messages;
        let same = saved.iter().zip(history).take_while(|(saved, now)| saved == now).count();
        if same == saved.len() && same == history.len() {
            return Ok(());
        }
        // A result is written anew together with its call.
        let is_result =
            |place: usize| saved.get(place).is_some_and(|m| m.role == MessageRole::Tool);
        let keep = (0..=same).rev().find(|place| !is_result(*place)).unwrap_or_default();
        let new = history[keep..].to_vec();
        let mut append = Append::new(self.session.info.revision, new.clone(), at);
        if keep < saved.len() {
            append = append.keeping(keep);
        }
        self.session.info = self.store.append(&self.session.info.id, append).await?;
        self.session.messages.truncate(keep);
        self.session.messages.extend(new);
        self.session.pending = None;
        Ok(())
    }

    /// Writes the conversation as [`save`](Self::save) does, at the current time of the system's clock.
    ///
    /// # Errors
    ///
    /// As [`save`](Self::save).
    ///
    /// # Cancel safety
    ///
    /// As [`save`](Self::save).
    pub async fn save_now(&mut self, history: &[Message]) -> Result<(), Error> {
        self.save(history, Timestamp::now()).await
    }

    /// Writes a conversation whose last turn waits, for permission or for results: what is before that
    /// turn as [`save`](Self::save) does, and the turn beside it as [`Pending`], under the first of its
    /// open calls. If nothing waits it is a `save`.
    ///
    /// [`Session::conversation`] has all of it again, for `Client::resume(options, messages)`.
    ///
    /// # Errors
    ///
    /// As [`save`](Self::save) and [`set_pending`](Self::set_pending).
    ///
    /// # Cancel safety
    ///
    /// As [`save`](Self::save); the turn that waits may be missing.
    pub async fn save_waiting(&mut self, history: &[Message], at: Timestamp) -> Result<(), Error> {
        let open = open_calls(history)?;
        let calls = history.iter().flat_map(|message| &message.content);
        let mut calls = calls.filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(call),
            _ => None,
        });
        let Some(call) = calls.find(|call| open.contains(&*call.id)) else {
            return self.save(history, at).await;
        };
        let prompt = history.iter().rposition(|message| message.role == MessageRole::User);
        let (complete, turn) = history.split_at(prompt.unwrap_or_default());
        self.save(complete, at).await?;
        let pending = Pending::new(call.clone(), at).with_turn(turn.to_vec());
        self.set_pending(Some(pending), at).await
    }

    /// Writes a conversation whose last turn may wait, as [`save_waiting`](Self::save_waiting) does, at the
    /// current time of the system's clock.
    ///
    /// # Errors
    ///
    /// As [`save_waiting`](Self::save_waiting).
    ///
    /// # Cancel safety
    ///
    /// As [`save_waiting`](Self::save_waiting).
    pub async fn save_waiting_now(&mut self, history: &[Message]) -> Result<(), Error> {
        self.save_waiting(history, Timestamp::now()).await
    }

    /// Saves the call that waits for permission, or `None` when no call waits any more.
    ///
    /// # Errors
    ///
    /// As [`set_pending`](SessionStore::set_pending).
    ///
    /// # Cancel safety
    ///
    /// As [`save`](Self::save).
    pub async fn set_pending(
        &mut self,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> Result<(), Error> {
        let Session { info, pending: known, .. } = &mut self.session;
        *info = self.store.set_pending(&info.id, info.revision, pending.clone(), at).await?;
        *known = pending;
        Ok(())
    }
}
