//! A request as a whole, from its bytes on.

use serde_json::Value;

use super::check::{Check, member};
use super::{Strict, Violation, Violations, messages, repeated};

impl Strict {
    /// Checks the body of a request.
    ///
    /// # Errors
    ///
    /// Every violation that was found.
    pub fn check(&self, request: &Value) -> Result<(), Violations> {
        self.check_all(request, Vec::new())
    }

    /// Checks the bytes of a request's body: like [`check`](Self::check), and also that they are UTF-8 and JSON without
    /// duplicate members.
    ///
    /// # Errors
    ///
    /// Every violation that was found.
    pub fn check_bytes(&self, body: &[u8]) -> Result<(), Violations> {
        let unreadable = |what: String| Violations(vec![Violation::new("", what)]);
        let text = str::from_utf8(body).map_err(|error| {
            unreadable(format!("is not UTF-8 from byte {}", error.valid_up_to()))
        })?;
        let request = serde_json::from_str(text)
            .map_err(|error| unreadable(format!("is not JSON: {error}")))?;
        let repeated = repeated::members(text).into_iter();
        let found = repeated.map(|path| Violation::new(path, "appears twice")).collect();
        self.check_all(&request, found)
    }

    fn check_all(&self, request: &Value, found: Vec<Violation>) -> Result<(), Violations> {
        let mut check = Check { found, strict: self };
        check.request(request);
        if check.found.is_empty() { Ok(()) } else { Err(Violations(check.found)) }
    }
}

impl Check<'_> {
    fn request(&mut self, request: &Value) {
        let Some(request) = self.object("", request, &TOP) else { return };

        match member(request, "model") {
            Some(model) => {
                self.text("model", model);
            }
            None => self.say("", "has no model"),
        }
        match member(request, "messages") {
            Some(messages) => {
                if let Some(messages) = self.list("messages", messages) {
                    messages::check(self, messages);
                }
            }
            None => self.say("", "has no messages"),
        }
        self.tools(request);
        self.settings(request);
    }
}

const TOP: [&str; 21] = [
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "response_format",
    "seed",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
];
