use std::{error, fmt};

use http::Method;
use oa_types::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contract::{Approve, Deny, ExternalResult, Fork, SessionPrompt, Status, TurnReply};
use crate::engine::Engine;

/// Calls the handlers of sessions, over the engine's ingress.
///
/// While no worker runs, a call waits for one: set a timeout if you do not want to wait. Dropping a call does not stop
/// the work that it started.
///
/// ```no_run
/// use oa_restate::{SessionPrompt, Sessions};
///
/// # async fn talk() -> Result<(), Box<dyn std::error::Error>> {
/// let sessions = Sessions::new("http://127.0.0.1:8080");
/// let reply = sessions.prompt("chat-7", &SessionPrompt::text("What is 19 + 23?"), Some("message-1")).await?;
/// println!("{}", reply.text);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Sessions(Engine);

/// The error of a handler or of the engine.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SessionError {
    /// The status; `None` if the engine did not answer. 400 also for a request that cannot be sent: its idempotency key
    /// has control characters, or the address of the ingress is invalid.
    pub status: Option<u16>,
    /// The message.
    pub message: String,
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status}: {}", self.message),
            None => write!(f, "the engine did not answer: {}", self.message),
        }
    }
}

impl error::Error for SessionError {}

impl Sessions {
    /// Creates a client of the ingress at this address.
    #[must_use]
    pub fn new(ingress: &str) -> Self {
        Self(Engine::new(ingress))
    }

    /// Runs a turn. With a key, repeating the call returns the reply of the same turn.
    ///
    /// # Errors
    ///
    /// If the engine does not answer, or the turn fails; see [the crate](crate#errors-of-prompt) for the status.
    pub async fn prompt(
        &self,
        session: &str,
        prompt: &SessionPrompt,
        key: Option<&str>,
    ) -> Result<TurnReply, SessionError> {
        read(self.send(session, "prompt", Some(write(prompt)?), key).await?)
    }

    /// Returns the messages of the finished turns.
    ///
    /// # Errors
    ///
    /// If the engine does not answer.
    pub async fn history(&self, session: &str) -> Result<Vec<Message>, SessionError> {
        read(self.send(session, "history", None, None).await?)
    }

    /// Returns the turn in progress, and the calls that wait for a decision or a result.
    ///
    /// # Errors
    ///
    /// If the engine does not answer.
    pub async fn status(&self, session: &str) -> Result<Status, SessionError> {
        read(self.send(session, "status", None, None).await?)
    }

    /// Approves a call that waits for approval.
    ///
    /// # Errors
    ///
    /// If the engine does not answer; 404 if the call does not wait, 400 if the new input does not match its tool's
    /// schema.
    pub async fn approve(&self, session: &str, approve: &Approve) -> Result<(), SessionError> {
        self.tell(session, "approve", approve).await
    }

    /// Denies a call that waits for approval.
    ///
    /// # Errors
    ///
    /// If the engine does not answer; 404 if the call does not wait.
    pub async fn deny(&self, session: &str, deny: &Deny) -> Result<(), SessionError> {
        self.tell(session, "deny", deny).await
    }

    /// Gives the result of a call whose tool is external.
    ///
    /// # Errors
    ///
    /// If the engine does not answer; 404 if the call does not wait, 413 if the result is too large.
    pub async fn answer(&self, session: &str, result: &ExternalResult) -> Result<(), SessionError> {
        self.tell(session, "answer", result).await
    }

    /// Ends the turn in progress. Returns false if there is none.
    ///
    /// # Errors
    ///
    /// If the engine does not answer.
    pub async fn interrupt(&self, session: &str) -> Result<bool, SessionError> {
        read(self.send(session, "interrupt", None, None).await?)
    }

    /// Adds a user's message to the turn in progress, or to the next one.
    ///
    /// # Errors
    ///
    /// If the engine does not answer; 400 if it is not a user's message, 429 if 32 messages are already waiting, 413 if
    /// they would exceed 4 MiB together.
    pub async fn steer(&self, session: &str, message: &SessionPrompt) -> Result<(), SessionError> {
        self.tell(session, "steer", message).await
    }

    /// Removes all messages, after the turn in progress.
    ///
    /// # Errors
    ///
    /// If the engine does not answer.
    pub async fn clear(&self, session: &str) -> Result<(), SessionError> {
        self.send(session, "clear", None, None).await.map(drop)
    }

    /// Copies messages of another session into an empty one.
    ///
    /// # Errors
    ///
    /// If the engine does not answer; 409 if the session is not empty.
    pub async fn fork(&self, session: &str, fork: &Fork) -> Result<(), SessionError> {
        self.tell(session, "fork", fork).await
    }

    async fn tell<T: Serialize + Sync>(
        &self,
        session: &str,
        handler: &str,
        input: &T,
    ) -> Result<(), SessionError> {
        self.send(session, handler, Some(write(input)?), None).await.map(drop)
    }

    async fn send(
        &self,
        session: &str,
        handler: &str,
        input: Option<String>,
        key: Option<&str>,
    ) -> Result<Vec<u8>, SessionError> {
        let path = format!("/Agent/{}/{handler}", escaped(session));
        let answer = self.0.send_with_key(Method::POST, &path, input, key).await;
        let (status, said) = answer.map_err(|error| {
            // Callers try again while the engine does not answer, which would not help here.
            failure(error.is_invalid.then_some(400), error.to_string())
        })?;
        if (200..300).contains(&status) {
            return Ok(said);
        }
        let message = serde_json::from_slice::<Value>(&said).unwrap_or_default();
        let message = message["message"].as_str().unwrap_or("no reason given");
        Err(failure(Some(status), message.to_owned()))
    }
}

/// Returns a session's key as a part of a path.
fn escaped(key: &str) -> String {
    // The unreserved characters of RFC 3986, section 2.3, stay.
    let escape = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(*byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    key.as_bytes().iter().map(escape).collect()
}

fn failure(status: Option<u16>, message: String) -> SessionError {
    SessionError { status, message }
}

fn write<T: Serialize>(value: &T) -> Result<String, SessionError> {
    serde_json::to_string(value).map_err(|error| failure(Some(400), error.to_string()))
}

fn read<T: DeserializeOwned>(said: Vec<u8>) -> Result<T, SessionError> {
    serde_json::from_slice(&said).map_err(|error| failure(Some(200), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unsendable_requests_are_no_silence() {
        let prompt = SessionPrompt::text("Hello");
        for (ingress, key, status) in [
            ("http://127.0.0.1:1", "message-1", None),
            ("http://127.0.0.1:1", "a\nb", Some(400)),
            ("127.0.0.1:1", "message-1", Some(400)),
            ("ftp://127.0.0.1:1", "message-1", Some(400)),
        ] {
            let error = Sessions::new(ingress).prompt("s", &prompt, Some(key)).await.unwrap_err();
            assert_eq!(error.status, status, "{error}");
        }
    }

    #[test]
    fn keys_are_percent_encoded() {
        assert_eq!(escaped("many/1 ä?"), "many%2F1%20%C3%A4%3F");
    }
}
