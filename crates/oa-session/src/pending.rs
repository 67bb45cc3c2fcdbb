use oa_types::{Message, ToolUseBlock};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::timestamp::Timestamp;

/// A call that waits for somebody's permission, saved so that it can be answered after a restart.
///
/// A turn that waits is not complete, so its messages cannot be appended yet: they are kept here. Once
/// the call is answered and the turn goes on to its end, [`append`](crate::SessionStore::append) writes
/// the whole turn and removes this in one step. Of two who answer, the second is told of a conflict.
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
    /// The call that waits.
    pub call: ToolUseBlock,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// Why it is asked, for whoever decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The messages of the turn so far, none of which is among the session's yet: the prompt, the
    /// answer with the call, results that are there. Empty, or the call is open at its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turn: Vec<Message>,
    /// Whatever else the program needs to go on: budgets, who was asked, decisions on other calls.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Pending {
    /// Creates the record of a call that waits since `asked_at`.
    #[must_use]
    pub fn new(call: ToolUseBlock, asked_at: Timestamp) -> Self {
        Self { call, asked_at, reason: None, turn: Vec::new(), extra: Map::new() }
    }

    /// Tells why it is asked.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Keeps the messages of the turn so far.
    #[must_use]
    pub fn with_turn(mut self, turn: Vec<Message>) -> Self {
        self.turn = turn;
        self
    }
}
