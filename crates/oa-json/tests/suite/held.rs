//! Estimates of memory, against a counting allocator.

use allocation_counter::measure;
use oa_json::held;
use proptest::collection::{hash_map, vec};
use proptest::prelude::*;
use serde_json::Value;

use crate::bounds::heavy_json;

/// The bytes that a value holds once it is there.
fn measured(json: &str) -> u64 {
    let mut value = Value::Null;
    let made = measure(|| value = serde_json::from_str(json).unwrap_or_default());
    u64::try_from(made.bytes_current).expect("a value holds no less than nothing")
}

#[track_caller]
fn check_estimates(json: &str) {
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    let (by_json, by_value) = (held::by_json(json), held::by_value(&value));
    let measured = measured(json);
    let shown: String = json.chars().take(60).collect();
    assert!(measured <= by_value as u64, "{shown}: {measured} bytes, not {by_value}");
    assert!(by_value <= by_json, "{shown}: {by_value} by the value, and {by_json} by the text");
    assert!(held::fits(json, by_json));
    // Copies of it have no other shape.
    let copy = measure(|| std::mem::forget(value.clone()));
    assert!(copy.bytes_current as u64 <= by_value as u64);
}

#[test]
fn heavy_json_is_not_underestimated() {
    for size in [1, 10, 100, 10_000, 300_000] {
        for (_, json) in heavy_json(size) {
            check_estimates(&json);
            assert!(held::by_json(&json) <= json.len() * held::MAX_PER_BYTE);
        }
    }
}

/// Any JSON value of a few dozen parts.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 200, 20, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..20).prop_map(Value::from),
            hash_map(".{0,20}", inner, 0..20)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn estimates_are_upper_bounds(value in any_json()) {
        check_estimates(&value.to_string());
        check_estimates(&serde_json::to_string_pretty(&value).unwrap());
    }
}
