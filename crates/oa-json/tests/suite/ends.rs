//! Where a value ends, and what is valid.

use oa_json::{read_strict, value_length};
use proptest::prelude::*;
use serde_json::{Deserializer, Value};

use crate::{document, near_json};

proptest! {
    #[test]
    fn a_value_ends_before_what_follows((_, text) in document(), rest in near_json()) {
        let at = value_length(text.as_bytes());
        prop_assert_eq!(at, Some(text.trim_end().len()));
        // A number goes on with the digits behind it.
        if text.trim_end().ends_with(['}', ']', '"']) {
            prop_assert_eq!(value_length(format!("{text}{rest}").as_bytes()), at);
        }
    }

    #[test]
    fn serde_json_says_what_is_valid(text in near_json()) {
        prop_assert_eq!(read_strict(text.as_bytes()), serde_json::from_str(&text).ok());
        let mut values = Deserializer::from_str(&text).into_iter::<Value>();
        if values.next().is_some_and(|value| value.is_ok()) {
            prop_assert_eq!(value_length(text.as_bytes()), Some(values.byte_offset()));
        }
    }
}

#[test]
fn depth_and_bytes_that_are_no_text_are_no_panic() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(value_length(deep.as_bytes()), Some(deep.len()));
    assert_eq!(read_strict(deep.as_bytes()), None);
    assert_eq!(read_strict(b"\"\xff\""), None);
}
