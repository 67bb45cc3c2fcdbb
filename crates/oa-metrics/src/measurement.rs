//! The values to record for a request, a turn and a tool call, computed without a clock.

use std::borrow::Cow;
use std::time::Duration;

use oa_types::Usage;
use opentelemetry::KeyValue;

use crate::instrument::Instrument;
use crate::labels::{Agent, Target};

/// One value for one instrument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measurement {
    pub(crate) instrument: Instrument,
    pub(crate) value: Value,
    pub(crate) attributes: Vec<KeyValue>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Seconds(f64),
    Tokens(u64),
}

/// A request that has ended, successfully or not.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) target: Target,
    /// The model that answered, as named by the server.
    pub(crate) answered: Option<String>,
    /// The time from the request to its end; `first_chunk` is the time to the first part of the answer.
    pub(crate) duration: Duration,
    pub(crate) first_chunk: Option<Duration>,
    pub(crate) usage: Option<Usage>,
    /// The class of the error, if the answer is not complete.
    pub(crate) error: Option<Cow<'static, str>>,
}

impl Ended {
    pub(crate) fn measurements(&self) -> Vec<Measurement> {
        let measured =
            |instrument, value, attributes| Measurement { instrument, value, attributes };
        let common = self.attributes();
        let with = |key: &'static str, value: &str| {
            let mut attributes = common.clone();
            attributes.push(KeyValue::new(key, value.to_owned()));
            attributes
        };
        let duration = match &self.error {
            Some(error) => with("error.type", error),
            None => common.clone(),
        };
        let seconds = |time: Duration| Value::Seconds(time.as_secs_f64());
        let mut all =
            vec![measured(Instrument::OperationDuration, seconds(self.duration), duration)];
        if let Some(first) = self.first_chunk {
            all.push(measured(Instrument::TimeToFirstChunk, seconds(first), common.clone()));
        }
        let usage = self.usage.unwrap_or_default();
        for (kind, tokens) in [("input", usage.prompt_tokens), ("output", usage.completion_tokens)]
        {
            if let Some(tokens) = tokens {
                let attributes = with("gen_ai.token.type", kind);
                all.push(measured(Instrument::TokenUsage, Value::Tokens(tokens), attributes));
            }
        }
        if let Some(time) = self.time_per_token() {
            all.push(measured(Instrument::TimePerOutputToken, Value::Seconds(time), common));
        }
        all
    }

    /// Returns the mean time per token after the first one; `None` for an incomplete answer, whose number of tokens is
    /// unknown.
    fn time_per_token(&self) -> Option<f64> {
        // The first token ends the wait for the answer; n tokens have n - 1 intervals after it.
        let tokens = self.usage?.completion_tokens?.checked_sub(1).filter(|rest| *rest > 0)?;
        let rest = self.duration.checked_sub(self.first_chunk?)?;
        self.error.is_none().then(|| rest.as_secs_f64() / tokens as f64)
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", self.target.provider.clone()),
        ];
        if !self.target.model.is_empty() {
            attributes.push(KeyValue::new("gen_ai.request.model", self.target.model.clone()));
        }
        // For a request that failed before its answer, `answered` is at most the requested name.
        let has_answer = self.error.is_none() || self.first_chunk.is_some();
        let answered = self.answered.as_ref().filter(|name| has_answer && !name.is_empty());
        if let Some(answered) = answered {
            attributes.push(KeyValue::new("gen_ai.response.model", answered.clone()));
        }
        if let Some(server) = &self.target.server {
            attributes.push(KeyValue::new("server.address", server.host.clone()));
            attributes.push(KeyValue::new("server.port", i64::from(server.port)));
        }
        attributes
    }
}

/// Returns the measurement of one turn of an agent. `error` is absent if it succeeded.
pub(crate) fn agent_turn(
    agent: Agent,
    duration: Duration,
    error: Option<Cow<'static, str>>,
) -> Measurement {
    let keys = ["gen_ai.agent.name", "gen_ai.request.model", "error.type"];
    let values = [agent.name, agent.model, error.map(Cow::into_owned)];
    let pairs = keys.into_iter().zip(values);
    let attributes = pairs.filter_map(|(key, value)| Some(KeyValue::new(key, value?))).collect();
    let value = Value::Seconds(duration.as_secs_f64());
    Measurement { instrument: Instrument::AgentDuration, value, attributes }
}

/// Returns the measurement of one run of a tool. `error` is absent if it succeeded.
pub(crate) fn tool_run(
    name: String,
    duration: Duration,
    error: Option<&'static str>,
) -> Measurement {
    let mut attributes = vec![
        KeyValue::new("gen_ai.tool.name", name),
        KeyValue::new("gen_ai.tool.type", "function"),
    ];
    if let Some(error) = error {
        attributes.push(KeyValue::new("error.type", error));
    }
    let value = Value::Seconds(duration.as_secs_f64());
    Measurement { instrument: Instrument::ToolDuration, value, attributes }
}

#[cfg(test)]
mod tests {
    use oa_chat::ServerAddress;
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn ended()(
            model in "[a-z]{0,3}",
            answered in proptest::option::of("[a-z]{0,3}"),
            server in proptest::option::of(1..u16::MAX),
            times in (0..1_000_000_u64, proptest::option::of(0..1_000_000_u64)),
            tokens in proptest::option::of((proptest::option::of(0..5_u64), proptest::option::of(0..5_u64))),
            error in proptest::option::of(Just("Timeout")),
        ) -> Ended {
            let usage = tokens.map(|(prompt, completion)| {
                let mut usage = Usage::default();
                (usage.prompt_tokens, usage.completion_tokens) = (prompt, completion);
                usage
            });
            Ended {
                target: Target {
                    provider: "openai".to_owned(),
                    model,
                    server: server.and_then(|port| ServerAddress::of(&format!("http://gpu:{port}"))),
                },
                answered,
                duration: Duration::from_micros(times.0),
                first_chunk: times.1.map(|first| Duration::from_micros(first.min(times.0))),
                usage,
                error: error.map(Cow::Borrowed),
            }
        }
    }

    fn of(all: &[Measurement], instrument: Instrument) -> Vec<&Measurement> {
        all.iter().filter(|measured| measured.instrument == instrument).collect()
    }

    fn attribute<'a>(measured: &'a Measurement, key: &str) -> Option<Cow<'a, str>> {
        let found = measured.attributes.iter().find(|attribute| attribute.key.as_str() == key);
        found.map(|attribute| attribute.value.as_str())
    }

    proptest! {
        /// Each request counts once, and its error stands with its duration alone.
        #[test]
        fn each_request_has_one_duration(ended in ended()) {
            let all = ended.measurements();
            let durations = of(&all, Instrument::OperationDuration);
            prop_assert_eq!(durations.len(), 1);
            prop_assert_eq!(attribute(durations[0], "error.type"), ended.error.clone());
            for measured in &all {
                let is_duration = measured.instrument == Instrument::OperationDuration;
                prop_assert!(is_duration || attribute(measured, "error.type").is_none());
            }
        }

        /// Tokens are those that were reported, and nothing is made up.
        #[test]
        fn tokens_are_as_reported(ended in ended()) {
            let all = ended.measurements();
            let tokens = of(&all, Instrument::TokenUsage);
            let usage = ended.usage.unwrap_or_default();
            for (kind, reported) in [("input", usage.prompt_tokens), ("output", usage.completion_tokens)] {
                let mut told = tokens.iter().filter(|one| attribute(one, "gen_ai.token.type").as_deref() == Some(kind));
                prop_assert_eq!(told.next().map(|one| one.value), reported.map(Value::Tokens));
                prop_assert!(told.next().is_none());
            }
        }

        /// All attributes that the conventions require are there, once each, and no value is empty, negative or without end.
        #[test]
        fn attributes_are_complete(ended in ended()) {
            for measured in ended.measurements() {
                let mut keys: Vec<_> = measured.attributes.iter().map(|one| one.key.as_str().to_owned()).collect();
                prop_assert!(attribute(&measured, "gen_ai.operation.name").is_some_and(|name| name == "chat"));
                prop_assert!(attribute(&measured, "gen_ai.provider.name").is_some());
                prop_assert_eq!(attribute(&measured, "gen_ai.request.model").is_some(), !ended.target.model.is_empty());
                let (address, port) = (attribute(&measured, "server.address"), attribute(&measured, "server.port"));
                prop_assert_eq!(address.is_some(), port.is_some());
                prop_assert!(measured.attributes.iter().all(|one| !one.value.as_str().is_empty()));
                keys.sort();
                keys.dedup();
                prop_assert_eq!(keys.len(), measured.attributes.len());
                if let Value::Seconds(seconds) = measured.value {
                    prop_assert!(seconds.is_finite() && seconds >= 0.0);
                }
            }
        }

        /// The mean of the tokens after the first one, times their number, is the time after the first chunk.
        #[test]
        fn time_per_token_needs_a_complete_answer(ended in ended()) {
            let all = ended.measurements();
            let told = of(&all, Instrument::TimePerOutputToken);
            let tokens = ended.usage.and_then(|usage| usage.completion_tokens).unwrap_or_default();
            let is_told = ended.error.is_none() && ended.first_chunk.is_some() && tokens > 1;
            prop_assert_eq!(told.len(), usize::from(is_told));
            if let [Measurement { value: Value::Seconds(mean), .. }] = told[..] {
                let rest = ended.duration - ended.first_chunk.unwrap_or_default();
                prop_assert!((mean * (tokens - 1) as f64 - rest.as_secs_f64()).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn tool_runs_have_name_and_error() {
        let failed = tool_run("add".to_owned(), Duration::from_millis(250), Some("failed"));
        assert_eq!(failed.value, Value::Seconds(0.25));
        assert_eq!(attribute(&failed, "gen_ai.tool.name").as_deref(), Some("add"));
        assert_eq!(attribute(&failed, "error.type").as_deref(), Some("failed"));
        assert_eq!(
            attribute(&tool_run("add".to_owned(), Duration::ZERO, None), "error.type"),
            None
        );
    }
}
