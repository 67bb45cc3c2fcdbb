//! Detection of repeated calls with the same result.

use std::mem;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A counter of identical results within a round and in consecutive rounds.
///
/// It holds the results of two rounds at most, boxed because most turns have no calls.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Guard(Option<Box<Rounds>>);

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Rounds {
    before: Vec<CountedResult>,
    now: Vec<CountedResult>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct CountedResult {
    name: String,
    input: Value,
    result: Value,
    count: u32,
}

impl Guard {
    /// Begins the next round. Results that did not occur in the previous round are forgotten.
    pub(crate) fn begin_round(&mut self) {
        if let Some(rounds) = &mut self.0 {
            rounds.before = mem::take(&mut rounds.now);
        }
    }

    /// Counts a result and returns the number of identical results in consecutive rounds.
    pub(crate) fn count(&mut self, name: &str, input: &Value, result: &Value) -> u32 {
        let Rounds { before, now } = &mut **self.0.get_or_insert_default();
        let is_same = |counted: &CountedResult| {
            counted.name == name && counted.input == *input && counted.result == *result
        };
        // A result counts once for each call, within a round and across rounds. It moves from `before` to
        // `now`, and what is left in `before` is dropped when the next round begins.
        if let Some(counted) = now.iter_mut().find(|counted| is_same(counted)) {
            counted.count = counted.count.saturating_add(1);
            return counted.count;
        }
        let counted = match before.iter().position(is_same) {
            Some(index) => {
                let counted = before.swap_remove(index);
                CountedResult { count: counted.count.saturating_add(1), ..counted }
            }
            None => CountedResult {
                name: name.to_owned(),
                input: input.clone(),
                result: result.clone(),
                count: 1,
            },
        };
        let count = counted.count;
        now.push(counted);
        count
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each call has its own count, which restarts once a round lacks the call or its result differs.
    #[test]
    fn a_missed_round_resets_the_count() {
        let mut guard = Guard::default();
        let mut round = |calls: &[(&str, u32)]| -> Vec<u32> {
            guard.begin_round();
            let count =
                |(name, result): &(&str, u32)| guard.count(name, &json!({}), &json!(result));
            calls.iter().map(count).collect()
        };
        assert_eq!(round(&[("a", 1), ("b", 1)]), [1, 1]);
        assert_eq!(round(&[("b", 1), ("a", 1)]), [2, 2]);
        assert_eq!(round(&[("a", 1), ("c", 1), ("a", 1)]), [3, 1, 4]);
        assert_eq!(round(&[("b", 1), ("a", 2)]), [1, 1]);
        assert_eq!(round(&[("a", 1), ("c", 1)]), [1, 1]);
    }

    #[test]
    fn only_the_last_round_is_kept() {
        let mut guard = Guard::default();
        for round in 0..100 {
            guard.begin_round();
            for call in 0..3 {
                assert_eq!(guard.count("a", &json!(round), &json!(call)), 1);
            }
            let Rounds { before, now } = guard.0.as_deref().unwrap();
            assert!(before.len() <= 3 && now.len() == 3);
        }
    }
}
