use std::sync::Arc;

use oa_types::{ContentBlock, Message, MessageRole};

use crate::append::Append;
use crate::error::{Error, ErrorKind};
use crate::id::SessionId;
use crate::pending::Pending;
use crate::rules::open_calls;
use crate::session::{NewSession, Session, SessionInfo};
use crate::store::SessionStore;
use crate::timestamp::Timestamp;

/// A session together with its store, which saves a program's conversation as it grows.
///
/// After each turn, pass it the whole history; it writes the new messages. It tracks the session's revision, so changes
/// by another program are detected.
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
/// // A client continues from these: Client::with_history(options, messages)
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
    /// The writes at this revision whose outcome is not known, the current one last: they failed, or their futures
    /// were dropped. At most one of them is stored.
    attempts: Vec<Attempt>,
}

/// The maximum number of remembered attempts, for a store that loads but does not write for a long time. Only the
/// latest ones can still be under way.
const MOST_ATTEMPTS: usize = 8;

/// A write to the store: the session then has the first `keep` of the known messages, these, and this pending call.
#[derive(Debug, PartialEq)]
struct Attempt {
    keep: usize,
    messages: Vec<Message>,
    pending: Option<Pending>,
}

impl SavedSession {
    /// Opens an existing session.
    ///
    /// # Errors
    ///
    /// The same as [`load`](SessionStore::load).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn open(store: Arc<dyn SessionStore>, id: &SessionId) -> Result<Self, Error> {
        let session = store.load(id).await?;
        Ok(Self { store, session, attempts: Vec::new() })
    }

    /// Creates a session, or opens the existing one with this id unchanged.
    ///
    /// # Errors
    ///
    /// The same as [`create`](SessionStore::create) and [`load`](SessionStore::load).
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
            Ok(info) => {
                let session = Session::new(info, Vec::new(), None);
                Ok(Self { store, session, attempts: Vec::new() })
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Self::open(store, &id).await,
            Err(error) => Err(error),
        }
    }

    /// Returns the session as last saved.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns a prefix for the idempotency keys of calls that identifies the stored messages, for
    /// `Client::set_key_prefix`: the session's id and revision.
    ///
    /// Set it after each save, and after a client resumed the session. An open call then has the same key in every
    /// program that runs it.
    #[must_use]
    pub fn key_prefix(&self) -> String {
        let info = &self.session.info;
        format!("{}@{}", info.id, info.revision)
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn SessionStore> {
        &self.store
    }

    /// Loads the session again, after a conflict.
    ///
    /// # Errors
    ///
    /// The same as [`load`](SessionStore::load); on an error the session is unchanged.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn reload(&mut self) -> Result<(), Error> {
        self.session = self.store.load(&self.session.info.id).await?;
        self.attempts.clear();
        Ok(())
    }

    /// Loads the session again. Returns true if someone else has changed its messages or its pending call: a write of our
    /// own counts as ours, even if its outcome was not known.
    ///
    /// ```
    /// # oa_session::contract::block_on(async {
    /// # use std::sync::Arc;
    /// # use oa_session::{MemoryStore, NewSession, SavedSession};
    /// # use oa_types::Message;
    /// let store = Arc::new(MemoryStore::new());
    /// let mut one = SavedSession::open_or_create(store.clone(), NewSession::now("chat-1")?).await?;
    /// let mut other = SavedSession::open_or_create(store, NewSession::now("chat-1")?).await?;
    /// one.save_now(&[Message::user("Hi")]).await?;
    /// assert!(!one.catch_up().await?);
    /// assert!(other.catch_up().await?);
    /// assert_eq!(other.session().messages, [Message::user("Hi")]);
    /// # Ok::<(), oa_session::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// The same as [`load`](SessionStore::load); on an error the session is unchanged.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn catch_up(&mut self) -> Result<bool, Error> {
        let stored = self.store.load(&self.session.info.id).await?;
        if stored.info.revision == self.session.info.revision {
            // The metadata may differ. The attempts are kept, because the store may still perform one of them.
            self.session = stored;
            return Ok(false);
        }
        let is_ours = self.is_ours(&stored);
        self.session = stored;
        self.attempts.clear();
        Ok(!is_ours)
    }

    /// Writes the conversation atomically: appends new messages, replacing saved ones from the first
    /// difference. A pending call is cleared. Does nothing if nothing changed, nor if the store already holds exactly
    /// this conversation.
    ///
    /// After an error or a dropped future, the next save finds out whether the earlier one was stored, and continues
    /// from there, even if the conversation has changed in the meantime.
    ///
    /// The caller supplies the time; [`save_now`](Self::save_now) uses the system clock.
    ///
    /// # Errors
    ///
    /// The same as [`append`](SessionStore::append) and [`load`](SessionStore::load): `Conflict` if someone else has
    /// written something else, `InvalidInput` while a call has no result.
    ///
    /// # Cancel safety
    ///
    /// The write happens completely or not at all. Save again, or [`reload`](Self::reload) to see which.
    pub async fn save(&mut self, history: &[Message], at: Timestamp) -> Result<(), Error> {
        self.settle().await?;
        while self.session.pending.is_some() || self.session.messages != history {
            self.append(history, at).await?;
        }
        Ok(())
    }

    /// Finds out whether a write whose outcome is not known was stored.
    async fn settle(&mut self) -> Result<(), Error> {
        if !self.attempts.is_empty() {
            let stored = self.store.load(&self.session.info.id).await?;
            // If none of the attempts was stored, the next write is based on the known revision. They are kept:
            // the store may still perform one of them, and that write is then a conflict.
            self.adopt(stored);
        }
        Ok(())
    }

    /// Continues from the stored session if one of the attempts led to it.
    fn adopt(&mut self, stored: Session) -> bool {
        // At the known revision, none of the attempts was stored, even if one of them would change nothing.
        if stored.info.revision == self.session.info.revision {
            return false;
        }
        let is_ours = self.is_ours(&stored);
        if is_ours {
            self.session = stored;
            self.attempts.clear();
        }
        is_ours
    }

    /// Returns true if one of the attempts led to the stored session, which is at another revision than the known one.
    fn is_ours(&self, stored: &Session) -> bool {
        // Without an answer from the store, the session may be at the revision of any attempt. Its content tells which.
        let known = &self.session.messages;
        self.attempts.iter().any(|Attempt { keep, messages, pending }| {
            stored.messages.split_at_checked(*keep).is_some_and(|(kept, new)| {
                known.starts_with(kept) && new == messages && stored.pending == *pending
            })
        })
    }

    /// Remembers a write before it begins: if its future is dropped, the next call finds out about it.
    fn attempt(&mut self, attempt: Attempt) {
        // A repeated attempt becomes the last one.
        self.attempts.retain(|earlier| *earlier != attempt);
        if self.attempts.len() == MOST_ATTEMPTS {
            self.attempts.remove(0);
        }
        self.attempts.push(attempt);
    }

    /// Records the result of the last attempt. After a conflict with an attempt of our own, the session is the
    /// stored one, and the caller has to compare again.
    async fn conclude(&mut self, result: Result<SessionInfo, Error>) -> Result<(), Error> {
        match result {
            Ok(info) => {
                self.session.info = info;
                if let Some(Attempt { keep, messages, pending }) = self.attempts.pop() {
                    self.session.messages.truncate(keep);
                    self.session.messages.extend(messages);
                    self.session.pending = pending;
                }
                // The others are conflicts from now on.
                self.attempts.clear();
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {
                // A store need not order loads after writes that nobody waits for, so an earlier attempt may
                // have been stored after `settle`. Or someone else has written the same as the last one.
                let stored = self.store.load(&self.session.info.id).await?;
                if self.adopt(stored) { Ok(()) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }

    /// Makes this the conversation, without a pending call. After success the session has to be compared again, as in
    /// [`conclude`](Self::conclude).
    async fn append(&mut self, history: &[Message], at: Timestamp) -> Result<(), Error> {
        let Session { info, messages: saved, .. } = &self.session;
        let same = saved.iter().zip(history).take_while(|(saved, now)| saved == now).count();
        // A result is always written together with its call.
        let is_result =
            |place: usize| saved.get(place).is_some_and(|m| m.role == MessageRole::Tool);
        // Goes back from the first difference to a place where a store may cut. Here one message is kept and
        // three are written:
        //
        //     saved:    user | call, result "a"             keep = 1
        //     history:  user | call, result "b", answer     same = 2
        let keep = (0..=same).rev().find(|place| !is_result(*place)).unwrap_or_default();
        let new = history[keep..].to_vec();
        let mut append = Append::new(info.revision, new.clone(), at);
        if keep < saved.len() {
            append = append.keeping(keep);
        }
        let (store, id) = (Arc::clone(&self.store), info.id.clone());
        self.attempt(Attempt { keep, messages: new, pending: None });
        let result = store.append(&id, append).await;
        self.conclude(result).await
    }

    /// Writes the conversation like [`save`](Self::save), at the system clock's current time.
    ///
    /// # Errors
    ///
    /// The same as [`save`](Self::save).
    ///
    /// # Cancel safety
    ///
    /// The same as [`save`](Self::save).
    pub async fn save_now(&mut self, history: &[Message]) -> Result<(), Error> {
        self.save(history, Timestamp::now()).await
    }

    /// Writes a conversation whose last turn waits for permission or results. Earlier messages are written as with
    /// [`save`](Self::save), and the turn is written as [`Pending`] with its first open call. Messages of the turn that
    /// were saved before stay where they are. [`Pending::extra`] of a saved pending turn is kept. If nothing waits,
    /// this is the same as `save`. Does nothing if nothing changed.
    ///
    /// [`Session::conversation`] returns all of it, for `Client::resume(options, messages)`.
    ///
    /// # Errors
    ///
    /// The same as [`save`](Self::save) and [`set_pending`](Self::set_pending).
    ///
    /// # Cancel safety
    ///
    /// The same as [`save`](Self::save); the waiting turn may be missing.
    pub async fn save_waiting(&mut self, history: &[Message], at: Timestamp) -> Result<(), Error> {
        let open = open_calls(history)?;
        let is_answer = |message: &Message| message.role == MessageRole::Assistant;
        let answer = history.iter().rposition(is_answer).unwrap_or_default();
        let blocks = history.get(answer).map_or(&[][..], |answer| &answer.content);
        let mut calls = blocks.iter().filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(call),
            _ => None,
        });
        let Some(call) = calls.find(|call| open.contains(&*call.id)) else {
            return self.save(history, at).await;
        };
        self.settle().await?;
        let prompt = history.iter().rposition(|message| message.role == MessageRole::User);
        // The program's own data, such as claims, belongs to the turn and outlives the first call, and also a first
        // write that clears the pending turn.
        let is_same = |known: &&Pending| known.turn.contains(&history[answer]);
        let cleared =
            self.session.pending.as_ref().filter(is_same).map(|known| known.extra.clone());
        loop {
            // Keep saved messages: a complete step must not be lost between the two writes.
            let saved = self.session.messages.iter().zip(history);
            let same = saved.take_while(|(saved, now)| saved == now).count();
            // A result may differ from the saved one. It stays with its call.
            let is_result = |place: &usize| history[*place].role == MessageRole::Tool;
            let same = (same..answer).find(|place| !is_result(place)).unwrap_or(answer);
            // Two writes: complete messages are appended, then the rest becomes the pending turn. At least the
            // last prompt and everything after it waits, unless it was saved before as part of a complete step.
            // The split is at most the answer with the open call, because nothing but results may follow an open
            // call.
            let split = prompt.unwrap_or_default().max(same);
            let (complete, turn) = history.split_at(split);
            // The first write also clears an older pending call. Between the two, the store has a valid
            // conversation without the waiting turn.
            if self.session.messages != complete {
                self.append(complete, at).await?;
                continue;
            }
            let known = self.session.pending.as_ref();
            if known.is_some_and(|known| known.call == *call && known.turn == turn) {
                return Ok(());
            }
            let extra = known.map(|known| known.extra.clone());
            let mut pending = Pending::new(call.clone(), at).with_turn(turn.to_vec());
            pending.extra = extra.or_else(|| cleared.clone()).unwrap_or_default();
            self.write_pending(Some(pending), at).await?;
        }
    }

    /// Writes a conversation like [`save_waiting`](Self::save_waiting), at the system clock's current time.
    ///
    /// # Errors
    ///
    /// The same as [`save_waiting`](Self::save_waiting).
    ///
    /// # Cancel safety
    ///
    /// The same as [`save_waiting`](Self::save_waiting).
    pub async fn save_waiting_now(&mut self, history: &[Message]) -> Result<(), Error> {
        self.save_waiting(history, Timestamp::now()).await
    }

    /// Saves the call waiting for permission; `None` clears it.
    ///
    /// # Errors
    ///
    /// The same as [`set_pending`](SessionStore::set_pending).
    ///
    /// # Cancel safety
    ///
    /// The same as [`save`](Self::save).
    pub async fn set_pending(
        &mut self,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> Result<(), Error> {
        self.settle().await?;
        loop {
            self.write_pending(pending.clone(), at).await?;
            if self.session.pending == pending {
                return Ok(());
            }
        }
    }

    /// Makes this the pending call. After success the session has to be compared again, as in
    /// [`conclude`](Self::conclude).
    async fn write_pending(
        &mut self,
        pending: Option<Pending>,
        at: Timestamp,
    ) -> Result<(), Error> {
        let Session { info, messages, .. } = &self.session;
        let (store, id, revision) = (Arc::clone(&self.store), info.id.clone(), info.revision);
        let keep = messages.len();
        self.attempt(Attempt { keep, messages: Vec::new(), pending: pending.clone() });
        let result = store.set_pending(&id, revision, pending, at).await;
        self.conclude(result).await
    }
}
