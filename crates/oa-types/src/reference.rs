//! References within a JSON Schema.

use serde_json::{Map, Value};

use crate::percent::percent_decoded;

/// Returns the target of a `$ref` within its own document, such as `#/$defs/Node`: a JSON pointer in a URI fragment
/// (RFC 6901, section 6). Anchors (`#name`) and references to other documents have none.
#[doc(hidden)]
#[must_use]
pub fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    match pointer.contains('%') {
        // schemars encodes all but plain ASCII. `~1` is decoded by `pointer`.
        true => root.pointer(&percent_decoded(pointer)?),
        false => root.pointer(pointer),
    }
}

/// Adds the keywords beside a reference to those of its target. They replace them, such as the description of one use,
/// except that both define members.
#[doc(hidden)]
pub fn merge_schema(target: &mut Map<String, Value>, beside: Map<String, Value>) {
    for (word, value) in beside {
        match (&*word, target.get_mut(&word), value) {
            (
                "patternProperties" | "properties",
                Some(Value::Object(known)),
                Value::Object(named),
            ) => known.extend(named),
            ("required", Some(Value::Array(known)), Value::Array(names)) => known.extend(names),
            (_, _, value) => _ = target.insert(word, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fragments_are_decoded_before_pointers() {
        let root = json!({ "$defs": { "a": 1, "a/b": 2, "L\u{f6}we %": 3, "100%": 4, "%+1": 5 }, "x": [6] });
        let number = |reference| resolve(&root, reference).and_then(Value::as_u64);
        assert_eq!(number("#/$defs/a"), Some(1));
        assert_eq!(number("#/$defs/a~1b"), Some(2));
        assert_eq!(number("#/$defs/a%7E1b"), Some(2));
        assert_eq!(number("#/%24defs/L%C3%B6we%20%25"), Some(3));
        assert_eq!(number("#/$defs/L\u{f6}we%20%"), Some(3));
        assert_eq!(number("#/$defs/100%"), Some(4));
        assert_eq!(number("#/$defs/%+1"), Some(5));
        assert_eq!(number("#/x/0"), Some(6));
        assert_eq!(resolve(&root, "#"), Some(&root));
        // The slash is part of a name, as `~1` would be.
        for none in ["#/$defs/b", "#a", "/$defs/a", "https://h/s#/$defs/a", "#/$defs/%FF", ""] {
            assert_eq!(resolve(&root, none), None, "{none}");
        }
    }
}
