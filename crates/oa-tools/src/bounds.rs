use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use crate::members::find;

/// Returns the first range or length that a value is outside of, and the value: "at most 7, found 9".
///
/// Bounds that exclude each other are ignored, since no call could satisfy them. So is a bound that the schema's
/// own `default` is outside of, for that value: callers who leave an argument out must not fail because of it.
pub(crate) fn violated(schema: &Map<String, Value>, value: &Value) -> Option<String> {
    let bounds = match value {
        Value::Array(items) => lengths(schema, "minItems", "maxItems", "item", || items.len()),
        Value::Number(number) => range(schema, number),
        Value::String(text) => {
            lengths(schema, "minLength", "maxLength", "character", || text.chars().count())
        }
        _ => None,
    };
    bounds.filter(|_| !find(schema, "default").is_some_and(|default| is_same(default, value)))
}

/// Compares values; `3` equals `3.0`, also within lists and objects.
pub(crate) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has_same = |(name, value): (&String, &Value)| {
                find(other, name).is_some_and(|other| is_same(value, other))
            };
            one.len() == other.len() && one.iter().all(has_same)
        }
        // Two large whole numbers may be the same only as floats.
        _ => one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64(),
    }
}

fn range(schema: &Map<String, Value>, value: &Number) -> Option<String> {
    // Some older schemas have booleans for the exclusive bounds; they are not numbers, so they are ignored.
    let limit = |name| find(schema, name).and_then(Value::as_number);
    let lower = [("at least", limit("minimum")), ("more than", limit("exclusiveMinimum"))];
    let upper = [("at most", limit("maximum")), ("less than", limit("exclusiveMaximum"))];
    let is_within = |value: &Number, words: &str, limit: &Number| match order(value, limit) {
        Ordering::Less => matches!(words, "at most" | "less than"),
        Ordering::Equal => matches!(words, "at least" | "at most"),
        Ordering::Greater => matches!(words, "at least" | "more than"),
    };
    // Two bounds leave room only if each satisfies the other: `minimum` 5 and `exclusiveMaximum` 5 do not.
    for (least_words, least) in lower {
        for (most_words, most) in upper {
            if let (Some(least), Some(most)) = (least, most)
                && !(is_within(least, most_words, most) && is_within(most, least_words, least))
            {
                return None;
            }
        }
    }
    lower.into_iter().chain(upper).find_map(|(words, limit)| {
        let limit = limit.filter(|limit| !is_within(value, words, limit))?;
        Some(format!("{words} {limit}, found {value}"))
    })
}

/// Compares without rounding integers, which `f64` cannot hold above 2^53.
fn order(one: &Number, other: &Number) -> Ordering {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal),
    }
}

fn lengths(
    schema: &Map<String, Value>,
    least: &str,
    most: &str,
    unit: &str,
    length: impl FnOnce() -> usize,
) -> Option<String> {
    let limit = |name| find(schema, name).and_then(Value::as_u64);
    let (least, most) = (limit(least), limit(most));
    if least.is_none() && most.is_none()
        || least.zip(most).is_some_and(|(least, most)| least > most)
    {
        return None;
    }
    // Counted only if there is a bound, because counting characters reads the whole text.
    let length = length() as u64;
    let (words, limit) = match (least, most) {
        (Some(least), _) if length < least => ("at least", least),
        (_, Some(most)) if length > most => ("at most", most),
        _ => return None,
    };
    let plural = if limit == 1 { "" } else { "s" };
    Some(format!("{words} {limit} {unit}{plural}, found {length}"))
}
