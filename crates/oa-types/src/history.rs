use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::message::Message;

/// A snapshot of a conversation: a shared list of messages, oldest first, as cheap to clone as an `Arc`.
///
/// Derefs to a slice: `history.len()`, `history.last()`, `for message in &history`. A clone never changes.
/// [`make_mut`](Self::make_mut) copies the messages only if clones exist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History(Arc<Vec<Message>>);

impl History {
    /// Returns the messages for mutation, copying them first if they are shared.
    pub fn make_mut(&mut self) -> &mut Vec<Message> {
        Arc::make_mut(&mut self.0)
    }
}

impl Deref for History {
    type Target = [Message];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<Vec<Message>> for History {
    fn from(messages: Vec<Message>) -> Self {
        Self(Arc::new(messages))
    }
}

impl FromIterator<Message> for History {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        Self(Arc::new(messages.into_iter().collect()))
    }
}

impl<'a> IntoIterator for &'a History {
    type Item = &'a Message;
    type IntoIter = std::slice::Iter<'a, Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for History {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for History {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}
