#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oa_types::ImageBlock;
use serde_json::Value;

/// The default size limit, in bytes of JSON and of image URLs.
const BYTES: usize = 16 << 20;

/// A cache for results of tools marked cacheable, keyed by name and arguments.
///
/// Clones share the cache. It evicts the least recently used result when full. Only successful results are
/// kept, before truncation; equal calls running at the same time all run. Shared state is not part of the key:
/// a tool whose result depends on it is not cacheable. Neither is the tool's code: [`clear`](Self::clear) the cache if
/// you replace a tool by another of the same name.
#[derive(Clone)]
pub struct ToolCache {
    capacity: usize,
    max_bytes: usize,
    entries: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<Key, Entry>,
    /// The uses of the entries, oldest first, with the keys of the map. Only the last use of an entry counts.
    uses: VecDeque<(u64, Key)>,
    clock: u64,
    bytes: usize,
}

struct Entry {
    value: Value,
    images: Vec<ImageBlock>,
    bytes: usize,
    used: u64,
}

#[derive(Clone, Eq, Hash, PartialEq)]
pub(crate) struct Key(Arc<(String, String)>);

impl Key {
    /// Equal JSON gives equal keys, regardless of member order.
    pub(crate) fn new(tool: &str, arguments: &Value) -> Self {
        let mut canonical = String::new();
        write(arguments, &mut canonical);
        Self(Arc::new((tool.to_owned(), canonical)))
    }
}

impl ToolCache {
    /// Creates a cache of up to `capacity` results and 16 MiB.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, max_bytes: BYTES, entries: Arc::default() }
    }

    /// Sets the size limit, in bytes of JSON and of image URLs.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Returns the largest number of results.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of cached results.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Returns true if the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all results.
    pub fn clear(&self) {
        *self.lock() = Entries::default();
    }

    pub(crate) fn get(&self, key: &Key) -> Option<(Value, Vec<ImageBlock>)> {
        let entries = &mut *self.lock();
        let (key, _) = entries.by_key.get_key_value(key)?;
        let key = key.clone();
        let used = entries.add_use(key.clone());
        let entry = entries.by_key.get_mut(&key)?;
        entry.used = used;
        Some((entry.value.clone(), entry.images.clone()))
    }

    pub(crate) fn insert(&self, key: Key, value: &Value, images: &[ImageBlock]) {
        let pictures: usize = images.iter().map(|image| image.url.len()).sum();
        let bytes = key.0.1.len() + value.to_string().len() + pictures;
        if bytes > self.max_bytes {
            return;
        }
        let entries = &mut *self.lock();
        // The known key, which the earlier uses share: another one would be held beyond the size limit.
        let known = entries.by_key.get_key_value(&key).map(|(known, _)| known.clone());
        let key = known.unwrap_or(key);
        // Equal calls may have run at the same time. The older entry leaves first, to be counted once.
        entries.remove(&key);
        while entries.by_key.len() >= self.capacity.max(1) || entries.bytes + bytes > self.max_bytes
        {
            let Some((used, least)) = entries.uses.pop_front() else { break };
            if entries.is_last_use(used, &least) {
                entries.remove(&least);
            }
        }
        entries.bytes += bytes;
        let used = entries.add_use(key.clone());
        let entry = Entry { value: value.clone(), images: images.to_vec(), bytes, used };
        entries.by_key.insert(key, entry);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.by_key.remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    /// Records a use, and returns its number, which rises.
    fn add_use(&mut self, key: Key) -> u64 {
        // The queue stays within a multiple of the entries, at constant cost per use.
        if self.uses.len() > 2 * self.by_key.len() + 16 {
            let mut uses = std::mem::take(&mut self.uses);
            uses.retain(|(used, key)| self.is_last_use(*used, key));
            self.uses = uses;
        }
        self.clock += 1;
        self.uses.push_back((self.clock, key));
        self.clock
    }

    fn is_last_use(&self, used: u64, key: &Key) -> bool {
        self.by_key.get(key).is_some_and(|entry| entry.used == used)
    }
}

/// Shows counts only, because results may be secret.
impl fmt::Debug for ToolCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCache")
            .field("capacity", &self.capacity)
            .field("max_bytes", &self.max_bytes)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// Writes canonical JSON, with sorted members. The `preserve_order` feature, which any crate in the build may
/// enable, would otherwise keep the insertion order.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
            names.sort_unstable();
            out.push('{');
            for name in names {
                write(&Value::from(name), out);
                out.push(':');
                write(&members[name], out);
                out.push(',');
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}
