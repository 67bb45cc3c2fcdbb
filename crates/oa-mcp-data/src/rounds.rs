use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::host::{Host, HostRequest, Wanted};

/// The requests that a server may answer with questions.
const ASKING: [&str; 3] = ["prompts/get", "resources/read", "tools/call"];
/// The wait before a request is sent again when the server asked no question, doubled each time.
const WAIT: Duration = Duration::from_millis(50);
/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A result in the stateless version.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a result is whole, or it asks for something")]
pub enum CallReply {
    /// The server asks before it answers.
    Asks(InputRequest),
    /// The result.
    Complete(Value),
}

/// The questions that a server asks before it answers a request: a result with `resultType` `input_required`.
#[derive(Clone, Debug, PartialEq)]
pub struct InputRequest {
    pub(crate) requests: Map<String, Value>,
    pub(crate) state: Option<String>,
}

impl CallReply {
    /// Reads the result of a request.
    ///
    /// # Errors
    ///
    /// Describes the problem with a result that is neither complete nor an allowed question.
    pub fn read(method: &str, mut result: Value) -> Result<Self, String> {
        match result.get("resultType").and_then(Value::as_str) {
            None | Some("complete") => return Ok(Self::Complete(result)),
            Some("input_required") if ASKING.contains(&method) => {}
            Some("input_required") => {
                return Err(format!("the server asked for input, which {method} does not allow"));
            }
            Some(_) => return Err("the result has an unknown resultType".to_owned()),
        }
        let mut take = |name: &str| result.get_mut(name).map(Value::take).unwrap_or_default();
        let requests = match take("inputRequests") {
            Value::Null => Map::new(),
            Value::Object(requests) => requests,
            _ => return Err("the server's inputRequests is not an object".to_owned()),
        };
        let state = match take("requestState") {
            Value::Null => None,
            Value::String(state) => Some(state),
            _ => return Err("the server's requestState is not a string".to_owned()),
        };
        if requests.is_empty() && state.is_none() {
            // The request would be sent again unchanged. With a state alone, the server wants time.
            return Err("the server asked for input without saying which".to_owned());
        }
        Ok(Self::Asks(InputRequest { requests, state }))
    }

    /// Returns a result that must be complete.
    ///
    /// # Errors
    ///
    /// A message that the server asked for input instead.
    pub fn complete(self) -> Result<Value, String> {
        match self {
            Self::Complete(result) => Ok(result),
            Self::Asks(_) => {
                Err("the server asked for input instead of returning a result".to_owned())
            }
        }
    }
}

/// Bounds on the rounds of one request.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "another bound is another argument of its caller")]
pub struct RoundLimits {
    /// The maximum number of rounds.
    pub rounds: usize,
    /// The maximum number of questions in one round.
    pub questions: usize,
    /// The longest state of the server in bytes.
    pub state_bytes: usize,
}

/// The reason why a request is not sent again.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a bound is reached, or the protocol broken")]
pub enum RoundError {
    /// A bound of [`RoundLimits`] was exceeded.
    Limit(String),
    /// The server asked for something that is not allowed, or its questions are malformed.
    Protocol(String),
}

/// The rounds of one request: each time the server asks questions, the request is sent again with the answers.
///
/// ```
/// use oa_mcp_data::{Host, Offers, QuestionLimits, CallReply, Root, RoundLimits, Rounds};
/// use serde_json::json;
///
/// let mut offers = Offers::default();
/// offers.roots.extend(Root::new("/srv".as_ref()));
/// let limits = QuestionLimits { text_bytes: 4_096, schema_bytes: 65_536, tokens: 4_096 };
/// let host = Host::new("files", "files", limits, offers);
/// let mut rounds = Rounds::new(RoundLimits { rounds: 10, questions: 4, state_bytes: 1_024 });
///
/// let mut params = json!({ "name": "search", "arguments": {} });
/// let asks = json!({
///     "resultType": "input_required",
///     "inputRequests": { "where": { "method": "roots/list" } },
///     "requestState": "opaque",
/// });
/// let Ok(CallReply::Asks(asked)) = CallReply::read("tools/call", asks) else { panic!() };
/// let mut round = rounds.begin(asked, &host).unwrap();
/// assert!(round.next_question().is_none()); // the folders need no callback
/// round.finish(&mut params);
/// assert_eq!(params["inputResponses"]["where"]["roots"][0]["uri"], "file:///srv");
/// assert_eq!(params["requestState"], "opaque");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    limits: RoundLimits,
    count: usize,
    /// The number of consecutive rounds without a question.
    idle: u32,
}

impl Rounds {
    /// Creates the rounds of a request, before the first.
    #[must_use]
    pub const fn new(limits: RoundLimits) -> Self {
        Self { limits, count: 0, idle: 0 }
    }

    /// Begins a round. All of its questions are read before the first one is asked.
    ///
    /// # Errors
    ///
    /// The reason why the request is not sent again.
    pub fn begin(&mut self, asked: InputRequest, host: &Host) -> Result<Round, RoundError> {
        let RoundLimits { rounds, questions, state_bytes } = self.limits;
        let limit = |text: String| Err(RoundError::Limit(text));
        if self.count >= rounds {
            return limit(format!("the server asked for input more than {rounds} times"));
        }
        self.count += 1;
        let count = asked.requests.len();
        if count > questions {
            return limit(format!(
                "the server asked {count} questions at once, more than {questions}"
            ));
        }
        let bytes = asked.state.as_ref().map_or(0, String::len);
        if bytes > state_bytes {
            return limit(format!("the server's state has {bytes} bytes, more than {state_bytes}"));
        }
        self.idle = if count == 0 { self.idle + 1 } else { 0 };
        let mut round = Round {
            waiting: VecDeque::new(),
            current: None,
            answers: Map::new(),
            state: asked.state,
            wait: match self.idle {
                0 => Duration::ZERO,
                // 50, 100, 200, .. ms. The shift is capped, because the limit of rounds may be any number.
                idle => WAIT.saturating_mul(1 << (idle - 1).min(10)).min(LONGEST_WAIT),
            },
        };
        // The first one that is not allowed ends the call, before the user has answered others in vain.
        for (key, request) in asked.requests {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            let wanted = match method {
                "elicitation/create" | "roots/list" | "sampling/createMessage" => {
                    host.read(method, request.get("params").unwrap_or(&Value::Null))
                }
                // Not left to `Host::read`, which answers a ping. A round may not contain one.
                _ => {
                    let what = "the server asked for something that the protocol does not allow";
                    return Err(RoundError::Protocol(what.to_owned()));
                }
            };
            match wanted {
                Wanted::Answer(answer) => drop(round.answers.insert(key, answer)),
                Wanted::Question(asked) => round.waiting.push_back((key, *asked)),
                Wanted::Refused(refusal) => {
                    let why = format!("the server's {method} was refused: {}", refusal.message);
                    return Err(RoundError::Protocol(why));
                }
            }
        }
        Ok(round)
    }
}

/// One round: the questions and their answers.
///
/// Take a question with [`next_question`](Self::next_question), [`answer`](Self::answer) it, and repeat until there is
/// none left; [`finish`](Self::finish) then makes the parameters of the next request.
#[derive(Debug)]
pub struct Round {
    waiting: VecDeque<(String, HostRequest)>,
    /// The question that was taken last.
    current: Option<String>,
    answers: Map<String, Value>,
    state: Option<String>,
    wait: Duration,
}

impl Round {
    /// Returns the next question that a callback has to answer, in the server's order.
    pub fn next_question(&mut self) -> Option<HostRequest> {
        let (key, asked) = self.waiting.pop_front()?;
        self.current = Some(key);
        Some(asked)
    }

    /// Sets the answer to the question that was taken last.
    pub fn answer(&mut self, answer: Value) {
        if let Some(key) = self.current.take() {
            self.answers.insert(key, answer);
        }
    }

    /// Returns true if the user has accepted all questions so far.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.answers.values().all(|answer| answer["action"] == "accept")
    }

    /// Returns the wait before the next request. It is zero unless the server asked no question.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Turns the parameters of a request into those of the next one: adds the answers and the state of this round and
    /// removes those of the previous round.
    pub fn finish(self, params: &mut Value) {
        let Some(params) = params.as_object_mut() else { return };
        // A server that asks again without a state must not get the one of an earlier round.
        params.remove("inputResponses");
        params.remove("requestState");
        if !self.answers.is_empty() {
            params.insert("inputResponses".to_owned(), self.answers.into());
        }
        if let Some(state) = self.state {
            params.insert("requestState".to_owned(), json!(state));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::elicitation::ElicitationAnswer;
    use crate::host::{Offers, QuestionLimits};
    use crate::root::Root;

    const LIMITS: RoundLimits = RoundLimits { rounds: 3, questions: 2, state_bytes: 8 };

    /// A client with roots and a person, and without a model.
    fn host() -> Host {
        let mut offers = Offers::default();
        offers.roots.extend(Root::new(Path::new("/srv")));
        offers.on_elicitation =
            Some(Arc::new(|_, _| Box::pin(async { ElicitationAnswer::Decline })));
        let limits = QuestionLimits { text_bytes: 1_000, schema_bytes: 1_000, tokens: 9 };
        Host::new("s", "s", limits, offers)
    }

    fn form() -> Value {
        let params = json!({ "message": "a", "requestedSchema": { "type": "object" } });
        json!({ "method": "elicitation/create", "params": params })
    }

    fn asks(requests: &Value, state: &Value) -> Value {
        json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state })
    }

    fn begin(rounds: &mut Rounds, requests: &Value, state: &Value) -> Result<Round, String> {
        match CallReply::read("tools/call", asks(requests, state))? {
            CallReply::Asks(asked) => rounds.begin(asked, &host()).map_err(|error| match error {
                RoundError::Limit(why) => format!("limit: {why}"),
                RoundError::Protocol(why) => why,
            }),
            CallReply::Complete(result) => Err(format!("complete: {result}")),
        }
    }

    fn fails(requests: &Value, state: &Value) -> String {
        begin(&mut Rounds::new(LIMITS), requests, state).unwrap_err()
    }

    #[test]
    fn results_are_classified_by_type() {
        for result in [json!({ "content": [] }), json!({ "resultType": "complete" }), json!([1])] {
            let read = CallReply::read("tools/call", result.clone());
            assert_eq!(read, Ok(CallReply::Complete(result)));
        }
        for method in ["prompts/get", "resources/read", "tools/call"] {
            let read = CallReply::read(method, asks(&json!({}), &json!("x")));
            assert!(matches!(read, Ok(CallReply::Asks(_))), "{method}");
        }
        let refused = |result| CallReply::read("tools/list", result).unwrap_err();
        assert_eq!(
            refused(asks(&json!({}), &json!("x"))),
            "the server asked for input, which tools/list does not allow"
        );
        assert_eq!(
            refused(json!({ "resultType": "task" })),
            "the result has an unknown resultType"
        );
    }

    #[test]
    fn malformed_questions_are_rejected() {
        assert_eq!(
            fails(&json!([form()]), &json!("x")),
            "the server's inputRequests is not an object"
        );
        assert_eq!(
            fails(&json!({}), &json!({ "a": 1 })),
            "the server's requestState is not a string"
        );
        let nothing = "the server asked for input without saying which";
        assert_eq!(fails(&json!({}), &Value::Null), nothing);
        assert_eq!(fails(&Value::Null, &Value::Null), nothing);
        let unknown = "the server asked for something that the protocol does not allow";
        for request in [json!({ "method": "ping" }), json!({ "method": 7 }), json!("roots/list")] {
            assert_eq!(fails(&json!({ "a": form(), "b": request }), &Value::Null), unknown);
        }
        let sampling = json!({ "method": "sampling/createMessage", "params": {} });
        assert_eq!(
            fails(&json!({ "a": form(), "b": sampling }), &Value::Null),
            "the server's sampling/createMessage was refused: this client does not support it"
        );
        let shapeless = json!({ "method": "elicitation/create" });
        assert_eq!(
            fails(&json!({ "a": form(), "b": shapeless }), &Value::Null),
            "the server's elicitation/create was refused: it has no message"
        );
    }

    #[test]
    fn exceeded_limits_are_errors() {
        let three = json!({ "a": form(), "b": form(), "c": form() });
        assert_eq!(
            fails(&three, &Value::Null),
            "limit: the server asked 3 questions at once, more than 2"
        );
        assert_eq!(
            fails(&json!({}), &json!("123456789")),
            "limit: the server's state has 9 bytes, more than 8"
        );
        let mut rounds = Rounds::new(LIMITS);
        for _ in 0..3 {
            begin(&mut rounds, &json!({ "a": form() }), &json!("12345678")).unwrap();
        }
        assert_eq!(
            begin(&mut rounds, &json!({ "a": form() }), &Value::Null).unwrap_err(),
            "limit: the server asked for input more than 3 times"
        );
    }

    #[test]
    fn rounds_without_questions_back_off() {
        let mut rounds = Rounds::new(RoundLimits { rounds: 99, ..LIMITS });
        let mut wait = |requests: &Value| {
            begin(&mut rounds, requests, &json!("x")).unwrap().wait().as_millis()
        };
        let waits: Vec<_> = (0..7).map(|_| wait(&json!({}))).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(wait(&json!({ "a": form() })), 0);
        assert_eq!(wait(&json!({})), 50);
        for _ in 0..80 {
            assert!(wait(&json!({})) <= 1_000);
        }
    }

    proptest! {
        /// Each request says the answers of the round before it, by the server's names, and its state byte for byte; and
        /// nothing of an earlier round.
        #[test]
        fn request_has_only_the_last_round(
            names in prop::collection::vec(prop::collection::btree_set(".{0,8}", 0..5), 1..5),
            states in prop::collection::vec(prop::option::of(".{0,20}"), 5),
        ) {
            let limits = RoundLimits { rounds: 10, questions: 10, state_bytes: 1_000 };
            let mut rounds = Rounds::new(limits);
            let mut params = json!({ "name": "t", "arguments": { "requestState": "mine" } });
            for (names, state) in names.iter().zip(&states) {
                let requests: Map<_, _> = names.iter().enumerate().map(|(place, name)| {
                    let asked = if place % 2 == 0 { form() } else { json!({ "method": "roots/list" }) };
                    (name.clone(), asked)
                }).collect();
                let Ok(CallReply::Asks(asked)) = CallReply::read("tools/call", asks(&requests.into(), &json!(state)))
                    else { prop_assert!(names.is_empty() && state.is_none()); continue };
                let mut round = rounds.begin(asked, &host()).unwrap();
                let mut count = 0;
                while round.next_question().is_some() {
                    round.answer(json!({ "number": count }));
                    count += 1;
                }
                round.finish(&mut params);
                prop_assert_eq!(count, names.len().div_ceil(2));
                let said = params.get("inputResponses").and_then(Value::as_object);
                let said: BTreeSet<_> = said.into_iter().flatten().map(|(name, _)| name.clone()).collect();
                prop_assert_eq!(&said, names);
                prop_assert_eq!(params.get("requestState").and_then(Value::as_str), state.as_deref());
                prop_assert_eq!(&params["arguments"], &json!({ "requestState": "mine" }));
            }
        }
    }
}
