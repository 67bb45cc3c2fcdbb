use std::sync::Arc;

use oa_types::ToolSpec;
use serde_json::Value;

use crate::schema::Schema;

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
    pub(crate) fn whole(self) -> Schema<'a> {
        Schema::whole(self.0)
    }

    /// Returns the schema of an argument; `None` if the argument may be anything.
    pub(crate) fn get(self, name: &str) -> Option<Schema<'a>> {
        self.whole().members().get(name)
    }

    /// Returns true if there is a parameter of this name.
    pub(crate) fn has(self, name: &str) -> bool {
        self.whole().members().has(name)
    }

    /// Returns true if no parameter is described.
    pub(crate) fn are_unknown(self) -> bool {
        self.whole().members().names().next().is_none()
    }

    /// Returns the name and schema of the only parameter; `None` unless there is exactly one.
    pub(crate) fn sole(self) -> Option<(&'a str, Option<Schema<'a>>)> {
        let members = self.whole().members();
        let mut names = members.names();
        let name = names.next()?;
        names.all(|other| other == name).then(|| (name, members.get(name)))
    }

    pub(crate) fn required(self) -> impl Iterator<Item = &'a str> {
        let required: Vec<&str> = self.whole().members().required().collect();
        required.into_iter()
    }
}
