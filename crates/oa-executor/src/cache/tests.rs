use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::{Key, ToolCache};

proptest! {
    /// The cache keeps the same results as a list in the order of use, and its record of uses stays small.
    #[test]
    fn the_last_used_are_kept(uses in prop::collection::vec((any::<bool>(), 0..6_u8), 0..200)) {
        const CAPACITY: usize = 3;
        let cache = ToolCache::new(CAPACITY);
        let mut model: Vec<u8> = Vec::new();
        for (inserts, number) in uses {
            let key = Key::new("tool", &json!(number));
            let known = model.iter().position(|other| *other == number);
            if let Some(place) = known {
                model.remove(place);
            }
            if inserts {
                cache.insert(key, &json!(number), &[]);
                model.push(number);
                if model.len() > CAPACITY {
                    model.remove(0);
                }
            } else {
                let found = cache.get(&key).map(|(value, _)| value);
                prop_assert_eq!(found, known.map(|_| json!(number)));
                model.extend(known.map(|_| number));
            }
            prop_assert_eq!(cache.len(), model.len());
            let entries = cache.lock();
            prop_assert!(entries.uses.len() <= 2 * CAPACITY + 17);
            // The size limit counts the keys of the map, so no other one may be held.
            for (_, key) in &entries.uses {
                let known = entries.by_key.get_key_value(key).map(|(known, _)| known);
                prop_assert!(known.is_some_and(|known| Arc::ptr_eq(&known.0, &key.0)));
            }
        }
    }
}
