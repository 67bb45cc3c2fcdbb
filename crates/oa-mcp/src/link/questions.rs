//! The server's questions.

use oa_mcp_data::{HostRefusal, HostRequest, INVALID_REQUEST, NO_METHOD, REFUSED, Wanted};
use oa_tools::Cancel;
use serde_json::{Value, json};

use super::{Kind, Link, Question};

/// The longest id of a request from the server, in bytes. Answers repeat it, and wait in memory until they are read.
const LONGEST_ID: usize = 256;

impl Link {
    /// Answers a request from the server, or passes it to the call that it belongs to.
    pub(super) fn answer(&self, method: &str, id: Value, params: &Value, within: Option<i64>) {
        if id.to_string().len() > LONGEST_ID {
            let refusal = HostRefusal::new(INVALID_REQUEST, "the id is too long");
            return self.respond(&Value::Null, Err(refusal));
        }
        let wanted = match self.is_stateless() && method != "ping" {
            // A stateless server asks with a result instead.
            true => {
                Wanted::Refused(HostRefusal::new(NO_METHOD, "this version has no such requests"))
            }
            false => self.host.read(method, params),
        };
        let answer = match wanted {
            Wanted::Answer(answer) => Ok(answer),
            Wanted::Refused(refusal) => Err(refusal),
            Wanted::Question(asked) => match self.hand_over(&id, *asked, within) {
                Ok(()) => return,
                Err(refusal) => Err(refusal),
            },
        };
        self.respond(&id, answer);
    }

    /// Passes a question to the call in which it was asked. A pipe does not show which one that is, so there it is the
    /// oldest.
    fn hand_over(
        &self,
        id: &Value,
        asked: HostRequest,
        within: Option<i64>,
    ) -> Result<(), HostRefusal> {
        let mut state = self.lock();
        let is_meant = |call: i64| within.is_none_or(|within| within == call);
        let calls = state.calls.iter().filter(|(call, _)| is_meant(**call));
        let calls = calls.filter_map(|(id, call)| Some((id, call.questions.as_ref()?)));
        let Some((_, questions)) = calls.min_by_key(|(id, _)| **id) else {
            return Err(HostRefusal::new(
                INVALID_REQUEST,
                "questions are allowed only while a tool is running",
            ));
        };
        // As JSON, because `1` and `"1"` are different ids.
        let key = id.to_string();
        if state.asked.contains_key(&key) {
            // It was sent again. An error with this id would be taken for the answer to the open question.
            return Ok(());
        }
        if state.asked.len() >= self.limits.questions {
            return Err(HostRefusal::new(REFUSED, "too many questions are waiting for answers"));
        }
        let cancel = Cancel::new();
        let question = Question { id: id.clone(), asked, cancel: cancel.clone() };
        // Both under the lock: the call may answer at once, and `reply` ignores a question that is not yet in
        // `asked`. The queue comes first, so that a question that does not fit leaves no entry.
        questions
            .try_send(question)
            .map_err(|_| HostRefusal::new(REFUSED, "too many questions are waiting for answers"))?;
        state.asked.insert(key, cancel);
        self.asking.send_replace(state.asked.len());
        Ok(())
    }

    /// Answers a question, unless it was already answered or canceled.
    pub(crate) fn reply(&self, question: &Value, answer: Result<Value, HostRefusal>) {
        if self.forget(question).is_some() {
            self.respond(question, answer);
        }
    }

    /// Removes a question from the open ones.
    pub(super) fn forget(&self, question: &Value) -> Option<Cancel> {
        let mut state = self.lock();
        let cancel = state.asked.remove(&question.to_string());
        self.asking.send_replace(state.asked.len());
        cancel
    }

    fn respond(&self, id: &Value, answer: Result<Value, HostRefusal>) {
        let answer = match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(HostRefusal { code, message, .. }) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            }
        };
        let _ = self.queue(&answer, Kind::Answer);
    }
}
