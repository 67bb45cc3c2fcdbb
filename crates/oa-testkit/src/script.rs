//! Scripts: the replies of a server and its expectations.

use std::fmt;
use std::sync::Arc;

use http::Method;

use crate::reply::Reply;
use crate::requests::Request;
use crate::strict::Strict;

/// A script for a server: replies in order, one per chat request.
///
/// The first `POST /v1/chat/completions` gets the first reply, and so on. After the last one, chat requests get
/// [`otherwise`](Self::otherwise) if it is set, or else status 500, and the server's `verify` fails. `GET
/// /v1/models` always lists [`models`](Self::models); anything else is 404, as on a real server, unless set by
/// [`get`](Self::get) or [`post`](Self::post).
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
    /// Replies to other requests than chats, by method and path.
    pub(crate) pages: Vec<(Method, String, Reply)>,
    /// Expectations for the next reply.
    pub(crate) pending: Vec<Expectation>,
    pub(crate) scenes: Vec<Scene>,
    pub(crate) strict: Option<Strict>,
}

impl Script {
    /// Creates a script without replies: every chat request is unexpected.
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

    /// Adds an expectation for the request that gets the next reply.
    ///
    /// An unmet expectation does not change the response; it is reported in the server's story and makes its
    /// `verify` fail. The check may also panic, for example with `assert_eq!`. Several may be set for one
    /// reply. Those set before [`otherwise`](Self::otherwise) apply to every request that it answers.
    pub fn expect<F>(mut self, what: impl Into<String>, check: F) -> Self
    where
        F: Fn(&Request) -> bool + Send + Sync + 'static,
    {
        self.pending.push(Expectation { check: Arc::new(check), what: what.into() });
        self
    }

    /// Sets the reply to `GET` of a path, any number of times.
    ///
    /// The full path, such as `/v1/models` or `/health`, without a query.
    pub fn get(mut self, path: impl Into<String>, reply: Reply) -> Self {
        self.pages.push((Method::GET, path.into(), reply));
        self
    }

    /// Sets the reply to `POST` to a path other than chat, any number of times.
    pub fn post(mut self, path: impl Into<String>, reply: Reply) -> Self {
        self.pages.push((Method::POST, path.into(), reply));
        self
    }

    /// Sets the ids listed by `GET /v1/models`; the default is `test-model`.
    pub fn models<I>(mut self, ids: I) -> Self
    where
        I: IntoIterator<Item: Into<String>>,
    {
        self.models = ids.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the reply to all chat requests after the others were played.
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

    /// Checks each chat request as the strictest server would, with [`Strict::new`].
    ///
    /// A violation gets status 400 with all problems and uses no reply; it is reported in the server's story
    /// and makes its `verify` fail.
    pub fn strict(self) -> Self {
        self.strict_by(Strict::new())
    }

    /// Checks each chat request with custom rules, like [`strict`](Self::strict).
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

/// A script with these replies.
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

/// A reply and the expectations for its request.
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
    /// Checks the request and returns a problem, if any.
    pub(crate) fn complaint(&self, request: &Request) -> Option<String> {
        match crate::act::caught(|| (self.check)(request)) {
            Ok(true) => None,
            Ok(false) => Some(format!("does not match {:?}", self.what)),
            Err(message) => Some(format!("does not match {:?}: {message}", self.what)),
        }
    }
}

impl fmt::Debug for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expectation").field(&self.what).finish()
    }
}
