//! The same call, with the same result, again and again.

use std::mem;

use serde_json::Value;

/// Counts identical results: those of one round together, and on from the round before if that had them too.
///
/// It holds what two rounds have had, no more.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    before: Vec<Seen>,
    now: Vec<Seen>,
}

#[derive(Debug)]
struct Seen {
    name: String,
    input: Value,
    result: Value,
    count: u32,
}

impl Guard {
    /// Begins the next round. What the last one did not have starts anew.
    pub(crate) fn begin_round(&mut self) {
        self.before = mem::take(&mut self.now);
    }

    /// Counts a result and returns how many identical ones have come, one round after the other.
    pub(crate) fn count(&mut self, name: &str, input: &Value, result: &Value) -> u32 {
        let is_same =
            |seen: &Seen| seen.name == name && seen.input == *input && seen.result == *result;
        if let Some(seen) = self.now.iter_mut().find(|seen| is_same(seen)) {
            seen.count = seen.count.saturating_add(1);
            return seen.count;
        }
        let seen = match self.before.iter().position(is_same) {
            Some(place) => {
                let seen = self.before.swap_remove(place);
                Seen { count: seen.count.saturating_add(1), ..seen }
            }
            None => Seen {
                name: name.to_owned(),
                input: input.clone(),
                result: result.clone(),
                count: 1,
            },
        };
        let count = seen.count;
        self.now.push(seen);
        count
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_call_is_counted_by_itself_and_what_a_round_lacks_starts_anew() {
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
    fn nothing_older_than_a_round_is_kept() {
        let mut guard = Guard::default();
        for round in 0..100 {
            guard.begin_round();
            for call in 0..3 {
                assert_eq!(guard.count("a", &json!(round), &json!(call)), 1);
            }
            assert!(guard.before.len() <= 3 && guard.now.len() == 3);
        }
    }
}
