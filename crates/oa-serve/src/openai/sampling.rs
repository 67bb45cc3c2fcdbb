//! Parameters of a completion besides its messages. Each one applies or is rejected by name.

use oa_types::wire::{ChatParameters, ToolChoice};
use serde_json::{Map, Value};

use crate::error::Refusal;

/// The maximum number of stop sequences.
const MOST_STOPS: usize = 16;
/// The maximum length of a stop sequence and of a response format, in bytes.
const LONGEST: usize = 64 << 10;

/// The parameters that a request sets. They apply to each answer of the model in the turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sampling {
    temperature: Option<f32>,
    top_p: Option<f32>,
    max_tokens: Option<u32>,
    stop: Vec<String>,
    seed: Option<u64>,
    response_format: Option<Value>,
    parallel_tool_calls: Option<bool>,
    uses_no_tools: bool,
    /// Parameters that are forwarded unchanged.
    others: Map<String, Value>,
}

impl Sampling {
    /// Reads the parameters from the members of a request. Null counts as absent; other members are ignored.
    pub(crate) fn read(members: &Map<String, Value>) -> Result<Self, Refusal> {
        let get = |name: &str| members.get(name).filter(|value| !value.is_null());
        let mut sampling = Self {
            temperature: number(get("temperature"), "temperature", 0.0, 2.0)?.map(single),
            top_p: number(get("top_p"), "top_p", 0.0, 1.0)?.map(single),
            max_tokens: most(
                tokens(get("max_tokens"), "max_tokens")?,
                tokens(get("max_completion_tokens"), "max_completion_tokens")?,
            ),
            ..Self::default()
        };
        if sampling.top_p == Some(0.0) {
            return Err(wrong("top_p", "must be above 0 and at most 1"));
        }
        if let Some(stop) = get("stop") {
            sampling.stop = stops(stop)?;
        }
        if let Some(seed) = get("seed") {
            sampling.seed = seed.as_u64();
            if sampling.seed.is_none() && !seed.is_i64() {
                return Err(wrong("seed", "must be an integer"));
            }
            // A negative one, which an agent's own cannot be: some servers take it for a random one.
            let negative = sampling.seed.is_none().then(|| ("seed".to_owned(), seed.clone()));
            sampling.others.extend(negative);
        }
        for name in ["frequency_penalty", "presence_penalty"] {
            if let Some(penalty) = number(get(name), name, -2.0, 2.0)? {
                sampling.others.insert(name.to_owned(), penalty.into());
            }
        }
        if let Some(bias) = get("logit_bias") {
            if !bias.is_object() {
                return Err(wrong("logit_bias", "must be an object"));
            }
            sampling.others.insert("logit_bias".to_owned(), bias.clone());
        }
        if let Some(format) = get("response_format") {
            sampling.response_format = response_format(format)?;
        }
        if let Some(parallel) = get("parallel_tool_calls") {
            let parallel = parallel.as_bool();
            let parallel =
                parallel.ok_or_else(|| wrong("parallel_tool_calls", "must be a boolean"))?;
            sampling.parallel_tool_calls = Some(parallel);
        }
        if let Some(choice) = get("tool_choice") {
            sampling.uses_no_tools = match choice.as_str() {
                Some("auto") => false,
                Some("none") => true,
                _ => {
                    let why = "must be \"auto\" or \"none\": the agent chooses its tools itself";
                    return Err(wrong("tool_choice", why));
                }
            };
        }
        if get("n").is_some_and(|n| n.as_u64() != Some(1)) {
            return Err(wrong("n", "must be 1: an agent gives one answer"));
        }
        if get("logprobs").is_some_and(|logprobs| *logprobs != false) {
            return Err(wrong("logprobs", "is not supported: an agent's answer has several parts"));
        }
        if get("audio").is_some() {
            return Err(wrong("audio", "is not supported"));
        }
        Ok(sampling)
    }

    /// Sets the parameters of requests. The `agent`'s parameters apply where the client sets none; its token limit and
    /// stop sequences always apply.
    pub(crate) fn apply(&self, agent: &ChatParameters, to: &mut ChatParameters) {
        to.temperature = self.temperature.or(agent.temperature);
        to.top_p = self.top_p.or(agent.top_p);
        to.max_tokens = most(self.max_tokens, agent.max_tokens);
        to.stop.clone_from(&agent.stop);
        to.stop.extend(self.stop.iter().filter(|stop| !agent.stop.contains(stop)).cloned());
        to.seed = self.seed.or(agent.seed);
        to.response_format = self.response_format.clone().or_else(|| agent.response_format.clone());
        let has_tools = !to.tools.is_empty();
        to.parallel_tool_calls =
            self.parallel_tool_calls.filter(|_| has_tools).or(agent.parallel_tool_calls);
        to.tool_choice = agent.tool_choice.clone();
        if self.uses_no_tools && has_tools {
            to.tool_choice = Some(ToolChoice::None);
        }
        to.extra_body.clone_from(&agent.extra_body);
        // The agent's extra members replace parameters of the same name, so they would win over those of the
        // client.
        let set = [
            ("temperature", self.temperature.is_some()),
            ("top_p", self.top_p.is_some()),
            ("seed", self.seed.is_some()),
            ("response_format", self.response_format.is_some()),
        ];
        for (name, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
            to.extra_body.remove(name);
        }
        to.extra_body.extend(self.others.clone());
    }

    /// Returns true if the client sets a response format.
    pub(crate) fn has_format(&self) -> bool {
        self.response_format.is_some()
    }
}

/// Returns the smaller of two limits.
fn most(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    [one, other].into_iter().flatten().min()
}

fn wrong(name: &'static str, why: &str) -> Refusal {
    Refusal::bad_request(format!("{name} {why}")).of(name)
}

#[expect(clippy::cast_possible_truncation, reason = "sampling has no use for more digits")]
fn single(number: f64) -> f32 {
    number as f32
}

fn number(
    value: Option<&Value>,
    name: &'static str,
    least: f64,
    most: f64,
) -> Result<Option<f64>, Refusal> {
    let Some(value) = value else { return Ok(None) };
    let number = value.as_f64().filter(|number| (least..=most).contains(number));
    let number =
        number.ok_or_else(|| wrong(name, &format!("must be a number from {least} to {most}")))?;
    Ok(Some(number))
}

fn tokens(value: Option<&Value>, name: &'static str) -> Result<Option<u32>, Refusal> {
    // Local servers take -1 for no limit, and so front ends for them send it.
    let Some(value) = value.filter(|value| value.as_i64() != Some(-1)) else { return Ok(None) };
    let tokens = value.as_u64().filter(|tokens| *tokens > 0);
    let tokens = tokens.ok_or_else(|| wrong(name, "must be an integer above 0"))?;
    // A larger value has no effect as a limit.
    Ok(Some(u32::try_from(tokens).unwrap_or(u32::MAX)))
}

fn stops(value: &Value) -> Result<Vec<String>, Refusal> {
    let why =
        format!("must be a string or an array of up to {MOST_STOPS} strings, none of them empty");
    let texts = match value {
        Value::Array(texts) => &**texts,
        text => std::slice::from_ref(text),
    };
    let text = |text: &Value| {
        let text = text.as_str().filter(|text| !text.is_empty() && text.len() <= LONGEST)?;
        Some(text.to_owned())
    };
    let read: Option<Vec<_>> = texts.iter().map(text).collect();
    read.filter(|texts| texts.len() <= MOST_STOPS).ok_or_else(|| wrong("stop", &why))
}

/// Reads a response format; `None` for plain text.
fn response_format(format: &Value) -> Result<Option<Value>, Refusal> {
    let is_whole = match format["type"].as_str() {
        Some("text") => return Ok(None),
        Some("json_object") => true,
        Some("json_schema") => {
            format["json_schema"]["name"].is_string() && format["json_schema"]["schema"].is_object()
        }
        _ => false,
    };
    if !is_whole || format.to_string().len() > LONGEST {
        let why = "must be of type \"text\", \"json_object\", or \"json_schema\" with a name and a schema of \
                   at most 64 KiB";
        return Err(wrong("response_format", why));
    }
    Ok(Some(format.clone()))
}

#[cfg(test)]
mod tests;
