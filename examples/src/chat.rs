use oa_testkit::Request;
use serde_json::Value;

/// The parts of a request that a stand-in reads: the offered tools, the last prompt, and the tool results since
/// then.
#[derive(Clone, Copy, Debug)]
pub struct Chat<'a> {
    request: &'a Request,
    /// The messages from the last prompt on.
    turn: &'a [Value],
}

/// A call with its result.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub name: &'a str,
    /// The arguments, as the model wrote them.
    pub input: Value,
    /// The tool's result or error.
    pub result: Result<Value, String>,
}

impl<'a> Chat<'a> {
    pub fn of(request: &'a Request) -> Self {
        let messages = request.messages();
        let prompt = messages.iter().rposition(|message| message["role"] == "user");
        Self { request, turn: &messages[prompt.unwrap_or_default()..] }
    }

    /// Returns the user's last prompt.
    pub fn prompt(&self) -> &'a str {
        self.turn.first().and_then(|message| message["content"].as_str()).unwrap_or_default()
    }

    /// Returns all prompts of the user, in order.
    pub fn prompts(&self) -> impl DoubleEndedIterator<Item = &'a str> + use<'a> {
        self.said("user")
    }

    /// Returns the system prompt.
    pub fn system(&self) -> &'a str {
        self.said("system").next().unwrap_or_default()
    }

    /// Returns the calls answered since the last prompt, in order.
    pub fn calls(&self) -> impl Iterator<Item = Call<'a>> + use<'a> {
        let turn = self.turn;
        turn.iter().filter(|message| message["role"] == "tool").filter_map(move |answer| {
            let mut calls =
                turn.iter().flat_map(|message| message["tool_calls"].as_array()).flatten();
            let function = &calls.find(|call| call["id"] == answer["tool_call_id"])?["function"];
            let input = function["arguments"].as_str().unwrap_or_default();
            Some(Call {
                name: function["name"].as_str()?,
                input: serde_json::from_str(input).unwrap_or_default(),
                result: read(answer["content"].as_str().unwrap_or_default()),
            })
        })
    }

    /// Returns the last successful result of a tool.
    pub fn result(&self, tool: &str) -> Option<Value> {
        self.calls().filter(|call| call.name == tool).filter_map(|call| call.result.ok()).last()
    }

    /// Returns the offered tools, as in the request.
    pub fn tools(&self) -> &'a [Value] {
        self.request.json()["tools"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns true if a tool with this name is offered.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools().iter().any(|tool| tool["function"]["name"] == name)
    }

    fn said(&self, role: &'static str) -> impl DoubleEndedIterator<Item = &'a str> + use<'a> {
        let messages = self.request.messages().iter();
        messages
            .filter(move |message| message["role"] == role)
            .filter_map(|message| message["content"].as_str())
    }
}

/// Parses a result: JSON, or plain text. A value with an `error` is a failure.
fn read(content: &str) -> Result<Value, String> {
    let value = serde_json::from_str(content).unwrap_or_else(|_| Value::from(content));
    match value["error"].as_str() {
        Some(error) => Err(match value["reason"].as_str() {
            Some(reason) => format!("{error}: {reason}"),
            None => error.to_owned(),
        }),
        None => Ok(value),
    }
}
