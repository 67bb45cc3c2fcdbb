//! Checks the generation settings.

use serde_json::{Map, Value};

use super::check::{Check, at, entries, member};

impl Check<'_> {
    pub(super) fn settings(&mut self, request: &Map<String, Value>) {
        self.streaming(request);
        self.numbers(request);
        self.stops(request);
        self.biases(request);
        if let Some(user) = member(request, "user") {
            self.text("user", user);
        }
        if let Some(format) = member(request, "response_format") {
            self.response_format(format);
        }
    }

    fn streaming(&mut self, request: &Map<String, Value>) {
        let Some(options) = member(request, "stream_options") else { return };
        if member(request, "stream") != Some(&Value::Bool(true)) {
            self.say("stream_options", "requires stream");
        }
        let Some(options) = self.object("stream_options", options, &["include_usage"]) else {
            return;
        };
        match member(options, "include_usage") {
            Some(flag) => self.flag("stream_options.include_usage", flag),
            None => self.say("stream_options", "is empty"),
        }
    }

    fn numbers(&mut self, request: &Map<String, Value>) {
        for name in FLAGS {
            if let Some(value) = member(request, name) {
                self.flag(name, value);
            }
        }
        for (name, least, most) in INTEGERS {
            if let Some(value) = member(request, name)
                && !value.as_i64().is_some_and(|number| (least..=most).contains(&number))
            {
                self.say(name, format!("is not a whole number from {least} to {most}"));
            }
        }
        for (name, least, most, range) in NUMBERS {
            if let Some(value) = member(request, name)
                && !value.as_f64().is_some_and(|number| (least..=most).contains(&number))
            {
                self.say(name, format!("is not a number {range}"));
            }
        }
        if let (Some(_), Some(_)) =
            (member(request, "max_tokens"), member(request, "max_completion_tokens"))
        {
            self.say("max_tokens", "cannot be combined with max_completion_tokens");
        }
        if member(request, "top_logprobs").is_some()
            && member(request, "logprobs") != Some(&Value::Bool(true))
        {
            self.say("top_logprobs", "requires logprobs");
        }
    }

    fn stops(&mut self, request: &Map<String, Value>) {
        match member(request, "stop") {
            Some(stops @ Value::Array(_)) => {
                let stops = self.list("stop", stops).unwrap_or_default();
                if stops.len() > MAX_STOPS {
                    self.say("stop", format!("has more than {MAX_STOPS} entries"));
                }
                for (path, stop) in entries("stop", stops) {
                    self.text(&path, stop);
                }
            }
            Some(stop) => {
                self.text("stop", stop);
            }
            None => {}
        }
    }

    fn biases(&mut self, request: &Map<String, Value>) {
        let biases = member(request, "logit_bias");
        if biases.is_some_and(|biases| !biases.is_object()) {
            self.say("logit_bias", "is not an object");
        }
        for (token, bias) in biases.and_then(Value::as_object).into_iter().flatten() {
            if !bias.as_f64().is_some_and(|bias| (-100.0..=100.0).contains(&bias)) {
                self.say(at("logit_bias", token), "is not a number from -100 to 100");
            }
        }
    }

    fn response_format(&mut self, format: &Value) {
        let path = "response_format";
        let Some(format) = self.object(path, format, &["type", "json_schema"]) else { return };
        self.word(path, format, "type", &["json_object", "json_schema", "text"]);
        let wants_schema = member(format, "type").is_some_and(|kind| kind == "json_schema");
        match member(format, "json_schema") {
            Some(_) if !wants_schema => self.say(path, "has a schema but another type"),
            Some(schema) => {
                let path = at(path, "json_schema");
                let known = ["description", "name", "schema", "strict"];
                let Some(schema) = self.object(&path, schema, &known) else { return };
                self.name(&path, schema);
                if !member(schema, "schema").is_some_and(Value::is_object) {
                    self.say(&path, "has no schema");
                }
            }
            None if wants_schema => self.say(path, "has no json_schema"),
            None => {}
        }
    }
}

const FLAGS: [&str; 3] = ["logprobs", "parallel_tool_calls", "stream"];
const INTEGERS: [(&str, i64, i64); 5] = [
    ("max_completion_tokens", 1, i64::MAX),
    ("max_tokens", 1, i64::MAX),
    ("n", 1, 128),
    ("seed", 0, i64::MAX),
    ("top_logprobs", 0, 20),
];
const MAX_STOPS: usize = 4;
const NUMBERS: [(&str, f64, f64, &str); 4] = [
    ("frequency_penalty", -2.0, 2.0, "from -2 to 2"),
    ("presence_penalty", -2.0, 2.0, "from -2 to 2"),
    ("temperature", 0.0, 2.0, "from 0 to 2"),
    ("top_p", f64::MIN_POSITIVE, 1.0, "above 0 and up to 1"),
];
