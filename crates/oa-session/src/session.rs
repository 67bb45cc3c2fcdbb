use oa_types::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::id::SessionId;
use crate::pending::Pending;
use crate::revision::Revision;
use crate::timestamp::Timestamp;

/// The facts about a session, without its messages.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The id.
    pub id: SessionId,
    /// The creation time.
    pub created_at: Timestamp,
    /// The time of the last write, by which lists are ordered.
    pub updated_at: Timestamp,
    /// Custom members, such as a title, model or working folder.
    pub metadata: Map<String, Value>,
    /// The number of messages.
    pub message_count: usize,
    /// True if a call is waiting for permission.
    pub is_pending: bool,
    /// The current revision, which the next append must name.
    pub revision: Revision,
}

impl SessionInfo {
    /// Creates the facts about a session without messages; for implementors of stores.
    #[must_use]
    pub fn new(session: NewSession, revision: Revision) -> Self {
        let NewSession { id, at, metadata } = session;
        Self {
            id,
            created_at: at,
            updated_at: at,
            metadata,
            message_count: 0,
            is_pending: false,
            revision,
        }
    }

    /// Returns the metadata member `title`, if it is text.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.metadata.get("title").and_then(Value::as_str)
    }
}

/// A complete session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Session {
    /// The facts about the session.
    pub info: SessionInfo,
    /// The conversation, oldest message first, as `Client::with_history` expects it.
    pub messages: Vec<Message>,
    /// The call waiting for permission, if any.
    pub pending: Option<Pending>,
}

impl Session {
    /// Creates a session from its parts; for implementors of stores.
    #[must_use]
    pub fn new(info: SessionInfo, messages: Vec<Message>, pending: Option<Pending>) -> Self {
        Self { info, messages, pending }
    }

    /// Returns the whole conversation: the messages and those of the waiting turn.
    #[must_use]
    pub fn conversation(&self) -> Vec<Message> {
        let waiting = self.pending.iter().flat_map(|pending| &pending.turn);
        self.messages.iter().chain(waiting).cloned().collect()
    }
}

/// A session to create.
///
/// ```
/// use oa_session::{NewSession, SessionId, Timestamp};
///
/// let id = SessionId::new("chat-1")?;
/// let session = NewSession::new(id, Timestamp::from_millis(0)).with_title("Rain");
/// assert_eq!(session.metadata["title"], "Rain");
/// # Ok::<(), oa_session::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewSession {
    /// The id, unique within the store.
    pub id: SessionId,
    /// The current time.
    pub at: Timestamp,
    /// Custom members. Null members are dropped.
    pub metadata: Map<String, Value>,
}

impl NewSession {
    /// Creates a session without metadata that begins now, by the system clock.
    ///
    /// # Errors
    ///
    /// The same as [`SessionId::new`].
    pub fn now(id: impl Into<String>) -> Result<Self, Error> {
        Ok(Self::new(SessionId::new(id)?, Timestamp::now()))
    }

    /// Creates a session without metadata.
    #[must_use]
    pub fn new(id: SessionId, at: Timestamp) -> Self {
        Self { id, at, metadata: Map::new() }
    }

    /// Sets members of the metadata.
    #[must_use]
    pub fn with_metadata(mut self, members: Map<String, Value>) -> Self {
        self.metadata.extend(members);
        self
    }

    /// Sets the metadata member `title`.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.metadata.insert("title".to_owned(), Value::String(title.into()));
        self
    }
}
