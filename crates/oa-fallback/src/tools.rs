use std::sync::Arc;

use oa_types::ToolSpec;
use serde_json::{Map, Value};

/// The tools of a request, shared by all parsers of calls.
#[derive(Clone, Debug)]
pub(crate) struct Tools(Arc<[ToolSpec]>);

impl Tools {
    pub(crate) fn new(tools: Arc<[ToolSpec]>) -> Self {
        Self(tools)
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.0.iter().any(|tool| tool.name == name)
    }

    /// Returns the schema of a tool's arguments; `None` if there is no such tool.
    pub(crate) fn schema(&self, name: &str) -> Option<Parameters<'_>> {
        let tool = self.0.iter().find(|tool| tool.name == name)?;
        Some(Parameters(&tool.parameters))
    }
}

/// The schema of a tool's arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters<'a>(pub(crate) &'a Value);

impl<'a> Parameters<'a> {
    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.properties()?.get(name)
    }

    /// Returns the name and schema of the only parameter; `None` unless there is exactly one.
    pub(crate) fn sole(self) -> Option<(&'a str, &'a Value)> {
        let properties = self.properties()?;
        let (name, schema) = properties.iter().next()?;
        (properties.len() == 1).then_some((name, schema))
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'a str> {
        self.properties().into_iter().flat_map(Map::keys).map(String::as_str)
    }

    pub(crate) fn required(self) -> impl Iterator<Item = &'a str> {
        let list = self.0.get("required").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    fn properties(self) -> Option<&'a Map<String, Value>> {
        self.0.get("properties")?.as_object()
    }
}
