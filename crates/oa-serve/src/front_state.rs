//! The state that a front end shares with the agent's tools.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

/// The state that an AG-UI front end shares with the agent's tools, which read it by `context.state::<FrontState>()`.
///
/// A tool changes it by emitting `state` with an object, whose members replace those of the same name. The front end
/// and later calls see the change. In runs of other protocols the state is null.
///
/// ```
/// use oa_serve::FrontState;
/// use oa_tools::tool;
/// use serde_json::json;
///
/// let add_step = tool("add_step", "Adds a step to the plan").param("step", "string").build_with_context(
///     |args, context| async move {
///         let state = context.state::<FrontState>().map(FrontState::get).unwrap_or_default();
///         let mut steps = state["steps"].as_array().cloned().unwrap_or_default();
///         steps.push(args["step"].clone());
///         context.emit("state", json!({"steps": steps}));
///         Ok(json!("added"))
///     },
/// );
/// # drop(add_step);
/// ```
#[derive(Clone, Default)]
pub struct FrontState(Arc<Mutex<Value>>);

impl FrontState {
    pub(crate) fn new(state: Value) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the current state: the state that the front end sent, with the changes of this run. Null if the front
    /// end shares none.
    #[must_use]
    pub fn get(&self) -> Value {
        self.lock().clone()
    }

    /// Merges members into the state.
    pub(crate) fn merge(&self, members: &Value) {
        merge(&mut self.lock(), members);
    }

    fn lock(&self) -> MutexGuard<'_, Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Omits the values, which may be secret.
impl fmt::Debug for FrontState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontState").finish_non_exhaustive()
    }
}

/// Merges members into a state. Does nothing unless `members` is an object.
pub(crate) fn merge(state: &mut Value, members: &Value) {
    let Value::Object(members) = members else { return };
    if !state.is_object() {
        *state = Value::Object(Map::new());
    }
    for (name, value) in members {
        state[name] = value.clone();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        /// Members replace those of the same name, and all others stay.
        #[test]
        fn members_are_merged(
            before in prop::collection::btree_map("[a-d]", 0..9, 0..4), change in prop::collection::btree_map("[a-d]", 0..9, 0..4),
        ) {
            let state = FrontState::new(json!(before));
            state.merge(&json!(change));
            let mut expected = before;
            expected.extend(change);
            prop_assert_eq!(state.get(), json!(expected));
        }
    }

    /// A state of another type becomes an object.
    #[test]
    fn only_objects_change_the_state() {
        let state = FrontState::new(json!([1]));
        state.merge(&json!("x"));
        assert_eq!(state.get(), json!([1]));
        state.merge(&json!({"a": 1}));
        assert_eq!(state.get(), json!({"a": 1}));
        assert!(!format!("{state:?}").contains('1'));
    }
}
