//! Checks the offered tools.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::check::{Check, at, entries, member};
use crate::requests::quoted;

impl Check<'_> {
    pub(super) fn tools(&mut self, request: &Map<String, Value>) {
        let Some(tools) = member(request, "tools") else {
            for name in ["tool_choice", "parallel_tool_calls"] {
                if member(request, name).is_some() {
                    self.say(name, "requires tools");
                }
            }
            return;
        };
        let mut names = BTreeSet::new();
        for (path, tool) in entries("tools", self.list("tools", tools).unwrap_or_default()) {
            if let Some(name) = self.tool(&path, tool)
                && !names.insert(name)
            {
                self.say(format!("{path}.function.name"), "is also the name of an earlier tool");
            }
        }
        if let Some(choice) = member(request, "tool_choice") {
            self.tool_choice(choice, &names);
        }
    }

    /// Returns the tool's name.
    fn tool<'v>(&mut self, path: &str, tool: &'v Value) -> Option<&'v str> {
        let function = self.function(path, tool, &["type", "function"])?;
        let path = format!("{path}.function");
        let known = ["name", "description", "parameters", "strict"];
        let function = self.object(&path, function, &known)?;
        if let Some(description) = member(function, "description") {
            self.string(&at(&path, "description"), description);
        }
        if let Some(strict) = member(function, "strict") {
            self.flag(&at(&path, "strict"), strict);
        }
        match member(function, "parameters") {
            Some(schema) => self.parameters(&at(&path, "parameters"), schema),
            None => self.say(&path, "has no parameters"),
        }
        self.name(&path, function)
    }

    /// Checks `{"type": "function", "function": ..}` and returns the function.
    pub(super) fn function<'v>(
        &mut self,
        path: &str,
        value: &'v Value,
        known: &[&str],
    ) -> Option<&'v Value> {
        let object = self.object(path, value, known)?;
        self.word(path, object, "type", &["function"]);
        let function = member(object, "function");
        if function.is_none() {
            self.say(path, "has no function");
        }
        function
    }

    /// Schemas have members of their own, whose values may be null, so only the outer structure is checked.
    fn parameters(&mut self, path: &str, schema: &Value) {
        if schema["type"] != "object" {
            self.say(path, "is not the schema of an object");
            return;
        }
        let properties = schema.get("properties");
        if properties.is_some_and(|properties| !properties.is_object()) {
            self.say(at(path, "properties"), "is not an object");
        }
        let Some(required) = schema.get("required") else { return };
        let Some(required) = required.as_array() else {
            return self.say(at(path, "required"), "is not a list");
        };
        for (path, name) in entries(&at(path, "required"), required) {
            let known = name.as_str().and_then(|name| properties?.get(name));
            if known.is_none() {
                self.say(path, "is not the name of a property");
            }
        }
    }

    fn tool_choice(&mut self, choice: &Value, names: &BTreeSet<&str>) {
        let path = "tool_choice";
        if let Some(word) = choice.as_str() {
            if !["auto", "none", "required"].contains(&word) {
                self.say(path, format!("is {}: auto, none or required", quoted(word)));
            }
        } else if !self.strict.named_choice {
            self.say(path, "is not a string");
        } else if let Some(function) = self.function(path, choice, &["type", "function"]) {
            let path = at(path, "function");
            let Some(function) = self.object(&path, function, &["name"]) else { return };
            if let Some(name) = self.name(&path, function)
                && !names.contains(name)
            {
                self.say(at(&path, "name"), "is not the name of a tool");
            }
        }
    }
}
