//! The same call, with the same result, again and again.

use serde_json::Value;

/// Counts identical results in a row.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    /// In a box: most turns have no call.
    last: Option<Box<(String, Value, Value)>>,
    count: u32,
}

impl Guard {
    /// Counts a result and returns how many identical ones came in a row.
    pub(crate) fn count(&mut self, name: &str, input: &Value, result: &Value) -> u32 {
        let same = self.last.as_deref().is_some_and(|(last_name, last_input, last_result)| {
            last_name == name && last_input == input && last_result == result
        });
        if same {
            self.count += 1;
        } else {
            self.last = Some(Box::new((name.to_owned(), input.clone(), result.clone())));
            self.count = 1;
        }
        self.count
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}
