use std::pin::Pin;
use std::sync::Arc;

use oa_mcp_data::{Elicitation, ElicitationAnswer, Root, Sampled, Sampling, tool_name};
use oa_tools::{ToolContext, ToolError};
use serde_json::{Map, Value, json};

use crate::limits::Limits;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The callback for questions to a person.
pub(crate) type OnElicitation =
    Arc<dyn Fn(Elicitation, ToolContext) -> Boxed<ElicitationAnswer> + Send + Sync>;
/// The callback for requests to a model.
pub(crate) type OnSampling =
    Arc<dyn Fn(Sampling, ToolContext) -> Boxed<Result<Sampled, ToolError>> + Send + Sync>;

/// The codes of errors that a server gets.
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const NO_METHOD: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// As the protocol has it for a person who says no.
pub(crate) const REFUSED: i64 = -1;

/// The offers to a server, as configured.
#[derive(Clone, Default)]
pub(crate) struct Offers {
    pub(crate) roots: Vec<Root>,
    pub(crate) on_elicitation: Option<OnElicitation>,
    pub(crate) on_sampling: Option<OnSampling>,
}

/// Our side, as a server sees it: nothing is offered that was not set.
#[derive(Clone)]
pub(crate) struct Host {
    server: String,
    prefix: String,
    limits: Limits,
    offers: Offers,
}

/// A question that needs an answer from outside.
#[derive(Clone, Debug)]
pub(crate) enum HostRequest {
    Elicitation(Elicitation),
    Sampling(Sampling),
}

/// The code and the words of an error that a server gets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A request of a server, sorted.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The answer is known.
    Answer(Value),
    Question(Box<HostRequest>),
    Refused(Refusal),
}

impl Host {
    pub(crate) fn new(server: &str, prefix: &str, limits: Limits, offers: Offers) -> Self {
        Self { server: server.to_owned(), prefix: prefix.to_owned(), limits, offers }
    }

    /// Returns the capabilities that are declared.
    pub(crate) fn capabilities(&self) -> Value {
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

    /// Reads a request of the server.
    pub(crate) fn read(&self, method: &str, params: &Value) -> Wanted {
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
                self.limits.description_bytes,
                self.limits.schema_bytes,
            )
            .map(HostRequest::Elicitation),
            "sampling/createMessage" if self.offers.on_sampling.is_some() => {
                Sampling::read(params, &self.server, name("sampling"), self.limits.sampling_tokens)
                    .map(HostRequest::Sampling)
            }
            _ => {
                return Wanted::Refused(Refusal::new(NO_METHOD, "this client does not offer it"));
            }
        };
        match asked {
            Ok(asked) => Wanted::Question(Box::new(asked)),
            Err(problem) => Wanted::Refused(Refusal::new(INVALID_PARAMS, problem)),
        }
    }

    /// Has a question answered.
    pub(crate) async fn answer(
        &self,
        asked: HostRequest,
        cx: ToolContext,
    ) -> Result<Value, Refusal> {
        let refused = |words: String| Refusal::new(REFUSED, words);
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
            _ => Err(Refusal::new(NO_METHOD, "this client does not offer it")),
        }
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
    fn nothing_is_offered_that_was_not_set() {
        let host = |offers| Host::new("s", "s", Limits::default(), offers);
        let bare = host(Offers::default());
        assert_eq!(bare.capabilities(), json!({}));
        assert_eq!(kind(&bare, "ping", &json!({})), "{}");
        for method in ["roots/list", "elicitation/create", "sampling/createMessage", "other"] {
            assert_eq!(kind(&bare, method, &json!({})), "-32601", "{method}");
        }

        let host = host(Offers {
            roots: vec![Root::new(std::path::Path::new("/srv"))],
            on_elicitation: Some(Arc::new(|_, _| Box::pin(async { ElicitationAnswer::Decline }))),
            on_sampling: Some(Arc::new(|_, _| Box::pin(async { Ok(Sampled::new("m", "t")) }))),
        });
        let expected =
            json!({ "roots": {}, "elicitation": { "form": {}, "url": {} }, "sampling": {} });
        assert_eq!(host.capabilities(), expected);
        let roots = kind(&host, "roots/list", &json!({}));
        assert_eq!(roots, r#"{"roots":[{"uri":"file:///srv","name":"srv"}]}"#);
        let form = json!({ "message": "a", "requestedSchema": { "type": "object" } });
        assert_eq!(kind(&host, "elicitation/create", &form), "Elicitation");
        assert_eq!(kind(&host, "elicitation/create", &json!({})), "-32602");
        let messages = json!([{ "role": "user", "content": { "type": "text", "text": "a" } }]);
        let request = json!({ "messages": messages, "maxTokens": 9 });
        assert_eq!(kind(&host, "sampling/createMessage", &request), "Sampling(Sa");
        assert_eq!(kind(&host, "sampling/createMessage", &json!({})), "-32602");
    }
}
