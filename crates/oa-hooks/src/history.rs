use std::ops::Deref;
use std::sync::Arc;

use oa_types::Message;

/// The conversation at one moment: a shared list, as cheap to clone as an `Arc`.
///
/// It reads as a slice: `history.len()`, `history.last()`, `for message in history.iter()`. Nothing of
/// the conversation is copied; a hook may keep it for as long as it likes, and it never changes.
///
/// Whoever owns the conversation keeps it in an `Arc<Vec<Arc<Message>>>` and grows it by
/// [`Arc::make_mut`]: a snapshot costs one reference count, and growing costs nothing more unless
/// somebody still holds a snapshot; then the list of pointers is copied, and never a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History(Arc<Vec<Arc<Message>>>);

impl Deref for History {
    type Target = [Arc<Message>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<Arc<Vec<Arc<Message>>>> for History {
    fn from(messages: Arc<Vec<Arc<Message>>>) -> Self {
        Self(messages)
    }
}

impl From<Vec<Message>> for History {
    fn from(messages: Vec<Message>) -> Self {
        messages.into_iter().collect()
    }
}

impl FromIterator<Arc<Message>> for History {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        Self(Arc::new(messages.into_iter().collect()))
    }
}

impl FromIterator<Message> for History {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        messages.into_iter().map(Arc::new).collect()
    }
}

impl<'a> IntoIterator for &'a History {
    type Item = &'a Arc<Message>;
    type IntoIter = std::slice::Iter<'a, Arc<Message>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
