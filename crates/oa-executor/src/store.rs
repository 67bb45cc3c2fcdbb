use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oa_types::ToolResultBlock;
use serde_json::Value;

/// The name of the tool of [`read_result`](crate::read_result()).
pub const READ_RESULT: &str = "read_result";

/// Returns the instruction that tells the model how to read a result.
pub(crate) fn reading_hint(id: &str) -> String {
    format!("call {READ_RESULT} with the id {id:?}")
}

/// The full results of one conversation, which the model can read after a result was truncated.
///
/// Put it into the state of a [`Batch`](crate::Batch) and offer the tool returned by
/// [`read_result`](crate::read_result()). The executor then stores each result that it truncates, and the note in the
/// truncated result says how to read the rest.
///
/// Clones share the results. By default it holds up to 256 results and 8 MiB in total. When it is full, the oldest
/// results are removed; a result larger than the limit is not stored.
///
/// ```
/// use oa_executor::ResultStore;
/// use serde_json::json;
///
/// let store = ResultStore::new();
/// assert_eq!(store.keep("call_1", &json!("one\ntwo")).as_deref(), Some("call_1"));
/// assert_eq!(store.get("call_1").as_deref(), Some("one\ntwo"));
/// ```
#[derive(Clone)]
pub struct ResultStore(Arc<Mutex<Inner>>);

struct Inner {
    /// Oldest first.
    entries: VecDeque<Entry>,
    bytes: usize,
    max_bytes: usize,
    max_results: usize,
}

struct Entry {
    id: String,
    /// The length of the call's id, which `id` begins with. The id alone does not tell: `a_2` may be the second
    /// result of call `a`, or the first of a call `a_2`.
    call_length: usize,
    text: Arc<str>,
}

impl ResultStore {
    /// The default limit on all results together, in bytes.
    pub const MAX_BYTES: usize = 8 * 1024 * 1024;
    /// The default limit on the number of results.
    pub const MAX_RESULTS: usize = 256;

    /// Creates an empty store with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limits(Self::MAX_BYTES, Self::MAX_RESULTS)
    }

    /// Creates an empty store with limits on the total bytes of text and on the number of results.
    #[must_use]
    pub fn with_limits(max_bytes: usize, max_results: usize) -> Self {
        let entries = VecDeque::new();
        Self(Arc::new(Mutex::new(Inner { entries, bytes: 0, max_bytes, max_results })))
    }

    /// Stores a result and returns the id to read it by; `None` if it is too large. A value other than a string is
    /// stored as indented JSON.
    ///
    /// The id is that of the call, with a number appended if another result has it. If the same result, or a result
    /// that starts with it, is stored for this call, nothing is added.
    #[must_use = "the id may differ from that of the call"]
    pub fn keep(&self, call_id: &str, result: &Value) -> Option<String> {
        let text = match result {
            Value::String(text) => text.clone(),
            value => serde_json::to_string_pretty(value).ok()?,
        };
        let mut inner = self.lock();
        let mut id = call_id.to_owned();
        let mut number = 1;
        while let Some(entry) = inner.entries.iter().find(|entry| entry.id == id) {
            // A result that is cleared from history may be truncated, and stored in full already.
            if entry.call_id() == call_id && begins_alike(&entry.text, &text) {
                return Some(id);
            }
            number += 1;
            id = format!("{call_id}_{number}");
        }
        let size = text.len() + id.len();
        if size > inner.max_bytes || inner.max_results == 0 {
            return None;
        }
        // Ends at the latest when the store is empty: the new entry alone is within both limits.
        while inner.bytes + size > inner.max_bytes || inner.entries.len() >= inner.max_results {
            inner.remove(0);
        }
        inner.bytes += size;
        inner.entries.push_back(Entry {
            id: id.clone(),
            call_length: call_id.len(),
            text: text.into(),
        });
        Some(id)
    }

    /// Stores the result of a call that is about to be cleared from history, and returns a sentence that tells the
    /// model how to read it; `None` if the result is too large or is a page of another result.
    #[must_use = "it says how the model reads the result"]
    pub fn keep_cleared(&self, result: &ToolResultBlock) -> Option<String> {
        if result.name.as_deref() == Some(READ_RESULT) {
            return None;
        }
        let id = self.keep(&result.tool_use_id, &result.content)?;
        Some(format!("To read it, {}.", reading_hint(&id)))
    }

    /// Removes the results of a call, for example after a hook replaced its result.
    pub fn forget(&self, call_id: &str) {
        let mut inner = self.lock();
        let is_of = |entry: &Entry| entry.call_id() == call_id;
        while let Some(place) = inner.entries.iter().rposition(is_of) {
            inner.remove(place);
        }
    }

    /// Returns the text of a result.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Arc<str>> {
        let inner = self.lock();
        let entry = inner.entries.iter().find(|entry| entry.id == id);
        entry.map(|entry| Arc::clone(&entry.text))
    }

    /// Returns the ids of the stored results, oldest first.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        self.lock().entries.iter().map(|entry| entry.id.clone()).collect()
    }

    /// Returns true if nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn call_id(&self) -> &str {
        &self.id[..self.call_length]
    }
}

impl Inner {
    fn remove(&mut self, place: usize) {
        if let Some(Entry { id, text, .. }) = self.entries.remove(place) {
            self.bytes -= id.len() + text.len();
        }
    }
}

impl Default for ResultStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ResultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("ResultStore")
            .field("results", &inner.entries.len())
            .field("bytes", &inner.bytes)
            .finish_non_exhaustive()
    }
}

/// Returns true if both texts are equal, or `text` is a truncated form of `full`: JSON on one line, with a note at the
/// end.
fn begins_alike(full: &str, text: &str) -> bool {
    let words = |text: &str| -> String {
        text.chars().filter(|char| !char.is_whitespace()).take(COMPARED).collect()
    };
    full == text || text.contains(READ_RESULT) && words(full) == words(text)
}

/// The number of characters that identify a truncated result.
const COMPARED: usize = 64;
