//! The path from the root of a value to the part being read.

use std::fmt;

use serde_json::Value;

use crate::excerpt::excerpt;
use crate::held;

#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    steps: Vec<Step>,
    /// The length of all names, in bytes.
    bytes: usize,
}

/// One open array or object, and the item or member of it that is being read.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Item(usize),
    /// `count` is the number of members before this one. The name is empty until it is read.
    Member {
        name: String,
        count: usize,
    },
}

impl Path {
    /// The number of open arrays and objects.
    pub(super) fn depth(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn last(&self) -> Option<&Step> {
        self.steps.last()
    }

    pub(super) fn open(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub(super) fn close(&mut self) {
        if let Some(Step::Member { name, .. }) = self.steps.pop() {
            self.bytes -= name.len();
        }
    }

    /// Advances to the next item or member.
    pub(super) fn next(&mut self) {
        match self.steps.last_mut() {
            Some(Step::Item(place)) => *place += 1,
            Some(Step::Member { name, count }) => {
                self.bytes -= name.len();
                name.clear();
                *count += 1;
            }
            None => {}
        }
    }

    /// Enters the member of this name.
    pub(super) fn enter(&mut self, entered: String) {
        if let Some(Step::Member { name, .. }) = self.steps.last_mut() {
            self.bytes += entered.len();
            *name = entered;
        }
    }

    /// Returns the memory that a value takes at this place, in bytes, excluding its own contents.
    pub(super) fn cost(&self) -> usize {
        match self.steps.last() {
            None => 0,
            Some(Step::Item(0)) => held::LIST,
            Some(Step::Item(_)) => held::ITEM,
            Some(Step::Member { name, count }) => name.len() + held::by_member(count + 1),
        }
    }

    /// Returns the value at the end of the path.
    pub(super) fn find<'a>(&self, root: Option<&'a mut Value>) -> Option<&'a mut Value> {
        find(&self.steps, root)
    }

    /// Returns the innermost open array or object.
    pub(super) fn find_open<'a>(&self, root: Option<&'a mut Value>) -> Option<&'a mut Value> {
        let (_, enclosing) = self.steps.split_last()?;
        find(enclosing, root)
    }

    /// Puts a value at the end of the path, where there is none yet.
    pub(super) fn insert(&self, root: Option<&mut Value>, value: Value) {
        match (self.find_open(root), self.steps.last()) {
            (Some(Value::Array(items)), Some(Step::Item(_))) => items.push(value),
            (Some(Value::Object(members)), Some(Step::Member { name, .. })) => {
                members.insert(name.clone(), value);
            }
            _ => {}
        }
    }
}

/// Follows the steps from the root.
///
/// This happens for each value and each piece of a string, because a reference to the end cannot be stored
/// beside the root. `Limits::path_bytes` and `MAX_DEPTH` bound the work.
fn find<'a>(steps: &[Step], root: Option<&'a mut Value>) -> Option<&'a mut Value> {
    steps.iter().try_fold(root?, |value, step| match step {
        Step::Item(place) => value.get_mut(*place),
        Step::Member { name, .. } => value.get_mut(&**name),
    })
}

/// Writes `stops[2].name`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for step in &self.steps {
            match step {
                Step::Item(place) => write!(f, "[{place}]")?,
                // Its name has not been read in full.
                Step::Member { name, .. } if name.is_empty() => continue,
                Step::Member { name, .. } => {
                    f.write_str(if is_first { "" } else { "." })?;
                    f.write_str(&excerpt(name))?;
                }
            }
            is_first = false;
        }
        Ok(())
    }
}
