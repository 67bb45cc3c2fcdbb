use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::message::Message;

/// A conversation at one moment: a shared list, oldest message first, as cheap to clone as an `Arc`.
///
/// It reads as a slice: `history.len()`, `history.last()`, `for message in &history`. A clone never
/// changes; whoever owns the conversation grows it by [`make_mut`](Self::make_mut), which copies the
/// messages only while somebody still holds a clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History(Arc<Vec<Message>>);

impl History {
    /// Returns the messages to be changed, copied first if they are shared.
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
