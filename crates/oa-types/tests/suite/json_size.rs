//! The size of a value as JSON.

use oa_types::{Message, json_size};
use proptest::prelude::*;

proptest! {
    #[test]
    fn size_matches_serialized_json(words in proptest::collection::vec(".{0,20}", 0..5)) {
        let messages: Vec<Message> = words.into_iter().map(Message::user).collect();
        prop_assert_eq!(json_size(&messages), serde_json::to_string(&messages).unwrap().len());
    }
}
