use std::sync::{Mutex, PoisonError};

/// What was learned about models, by name: bounded, since names are whatever somebody sets.
#[derive(Debug)]
pub(crate) struct ByModel<T>(Mutex<Vec<(String, T)>>);

/// How many models are remembered.
const MOST: usize = 64;

impl<T: Copy> ByModel<T> {
    pub(crate) fn get(&self, model: &str) -> Option<T> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(name, _)| name == model).map(|(_, what)| *what)
    }

    /// Remembers it in place of what was known.
    pub(crate) fn note(&self, model: &str, what: T) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(name, _)| name != model);
        if known.len() == MOST {
            known.remove(0);
        }
        known.push((model.to_owned(), what));
    }
}

impl<T> Default for ByModel<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts_and_the_oldest_is_forgotten() {
        let known = ByModel::default();
        for model in 0..MOST {
            known.note(&model.to_string(), model);
        }
        known.note("0", 7);
        assert_eq!((known.get("0"), known.get("1")), (Some(7), Some(1)));
        known.note("new", 8);
        assert_eq!((known.get("0"), known.get("1"), known.get("new")), (Some(7), None, Some(8)));
    }
}
