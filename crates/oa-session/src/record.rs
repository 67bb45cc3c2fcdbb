//! What one line of a file says, in every version that was ever written.

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

/// The version that is written. Older ones are upgraded when they are read, newer ones are refused.
///
/// Version 0 is what programs wrote before there were records: one bare message to a line.
pub(crate) const VERSION: u64 = 1;

/// One change of a session.
#[derive(Debug)]
pub(crate) enum Record<'a> {
    /// All but the first `keep` messages go, and these come; what was pending is settled.
    Append { at: Timestamp, keep: Option<usize>, messages: Vec<&'a RawValue> },
    /// A session begins.
    Create { id: SessionId, at: Timestamp, metadata: Map<String, Value> },
    /// A message of version 0.
    Message(&'a str),
    /// The metadata is this from now on.
    Metadata { at: Timestamp, metadata: Map<String, Value> },
    /// This call waits for permission from now on, or none does.
    Pending { at: Timestamp, pending: Option<Box<Pending>> },
    /// What the records before do not tell, in a file that was written anew.
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
    /// Reads a line of any version.
    pub(crate) fn read(line: &'a str) -> Result<Self, Error> {
        let Head { v, op, role } = parse(line)?;
        match (v, op.as_deref()) {
            (Some(found), _) if found > VERSION => Err(Error::new(
                ErrorKind::NewerVersion,
                format!("it is of version {found}, and {VERSION} is the newest that is known here"),
            )),
            (Some(VERSION), Some(op)) => Self::read_current(op, line),
            (None, None) if role.is_some() => Ok(Self::Message(line)),
            _ => Err(Error::corrupt("it is no record of a session")),
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
                return Err(Error::corrupt(format!("it is an unknown {op:?}")));
            }
        })
    }
}

fn parse<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, Error> {
    serde_json::from_str(line)
        .map_err(|error| Error::corrupt("it cannot be read").with_source(error))
}

/// Reads the role of a message from its JSON.
pub(crate) fn role_of(message: &str) -> Result<MessageRole, Error> {
    #[derive(Deserialize)]
    struct Members {
        role: MessageRole,
    }

    parse(message).map(|Members { role }| role)
}

/// A record as it is written, but for what closes the line (its checksum).
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

    /// `pending` is its JSON.
    pub(crate) fn pending(at: Timestamp, pending: Option<&str>) -> Self {
        let mut draft = Self::new("pending", at);
        draft.member("pending", pending.unwrap_or("null"));
        draft
    }

    /// `pending` is its JSON.
    pub(crate) fn state(at: Timestamp, revision: Revision, pending: Option<&str>) -> Self {
        let mut draft = Self::new("state", at);
        draft.member("revision", format_args!("\"{revision}\""));
        draft.member("pending", pending.unwrap_or("null"));
        draft
    }

    /// Returns the record's JSON, with neither the brace nor the checksum at its end.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

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
