use oa_types::{Message, ToolUseBlock};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::timestamp::Timestamp;

/// A call waiting for permission, saved so that it can be approved after a restart.
///
/// A waiting turn is incomplete, so its messages cannot be appended yet and are kept here. When the call is
/// decided and the turn ends, [`append`](crate::SessionStore::append) writes the whole turn and removes this in
/// one step. Of two programs that do so, the second gets a conflict.
///
/// ```
/// use oa_session::{Pending, Timestamp};
/// use oa_types::{Message, ToolUseBlock};
/// use serde_json::json;
///
/// let call = ToolUseBlock::new("call_1", "delete", json!({"path": "a.txt"}));
/// let turn = vec![Message::user("Tidy up."), Message::assistant(vec![call.clone().into()])];
/// let pending = Pending::new(call, Timestamp::from_millis(0)).with_turn(turn).with_reason("it deletes");
/// let text = serde_json::to_string(&pending)?;
/// assert_eq!(serde_json::from_str::<Pending>(&text)?, pending);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Pending {
    /// The waiting call.
    pub call: ToolUseBlock,
    /// The time of the request.
    pub asked_at: Timestamp,
    /// The reason for asking, for the person who decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The messages of the turn so far, none of which are in the session yet: the prompt, the answer with the
    /// call, and any results. If not empty, the call must be open at its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turn: Vec<Message>,
    /// Other data that the program needs to continue, such as budgets or decisions on other calls.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Pending {
    /// Creates a record for a call waiting since `asked_at`.
    #[must_use]
    pub fn new(call: ToolUseBlock, asked_at: Timestamp) -> Self {
        Self { call, asked_at, reason: None, turn: Vec::new(), extra: Map::new() }
    }

    /// Sets the reason for asking.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Sets the messages of the turn so far.
    #[must_use]
    pub fn with_turn(mut self, turn: Vec<Message>) -> Self {
        self.turn = turn;
        self
    }
}
