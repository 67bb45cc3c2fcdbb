use oa_types::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::SessionId;
use crate::pending::Pending;
use crate::revision::Revision;
use crate::timestamp::Timestamp;

/// What is known of a session without reading its messages.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its name.
    pub id: SessionId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last written to; lists are ordered by it.
    pub updated_at: Timestamp,
    /// Free members, such as a title, a model, a working folder.
    pub metadata: Map<String, Value>,
    /// How many messages it has.
    pub message_count: usize,
    /// Whether a call waits for permission.
    pub is_pending: bool,
    /// Which state this is; the next append has to name it.
    pub revision: Revision,
}

impl SessionInfo {
    /// Creates what is known of a session without messages, for those who write a store.
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

    /// Returns the member `title` of the metadata, if it is text.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.metadata.get("title").and_then(Value::as_str)
    }
}

/// A session with everything in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Session {
    /// What a list tells of it.
    pub info: SessionInfo,
    /// The conversation, oldest message first: what `Client::with_history` takes.
    pub messages: Vec<Message>,
    /// The call that waits for permission, if one does.
    pub pending: Option<Pending>,
}

impl Session {
    /// Creates a session from its parts, for those who write a store.
    #[must_use]
    pub fn new(info: SessionInfo, messages: Vec<Message>, pending: Option<Pending>) -> Self {
        Self { info, messages, pending }
    }

    /// Returns the whole conversation: the messages, and those of the turn that waits.
    #[must_use]
    pub fn conversation(&self) -> Vec<Message> {
        let waiting = self.pending.iter().flat_map(|pending| &pending.turn);
        self.messages.iter().chain(waiting).cloned().collect()
    }
}

/// A session to be created.
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
    /// Its name, which no other session of the store has.
    pub id: SessionId,
    /// The time.
    pub at: Timestamp,
    /// Free members. Those that are null are left out.
    pub metadata: Map<String, Value>,
}

impl NewSession {
    /// Creates a session without metadata.
    #[must_use]
    pub fn new(id: SessionId, at: Timestamp) -> Self {
        Self { id, at, metadata: Map::new() }
    }

    /// Sets these members of the metadata.
    #[must_use]
    pub fn with_metadata(mut self, members: Map<String, Value>) -> Self {
        self.metadata.extend(members);
        self
    }

    /// Sets the member `title` of the metadata.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.metadata.insert("title".to_owned(), Value::String(title.into()));
        self
    }
}
