//! Writes a model's answer as `chat.completion.chunk` events or as one `chat.completion`.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::requests::Request;
use crate::speech::{Part, Speech, Usage};

/// The creation time of every answer, in seconds since 1970. No clock is read.
pub(crate) const CREATED: u64 = 1_700_000_000;

/// An answer to one request, to be written in either format.
pub(crate) struct Completion<'a> {
    id: String,
    model: &'a str,
    number: usize,
    request: &'a Request,
    speech: &'a Speech,
}

impl<'a> Completion<'a> {
    /// Creates the answer to the chat request with this number.
    pub(crate) fn new(speech: &'a Speech, request: &'a Request, number: usize) -> Self {
        let model = request.model().unwrap_or("test-model");
        Self { id: format!("chatcmpl-{number}"), model, number, request, speech }
    }

    /// Writes the answer in the requested format.
    pub(crate) fn body(&self) -> Bytes {
        if self.request.is_stream() { self.stream() } else { self.object() }
    }

    fn stream(&self) -> Bytes {
        let mut events = Events { comment_every: self.speech.comment_every, ..Events::default() };
        self.delta(&mut events, json!({ "role": "assistant", "content": "" }));

        let mut calls = 0;
        for part in &self.speech.parts {
            match part {
                Part::Call { arguments, name, .. } => {
                    let id = self.call_id(part, calls);
                    let mut call = json!({ "index": calls, "id": id, "type": "function" });
                    call["function"] = json!({ "name": name, "arguments": "" });
                    self.delta(&mut events, json!({ "tool_calls": [call] }));
                    // As servers do: the first delta of a call has its id and name, later ones only the index
                    // and a fragment.
                    for fragment in thirds(arguments) {
                        let call = json!({ "index": calls, "function": { "arguments": fragment } });
                        self.delta(&mut events, json!({ "tool_calls": [call] }));
                    }
                    calls += 1;
                }
                Part::Event(payload) => events.push(payload),
                Part::Refuse(text) => self.deltas(&mut events, "refusal", text),
                Part::Say(text) => self.deltas(&mut events, "content", text),
                Part::Think(text) => self.deltas(&mut events, "reasoning_content", text),
            }
        }

        if let Some(reason) = self.finish_reason() {
            self.choice(&mut events, &json!({}), &json!(reason));
        }
        if self.request.json()["stream_options"]["include_usage"] == true
            && let Some(usage) = self.usage()
        {
            events.push(&self.chunk(json!([]), Some(usage)));
        }
        if self.speech.done {
            events.push(&"[DONE]");
        }
        events.written.into()
    }

    fn object(&self) -> Bytes {
        let mut text = Map::new();
        let mut calls = Vec::new();
        for part in &self.speech.parts {
            let (member, more) = match part {
                Part::Call { arguments, name, .. } => {
                    let id = self.call_id(part, calls.len());
                    let function = json!({ "name": name, "arguments": arguments });
                    calls.push(json!({ "id": id, "type": "function", "function": function }));
                    continue;
                }
                // Events belong only to streams.
                Part::Event(_) => continue,
                Part::Refuse(text) => ("refusal", text),
                Part::Say(text) => ("content", text),
                Part::Think(text) => ("reasoning_content", text),
            };
            let before = text.get(member).and_then(Value::as_str).unwrap_or_default();
            text.insert(member.to_owned(), Value::String(format!("{before}{more}")));
        }

        let mut message = text;
        message.insert("role".to_owned(), json!("assistant"));
        message.entry("content").or_insert(Value::Null);
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        let choice =
            json!({ "index": 0, "message": message, "finish_reason": self.finish_reason() });
        let mut answer = self.chunk(json!([choice]), self.usage());
        answer["object"] = json!("chat.completion");
        answer.to_string().into()
    }

    /// Writes `text` as one chunk per word.
    fn deltas(&self, events: &mut Events, member: &str, text: &str) {
        for word in words(text) {
            self.delta(events, json!({ member: word }));
        }
    }

    fn delta(&self, events: &mut Events, delta: Value) {
        self.choice(events, &delta, &Value::Null);
    }

    fn choice(&self, events: &mut Events, delta: &Value, finish_reason: &Value) {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
        events.push(&self.chunk(json!([choice]), None));
    }

    fn chunk(&self, choices: Value, usage: Option<Value>) -> Value {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.model,
            "choices": choices,
        });
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        chunk
    }

    fn call_id(&self, call: &Part, index: usize) -> String {
        match call {
            Part::Call { id: Some(id), .. } => id.clone(),
            _ => format!("call_{}_{}", self.number, index + 1),
        }
    }

    fn finish_reason(&self) -> Option<&str> {
        if !self.speech.finishes {
            return None;
        }
        let calls = self.speech.parts.iter().any(|part| matches!(part, Part::Call { .. }));
        let usual = if calls { "tool_calls" } else { "stop" };
        Some(self.speech.finish.as_deref().unwrap_or(usual))
    }

    /// Counts four characters as a token, unless the script sets the usage.
    fn usage(&self) -> Option<Value> {
        let (prompt, completion) = match self.speech.usage {
            Usage::Absent => return None,
            Usage::Counted => {
                let prompt: usize = self.request.messages().iter().map(characters_of).sum();
                let completion: usize = self.speech.parts.iter().map(Part::characters).sum();
                (prompt.div_ceil(4) as u64, completion.div_ceil(4) as u64)
            }
            Usage::Given { prompt, completion } => (prompt, completion),
        };
        Some(json!({
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt.saturating_add(completion),
        }))
    }
}

/// An event stream being written.
#[derive(Default)]
struct Events {
    comment_every: usize,
    count: usize,
    written: String,
}

impl Events {
    fn push(&mut self, payload: &dyn ToString) {
        if self.comment_every > 0 && self.count > 0 && self.count.is_multiple_of(self.comment_every)
        {
            self.written.push_str(": ping\n\n");
        }
        self.count += 1;
        self.written.push_str("data: ");
        self.written.push_str(&payload.to_string());
        self.written.push_str("\n\n");
    }
}

/// Counts the characters in a message.
fn characters_of(message: &Value) -> usize {
    match &message["content"] {
        Value::Null => 0,
        Value::String(text) => text.chars().count(),
        parts => parts.to_string().chars().count(),
    }
}

/// Splits before each space that follows a word; the parts add up to the text.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut in_word = false;
    for (at, character) in text.char_indices() {
        let space = character.is_whitespace();
        if space && in_word {
            words.push(&text[start..at]);
            start = at;
        }
        in_word = !space;
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

/// Splits into at most three fragments of similar length.
fn thirds(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(3).max(1);
    characters.chunks(size).map(|fragment| fragment.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_spaces() {
        assert_eq!(words("Hello, world"), ["Hello,", " world"]);
        assert_eq!(words("  two\n lines \n"), ["  two", "\n lines", " \n"]);
        assert_eq!(words(""), [""; 0]);
    }

    #[test]
    fn fragments_never_split_a_character() {
        assert_eq!(thirds("äöüßé"), ["äö", "üß", "é"]);
        assert_eq!(thirds("{}"), ["{", "}"]);
        assert_eq!(thirds(""), [""; 0]);
    }
}
