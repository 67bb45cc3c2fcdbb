//! What the server will say, and what it expects to be asked.

use std::fmt;
use std::sync::Arc;

use http::Method;

use crate::reply::Reply;
use crate::requests::Request;
use crate::strict::Strict;

/// What a server will say: replies in order, one for each chat request.
///
/// The first `POST /v1/chat/completions` gets the first reply, and so on. When the script is over
/// a chat request gets [`otherwise`](Self::otherwise), if there is one; else status 500, and the
/// server's `verify` fails. `GET /v1/models` lists [`models`](Self::models) at any time; everything
/// else is 404, as on a real server, unless [`get`](Self::get) says more.
///
/// # Examples
///
/// ```
/// use oa_testkit::{Reply, Request, Script};
/// use serde_json::json;
///
/// let script = Script::new()
///     .expect("offers its tools", |request: &Request| request.json()["tools"].is_array())
///     .reply(Reply::new().say("I'll look.").call("add", json!({"a": 1, "b": 2})))
///     .expect("brings the result", |request: &Request| {
///         request.messages().last().is_some_and(|message| message["role"] == "tool")
///     })
///     .reply(Reply::text("It is 3."));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a script does nothing until a server plays it"]
pub struct Script {
    pub(crate) models: Vec<String>,
    pub(crate) otherwise: Option<Scene>,
    /// What is answered beside chats, by method and path.
    pub(crate) pages: Vec<(Method, String, Reply)>,
    /// Expectations which wait for a reply.
    pub(crate) pending: Vec<Expectation>,
    pub(crate) scenes: Vec<Scene>,
    pub(crate) strict: Option<Strict>,
}

impl Script {
    /// Creates a script without replies: every chat request is one too many.
    pub fn new() -> Self {
        Self {
            models: vec!["test-model".to_owned()],
            otherwise: None,
            pages: Vec::new(),
            pending: Vec::new(),
            scenes: Vec::new(),
            strict: None,
        }
    }

    /// Expects something of the request which will get the next reply.
    ///
    /// An unmet expectation does not change the answer; it is a line in the server's story, and
    /// makes its `verify` fail. The check may also panic, as `assert_eq!` does: that is an unmet
    /// expectation with a message. Several may be set for one reply. Those set before
    /// [`otherwise`](Self::otherwise) hold for each request which that answers.
    pub fn expect<F>(mut self, what: impl Into<String>, check: F) -> Self
    where
        F: Fn(&Request) -> bool + Send + Sync + 'static,
    {
        self.pending.push(Expectation { check: Arc::new(check), what: what.into() });
        self
    }

    /// Answers `GET` of a path with a reply, any number of times.
    ///
    /// The path is the whole one, `/v1/models` or `/health`, without a query.
    pub fn get(mut self, path: impl Into<String>, reply: Reply) -> Self {
        self.pages.push((Method::GET, path.into(), reply));
        self
    }

    /// Answers `POST` to a path that is not that of chats with a reply, any number of times.
    pub fn post(mut self, path: impl Into<String>, reply: Reply) -> Self {
        self.pages.push((Method::POST, path.into(), reply));
        self
    }

    /// Sets the ids which `GET /v1/models` lists: `test-model` if this is not called.
    pub fn models<I>(mut self, ids: I) -> Self
    where
        I: IntoIterator<Item: Into<String>>,
    {
        self.models = ids.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the reply to every chat request that comes when the others are played.
    pub fn otherwise(mut self, reply: Reply) -> Self {
        self.otherwise = Some(self.scene(reply));
        self
    }

    /// Adds the reply to the next chat request.
    pub fn reply(mut self, reply: Reply) -> Self {
        let scene = self.scene(reply);
        self.scenes.push(scene);
        self
    }

    /// Checks each chat request as the strictest server would, by [`Strict::new`].
    ///
    /// One that breaks a rule gets status 400 with all that is wrong, and no reply of the script; it
    /// is a line in the server's story, and makes its `verify` fail.
    pub fn strict(self) -> Self {
        self.strict_by(Strict::new())
    }

    /// Checks each chat request by rules of one's own, as [`strict`](Self::strict) does.
    pub fn strict_by(mut self, rules: Strict) -> Self {
        self.strict = Some(rules);
        self
    }

    fn scene(&mut self, reply: Reply) -> Scene {
        Scene { expectations: std::mem::take(&mut self.pending), reply }
    }
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

/// A script of one reply.
impl<const N: usize> From<[Reply; N]> for Script {
    fn from(replies: [Reply; N]) -> Self {
        replies.into_iter().fold(Self::new(), Self::reply)
    }
}

impl From<Vec<Reply>> for Script {
    fn from(replies: Vec<Reply>) -> Self {
        replies.into_iter().fold(Self::new(), Self::reply)
    }
}

impl From<Reply> for Script {
    fn from(reply: Reply) -> Self {
        Self::new().reply(reply)
    }
}

/// A reply, and what the request which gets it should be like.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) reply: Reply,
}

#[derive(Clone)]
pub(crate) struct Expectation {
    check: Arc<dyn Fn(&Request) -> bool + Send + Sync>,
    pub(crate) what: String,
}

impl Expectation {
    /// Checks the request and returns what is wrong, if anything is.
    pub(crate) fn complaint(&self, request: &Request) -> Option<String> {
        match crate::act::caught(|| (self.check)(request)) {
            Ok(true) => None,
            Ok(false) => Some(format!("does not meet {:?}", self.what)),
            Err(message) => Some(format!("does not meet {:?}: {message}", self.what)),
        }
    }
}

impl fmt::Debug for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expectation").field(&self.what).finish()
    }
}
