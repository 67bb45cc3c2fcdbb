use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use oa_tools::{ToolContext, ToolError};
use serde_json::{Map, Value, json};

use crate::elicitation::{Elicitation, ElicitationAnswer};
use crate::name::tool_name;
use crate::root::Root;
use crate::sampling::{Sampled, Sampling};

/// The future of a callback.
pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The callback for questions to the user.
pub type OnElicitation =
    Arc<dyn Fn(Elicitation, ToolContext) -> Boxed<ElicitationAnswer> + Send + Sync>;
/// The callback for requests to a model.
pub type OnSampling =
    Arc<dyn Fn(Sampling, ToolContext) -> Boxed<Result<Sampled, ToolError>> + Send + Sync>;

/// The error code for a request that is not allowed at this point.
pub const INVALID_REQUEST: i64 = -32600;
/// The error code for an unsupported request.
pub const NO_METHOD: i64 = -32601;
/// The error code for an invalid question.
pub const INVALID_PARAMS: i64 = -32602;
/// The error code for a refusal, as in the examples of the standard.
pub const REFUSED: i64 = -1;

/// The capabilities that are offered to a server.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Offers {
    /// The folders that are announced to the server.
    pub roots: Vec<Root>,
    /// The callback for questions to the user.
    pub on_elicitation: Option<OnElicitation>,
    /// The callback for requests to a model.
    pub on_sampling: Option<OnSampling>,
}

impl fmt::Debug for Offers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offers").field("roots", &self.roots).finish_non_exhaustive()
    }
}

/// Bounds on the questions of a server.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "another bound is another argument of its caller")]
pub struct QuestionLimits {
    /// The longest text of a question in bytes.
    pub text_bytes: usize,
    /// The largest form in bytes.
    pub schema_bytes: usize,
    /// The maximum tokens of a model's answer.
    pub tokens: u32,
}

/// The client as a server sees it. It offers only the capabilities that were configured.
#[derive(Clone, Debug)]
pub struct Host {
    server: String,
    prefix: String,
    limits: QuestionLimits,
    offers: Offers,
}

/// A question that a callback has to answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HostRequest {
    /// A question to the user.
    Elicitation(Elicitation),
    /// A request to a model.
    Sampling(Sampling),
}

/// The code and the message of an error that is sent to a server.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct HostRefusal {
    /// The protocol's error code.
    pub code: i64,
    /// The message.
    pub message: String,
}

impl HostRefusal {
    /// Creates a refusal.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A request from a server, classified.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a request is answered, refused or asked on")]
pub enum Wanted {
    /// The request is answered with this value.
    Answer(Value),
    /// A callback has to answer it.
    Question(Box<HostRequest>),
    /// The request is refused with this error.
    Refused(HostRefusal),
}

impl Host {
    /// Creates the client's side for a server with this name and prefix.
    #[must_use]
    pub fn new(server: &str, prefix: &str, limits: QuestionLimits, offers: Offers) -> Self {
        Self { server: server.to_owned(), prefix: prefix.to_owned(), limits, offers }
    }

    /// Returns the capabilities to declare.
    #[must_use]
    pub fn capabilities(&self) -> Value {
        let mut offered = Map::new();
        if !self.offers.roots.is_empty() {
            offered.insert("roots".to_owned(), json!({}));
        }
        if self.offers.on_elicitation.is_some() {
            offered.insert("elicitation".to_owned(), json!({ "form": {}, "url": {} }));
        }
        if self.offers.on_sampling.is_some() {
            offered.insert("sampling".to_owned(), json!({}));
        }
        offered.into()
    }

    /// Reads a request from the server.
    #[must_use]
    pub fn read(&self, method: &str, params: &Value) -> Wanted {
        let name = |what: &str| tool_name(&self.prefix, what);
        let asked = match method {
            "ping" => return Wanted::Answer(json!({})),
            "roots/list" if !self.offers.roots.is_empty() => {
                let roots: Vec<_> = self.offers.roots.iter().map(Root::to_json).collect();
                return Wanted::Answer(json!({ "roots": roots }));
            }
            "elicitation/create" if self.offers.on_elicitation.is_some() => Elicitation::read(
                params,
                &self.server,
                name("elicitation"),
                self.limits.text_bytes,
                self.limits.schema_bytes,
            )
            .map(HostRequest::Elicitation),
            "sampling/createMessage" if self.offers.on_sampling.is_some() => {
                Sampling::read(params, &self.server, name("sampling"), self.limits.tokens)
                    .map(HostRequest::Sampling)
            }
            _ => {
                return Wanted::Refused(HostRefusal::new(
                    NO_METHOD,
                    "this client does not support it",
                ));
            }
        };
        match asked {
            Ok(asked) => Wanted::Question(Box::new(asked)),
            Err(problem) => Wanted::Refused(HostRefusal::new(INVALID_PARAMS, problem)),
        }
    }

    /// Has a question answered by its callback.
    ///
    /// # Errors
    ///
    /// The refusal to send to the server.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the callback's future.
    pub async fn answer(&self, asked: HostRequest, cx: ToolContext) -> Result<Value, HostRefusal> {
        let refused = |words: String| HostRefusal::new(REFUSED, words);
        match (asked, &self.offers.on_elicitation, &self.offers.on_sampling) {
            (HostRequest::Elicitation(question), Some(ask), _) => {
                let answer = ask(question.clone(), cx).await;
                question.answer(answer).map_err(refused)
            }
            (HostRequest::Sampling(request), _, Some(sample)) => {
                let sampled = sample(request, cx).await;
                let sampled = sampled.map_err(|error| refused(error.to_string()))?;
                Ok(sampled.to_result())
            }
            _ => Err(HostRefusal::new(NO_METHOD, "this client does not support it")),
        }
    }

    /// Has a question of a round answered. Rounds have no error answers, so a refused question to the user is declined,
    /// and one whose answer does not match the form is canceled. In both cases the second value is the reason.
    ///
    /// # Errors
    ///
    /// The refusal of a request to a model. There is no substitute for its answer, so the server cannot continue.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the callback's future.
    pub async fn answer_in_round(
        &self,
        asked: HostRequest,
        cx: ToolContext,
    ) -> Result<(Value, Option<String>), HostRefusal> {
        let (HostRequest::Elicitation(question), Some(ask)) = (&asked, &self.offers.on_elicitation)
        else {
            return self.answer(asked, cx).await.map(|answer| (answer, None));
        };
        let answer = ask(question.clone(), cx).await;
        let is_refused = matches!(answer, ElicitationAnswer::Refuse(_));
        // A refusal is a decision. An answer that does not match is none, so the server may ask again.
        let action = if is_refused { "decline" } else { "cancel" };
        Ok(match question.answer(answer) {
            Ok(answer) => (answer, None),
            Err(why) => (json!({ "action": action }), Some(why)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(host: &Host, method: &str, params: &Value) -> String {
        match host.read(method, params) {
            Wanted::Answer(answer) => answer.to_string(),
            Wanted::Question(asked) => format!("{asked:?}").chars().take(11).collect(),
            Wanted::Refused(refusal) => refusal.code.to_string(),
        }
    }

    #[test]
    fn only_configured_capabilities_are_offered() {
        let limits = QuestionLimits { text_bytes: 1_000, schema_bytes: 1_000, tokens: 9 };
        let host = |offers| Host::new("s", "s", limits, offers);
        let bare = host(Offers::default());
        assert_eq!(bare.capabilities(), json!({}));
        assert_eq!(kind(&bare, "ping", &json!({})), "{}");
        for method in ["roots/list", "elicitation/create", "sampling/createMessage", "other"] {
            assert_eq!(kind(&bare, method, &json!({})), "-32601", "{method}");
        }

        let root = Root::new(std::path::Path::new("/srv")).unwrap();
        let host = host(Offers {
            roots: vec![root.clone()],
            on_elicitation: Some(Arc::new(|_, _| Box::pin(async { ElicitationAnswer::Decline }))),
            on_sampling: Some(Arc::new(|_, _| Box::pin(async { Ok(Sampled::new("m", "t")) }))),
        });
        let expected =
            json!({ "roots": {}, "elicitation": { "form": {}, "url": {} }, "sampling": {} });
        assert_eq!(host.capabilities(), expected);
        let roots = kind(&host, "roots/list", &json!({}));
        assert_eq!(roots, json!({ "roots": [root.to_json()] }).to_string());
        let form = json!({ "message": "a", "requestedSchema": { "type": "object" } });
        assert_eq!(kind(&host, "elicitation/create", &form), "Elicitation");
        assert_eq!(kind(&host, "elicitation/create", &json!({})), "-32602");
        let messages = json!([{ "role": "user", "content": { "type": "text", "text": "a" } }]);
        let request = json!({ "messages": messages, "maxTokens": 9 });
        assert_eq!(kind(&host, "sampling/createMessage", &request), "Sampling(Sa");
        assert_eq!(kind(&host, "sampling/createMessage", &json!({})), "-32602");
    }
}
