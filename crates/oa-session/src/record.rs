//! The records of a session file, in every format version.

use std::fmt::Write;

use oa_types::MessageRole;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind};
use crate::id::SessionId;
use crate::pending::Pending;
use crate::revision::Revision;
use crate::timestamp::Timestamp;

/// The version that is written. Older versions are upgraded when read, newer ones rejected.
///
/// Version 0 is the format used before there were records: one bare message per line.
pub(crate) const VERSION: u64 = 1;

/// A change of a session.
#[derive(Debug)]
pub(crate) enum Record<'a> {
    /// Keeps the first `keep` messages, adds these, and clears the pending call.
    Append { at: Timestamp, keep: Option<usize>, messages: Vec<&'a RawValue> },
    /// Starts the session.
    Create { id: SessionId, at: Timestamp, metadata: Map<String, Value> },
    /// A message of version 0.
    Message(&'a str),
    /// Replaces the metadata.
    Metadata { at: Timestamp, metadata: Map<String, Value> },
    /// Sets or clears the call waiting for permission.
    Pending { at: Timestamp, pending: Option<Box<Pending>> },
    /// Restores the state that a compacted file's other records lack.
    State { at: Timestamp, revision: Revision, pending: Option<Box<Pending>> },
}

#[derive(Deserialize)]
struct Head {
    v: Option<u64>,
    op: Option<String>,
    role: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct AppendMembers<'a> {
    at: Timestamp,
    keep: Option<usize>,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct CreateMembers {
    id: SessionId,
    at: Timestamp,
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
struct MetadataMembers {
    at: Timestamp,
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
struct PendingMembers {
    at: Timestamp,
    pending: Option<Box<Pending>>,
}

#[derive(Deserialize)]
struct StateMembers {
    at: Timestamp,
    revision: Revision,
    pending: Option<Box<Pending>>,
}

impl<'a> Record<'a> {
    /// Parses a line of any version.
    pub(crate) fn read(line: &'a str) -> Result<Self, Error> {
        // The version comes first, because a newer one may have other members and operations: it must be
        // reported as newer, not as damaged. Only a bare message (version 0) has a role at the top level.
        let Head { v, op, role } = parse(line)?;
        match (v, op.as_deref()) {
            (Some(found), _) if found > VERSION => Err(Error::new(
                ErrorKind::NewerVersion,
                format!(
                    "the line has format version {found}; this program supports up to {VERSION}"
                ),
            )),
            (Some(VERSION), Some(op)) => Self::read_current(op, line),
            (None, None) if role.is_some() => Ok(Self::Message(line)),
            _ => Err(Error::corrupt("the line is not a session record")),
        }
    }

    fn read_current(op: &str, line: &'a str) -> Result<Self, Error> {
        Ok(match op {
            "append" => {
                let AppendMembers { at, keep, messages } = parse(line)?;
                Self::Append { at, keep, messages }
            }
            "create" => {
                let CreateMembers { id, at, metadata } = parse(line)?;
                Self::Create { id, at, metadata }
            }
            "metadata" => {
                let MetadataMembers { at, metadata } = parse(line)?;
                Self::Metadata { at, metadata }
            }
            "pending" => {
                let PendingMembers { at, pending } = parse(line)?;
                Self::Pending { at, pending }
            }
            "state" => {
                let StateMembers { at, revision, pending } = parse(line)?;
                Self::State { at, revision, pending }
            }
            _ => {
                let op: String = op.chars().take(32).collect();
                return Err(Error::corrupt(format!("unknown operation {op:?}")));
            }
        })
    }
}

fn parse<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, Error> {
    serde_json::from_str(line)
        .map_err(|error| Error::corrupt("the line is damaged").with_source(error))
}

/// Parses the role of a message's JSON.
pub(crate) fn role_of(message: &str) -> Result<MessageRole, Error> {
    #[derive(Deserialize)]
    struct Members {
        role: MessageRole,
    }

    parse(message).map(|Members { role }| role)
}

/// A record as written, without the end of the line (its checksum).
#[derive(Debug)]
pub(crate) struct Draft(String);

impl Draft {
    pub(crate) fn append<'m>(
        at: Timestamp,
        keep: Option<usize>,
        messages: impl IntoIterator<Item = &'m str>,
    ) -> Self {
        let mut draft = Self::new("append", at);
        if let Some(keep) = keep {
            draft.member("keep", keep);
        }
        draft.member("messages", "[");
        for (place, message) in messages.into_iter().enumerate() {
            if place > 0 {
                draft.0.push(',');
            }
            draft.0.push_str(message);
        }
        draft.0.push(']');
        draft
    }

    pub(crate) fn create(id: &SessionId, at: Timestamp, metadata: &Map<String, Value>) -> Self {
        let mut draft = Self::new("create", at);
        draft.member("id", Value::String(id.as_str().to_owned()));
        draft.metadata(metadata)
    }

    pub(crate) fn set_metadata(at: Timestamp, metadata: &Map<String, Value>) -> Self {
        Self::new("metadata", at).metadata(metadata)
    }

    /// `pending` is JSON.
    pub(crate) fn pending(at: Timestamp, pending: Option<&str>) -> Self {
        let mut draft = Self::new("pending", at);
        draft.member("pending", pending.unwrap_or("null"));
        draft
    }

    /// `pending` is JSON.
    pub(crate) fn state(at: Timestamp, revision: Revision, pending: Option<&str>) -> Self {
        let mut draft = Self::new("state", at);
        // As text: a number of 64 bits loses digits in readers that parse numbers as floats.
        draft.member("revision", format_args!("\"{revision}\""));
        draft.member("pending", pending.unwrap_or("null"));
        draft
    }

    /// Returns the record's JSON without the checksum and closing brace.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Starts a record. The version and the operation are the first members of every line.
    fn new(op: &str, at: Timestamp) -> Self {
        let at = at.as_millis();
        Self(format!("{{\"v\":{VERSION},\"op\":\"{op}\",\"at\":{at}"))
    }

    fn metadata(mut self, metadata: &Map<String, Value>) -> Self {
        self.0.push_str(",\"metadata\":{");
        for (place, (name, value)) in metadata.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            let _ = write!(self.0, "{comma}{}:{value}", Value::String(name.clone()));
        }
        self.0.push('}');
        self
    }

    fn member(&mut self, name: &str, json: impl std::fmt::Display) {
        let _ = write!(self.0, ",\"{name}\":{json}");
    }
}
