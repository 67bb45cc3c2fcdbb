use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Shared values for tools, one per type, hidden from the model.
///
/// Clones share the values.
///
/// ```
/// use oa_tools::State;
///
/// struct UserId(u32);
///
/// let state = State::new().with(UserId(7));
/// assert_eq!(state.get::<UserId>().map(|user| user.0), Some(7));
/// assert!(state.get::<String>().is_none());
/// ```
#[derive(Clone, Default)]
pub struct State(Arc<HashMap<TypeId, Entry>>);

#[derive(Clone)]
struct Entry {
    name: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl State {
    /// Creates an empty state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value, replacing one of the same type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.insert(value);
        self
    }

    /// Adds a value, replacing one of the same type. Existing clones do not see it.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        let entry = Entry { name: type_name::<T>(), value: Arc::new(value) };
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), entry);
    }

    /// Returns the value of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.value.downcast_ref()
    }

    /// Returns the value of this type as an `Arc`.
    #[must_use]
    pub fn get_shared<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.0.get(&TypeId::of::<T>())?.value).downcast().ok()
    }
}

/// Shows the type names but not the values, which may be secret.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<&str> = self.0.values().map(|entry| entry.name).collect();
        names.sort_unstable();
        f.debug_tuple("State").field(&names).finish()
    }
}
