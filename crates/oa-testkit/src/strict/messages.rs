//! Checks the conversation: roles, their order, and the results of calls.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::check::{Check, LONGEST, at, entries, member};
use super::repeated;
use crate::requests::quoted;

pub(super) fn check(check: &mut Check<'_>, messages: &[Value]) {
    let mut state = State::default();
    for (path, message) in entries("messages", messages) {
        check.message(&mut state, &path, message);
    }
    check.calls_are_answered(&mut state);
    if let Some(role @ ("assistant" | "system")) = state.before {
        let path = format!("messages[{}].role", messages.len() - 1);
        check.say(path, format!("is {role}: there is nothing to answer"));
    }
}

/// The state of the conversation that matters to the next message.
#[derive(Default)]
struct State<'v> {
    answered: BTreeSet<&'v str>,
    /// The role of the previous message.
    before: Option<&'v str>,
    /// The ids of all calls so far.
    ids: BTreeSet<&'v str>,
    /// Unanswered calls, in order.
    open: Vec<Call<'v>>,
}

struct Call<'v> {
    id: &'v str,
    name: Option<&'v str>,
    path: String,
}

impl Check<'_> {
    fn message<'v>(&mut self, state: &mut State<'v>, path: &str, message: &'v Value) {
        let role = message["role"].as_str();
        let known: &[&str] = match role {
            Some("assistant") => &["role", "content", "tool_calls"],
            Some("tool") => &["role", "content", "tool_call_id", "name"],
            _ => &["role", "content"],
        };
        let Some(object) = self.object(path, message, known) else { return };
        self.word(path, object, "role", &["assistant", "system", "tool", "user"]);
        // Any other message ends the results, so calls that are still open have none.
        if role != Some("tool") {
            self.calls_are_answered(state);
        }
        self.order(state.before, path, role);

        match role {
            Some("assistant") => self.assistant(state, path, object),
            Some("tool") => self.answer(state, path, object),
            _ => match object.get("content") {
                Some(content) => self.content(&at(path, "content"), content, role),
                None => self.say(path, "has no content"),
            },
        }
        state.before = role;
    }

    fn order(&mut self, before: Option<&str>, path: &str, role: Option<&str>) {
        let is_first = path == "messages[0]";
        let what = match (before, role) {
            (_, Some("system")) if !is_first => "is system, which is allowed only first",
            (Some("tool"), Some("user")) if self.strict.word_between => {
                "is user right after tool: an assistant message must come between them"
            }
            _ if self.strict.repeated_roles => return,
            (Some("user"), Some("user")) | (Some("assistant"), Some("assistant")) => {
                "is that of the previous message: merge the two"
            }
            (None | Some("system"), Some("assistant")) if !self.strict.assistant_first => {
                "is assistant before any user message"
            }
            _ => return,
        };
        self.say(at(path, "role"), what);
    }

    /// Checks content that must not be blank.
    fn content(&mut self, path: &str, content: &Value, role: Option<&str>) {
        match content {
            Value::Array(parts) if parts.is_empty() => self.say(path, "is empty"),
            Value::Array(parts) => {
                let only_text = parts.iter().all(|part| part["type"] == "text");
                if only_text && !self.strict.text_parts {
                    self.say(path, "is a list of only text: use a string");
                }
                for (path, part) in entries(path, parts) {
                    self.part(&path, part, role);
                }
            }
            Value::Null => self.say(path, "is null"),
            Value::String(text) => self.check_text(path, text),
            _ => self.say(path, "is neither a string nor a list of parts"),
        }
    }

    /// Checks that text is not blank.
    fn check_text(&mut self, path: &str, text: &str) {
        if text.is_empty() {
            self.say(path, "is empty");
        } else if text.chars().all(char::is_whitespace) {
            self.say(path, "is blank");
        }
    }

    fn part(&mut self, path: &str, part: &Value, role: Option<&str>) {
        // Only users may send media, and at some servers tools may send images.
        let kinds: &[&str] = match role {
            Some("user") => &["image_url", "input_audio", "text"],
            Some("tool") if self.strict.result_images => &["image_url", "text"],
            _ => &["text"],
        };
        let kind = part["type"].as_str().filter(|kind| kinds.contains(kind));
        let known: &[&str] = match kind {
            Some(kind) => &["type", kind],
            None => &["type", "image_url", "input_audio", "text"],
        };
        let Some(object) = self.object(path, part, known) else { return };
        self.word(path, object, "type", kinds);
        let Some(kind) = kind else { return };
        let Some(value) = member(object, kind) else {
            return self.say(path, format!("has no {kind}"));
        };
        let path = at(path, kind);
        if kind == "text" {
            if let Some(text) = self.string(&path, value) {
                self.check_text(&path, text);
            }
        } else if kind == "input_audio" {
            if let Some(audio) = self.object(&path, value, &["data", "format"]) {
                for name in ["data", "format"] {
                    match member(audio, name) {
                        Some(value) => drop(self.string(&at(&path, name), value)),
                        None => self.say(&path, format!("has no {name}")),
                    }
                }
            }
        } else if let Some(image) = self.object(&path, value, &["url", "detail"]) {
            self.image(&path, image);
        }
    }

    fn image(&mut self, path: &str, image: &Map<String, Value>) {
        if member(image, "detail").is_some() {
            self.word(path, image, "detail", &["auto", "high", "low"]);
        }
        let Some(url) = member(image, "url") else { return self.say(path, "has no url") };
        let path = at(path, "url");
        let Some(url) = self.string(&path, url) else { return };
        let schemes = ["data:image/", "http://", "https://"];
        if !schemes.iter().any(|scheme| url.starts_with(scheme)) {
            self.say(path, format!("is {}: {}", quoted(url), schemes.join(", ")));
        }
    }

    fn assistant<'v>(
        &mut self,
        state: &mut State<'v>,
        path: &str,
        message: &'v Map<String, Value>,
    ) {
        let calls = member(message, "tool_calls");
        let says_nothing = match message.get("content") {
            None | Some(Value::Null) => true,
            Some(content) => content == "",
        };
        match message.get("content") {
            _ if says_nothing && calls.is_some() => {}
            Some(content) => self.content(&at(path, "content"), content, Some("assistant")),
            None => self.say(path, "has neither content nor calls"),
        }

        let Some(calls) = calls else { return };
        let path = at(path, "tool_calls");
        let mut here = BTreeSet::new();
        for (path, call) in entries(&path, self.list(&path, calls).unwrap_or_default()) {
            let Some(call) = self.call(&path, call) else { continue };
            let is_new = here.insert(call.id);
            // Even where ids may repeat in a conversation, two calls of one message need different ones.
            if !(state.ids.insert(call.id) || is_new && self.strict.repeated_ids) {
                self.say(at(&path, "id"), format!("is {}, which is already used", quoted(call.id)));
            }
            state.open.push(call);
        }
    }

    /// Returns a call with an id, so that it can be answered.
    fn call<'v>(&mut self, path: &str, call: &'v Value) -> Option<Call<'v>> {
        let function = self.function(path, call, &["id", "type", "function"]);
        let name = function.and_then(|function| self.called(&at(path, "function"), function));
        let call = call.as_object()?;
        let Some(id) = member(call, "id") else {
            self.say(path, "has no id");
            return None;
        };
        let id = self.id(&at(path, "id"), id)?;
        Some(Call { id, name, path: path.to_owned() })
    }

    /// Returns the name of the called function.
    fn called<'v>(&mut self, path: &str, function: &'v Value) -> Option<&'v str> {
        let function = self.object(path, function, &["name", "arguments"])?;
        match member(function, "arguments") {
            Some(arguments) => self.arguments(&at(path, "arguments"), arguments),
            None => self.say(path, "has no arguments"),
        }
        self.name(path, function)
    }

    fn arguments(&mut self, path: &str, arguments: &Value) {
        let Some(text) = self.string(path, arguments) else { return };
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(_)) => {
                for name in repeated::members(text) {
                    self.say(path, format!("has {} twice", quoted(&name)));
                }
            }
            Ok(_) => self.say(path, format!("is {}, which is not an object", quoted(text))),
            Err(error) => {
                self.say(path, format!("is {}, which is not JSON: {error}", quoted(text)));
            }
        }
    }

    fn id<'v>(&mut self, path: &str, id: &'v Value) -> Option<&'v str> {
        let id = self.string(path, id)?;
        let count = id.chars().count();
        if self.strict.nine_letters {
            if count != 9 || !id.chars().all(|c| c.is_ascii_alphanumeric()) {
                self.say(path, format!("is {}: nine letters or digits", quoted(id)));
            }
        } else if count == 0 || count > LONGEST && !self.strict.long_ids {
            self.say(path, format!("has {count} characters: 1 to {LONGEST}"));
        }
        Some(id)
    }

    /// Checks the result of a call.
    fn answer<'v>(&mut self, state: &mut State<'v>, path: &str, message: &'v Map<String, Value>) {
        match message.get("content") {
            Some(content @ Value::Array(_)) if self.strict.result_images => {
                self.content(&at(path, "content"), content, Some("tool"));
            }
            Some(content) => {
                self.string(&at(path, "content"), content);
            }
            None => self.say(path, "has no content"),
        }
        let named = member(message, "name").is_some() || !self.strict.nameless_results;
        let name = if named { self.name(path, message) } else { None };

        let Some(id) = member(message, "tool_call_id") else {
            return self.say(path, "has no tool_call_id");
        };
        let id_path = at(path, "tool_call_id");
        let Some(id) = self.id(&id_path, id) else { return };
        let Some(index) = state.open.iter().position(|call| call.id == id) else {
            let twice = state.answered.contains(id);
            let what = if twice { "was already answered" } else { "no earlier call has" };
            return self.say(id_path, format!("is {}, which {what}", quoted(id)));
        };
        if index > 0 {
            let first = quoted(state.open[0].id);
            self.say(id_path, format!("is {}, but {first} must come first", quoted(id)));
        }
        let call = state.open.remove(index);
        state.answered.insert(id);
        if let (Some(name), Some(called)) = (name, call.name)
            && name != called
        {
            let what = format!("is {}, but {} was called", quoted(name), quoted(called));
            self.say(at(path, "name"), what);
        }
    }

    fn calls_are_answered(&mut self, state: &mut State<'_>) {
        for call in state.open.drain(..) {
            self.say(call.path, "is not answered");
        }
    }
}
