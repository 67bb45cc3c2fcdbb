//! Argument checks, and the messages for the model.

use std::thread;

use insta::assert_snapshot;
use oa_tools::check_arguments;
use serde_json::{Value, json};

#[track_caller]
fn check(schema: &Value, input: Value, expected: &Value) {
    assert_eq!(&check_arguments(schema, input).expect("the arguments fit"), expected);
}

fn refused(schema: &Value, input: Value) -> String {
    check_arguments(schema, input).expect_err("the arguments do not fit").to_string()
}

fn properties(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

#[test]
fn every_json_type_is_checked() {
    let samples = [
        ("array", json!([1])),
        ("boolean", json!(true)),
        ("integer", json!(3)),
        ("null", json!(null)),
        ("number", json!(0.5)),
        ("object", json!({ "a": 1 })),
        ("string", json!("x")),
    ];
    for (of, _) in &samples {
        let schema =
            json!({ "type": "object", "properties": { "x": { "type": of } }, "required": ["x"] });
        for (is, value) in &samples {
            let fits = of == is || (*of, *is) == ("number", "integer");
            let given = json!({ "x": value });
            assert_eq!(check_arguments(&schema, given).is_ok(), fits, "{value} as {of}");
        }
    }
}

#[test]
fn whole_floats_become_integers() {
    let schema = properties(json!({ "n": { "type": "integer" }, "x": { "type": "number" } }));
    check(&schema, json!({ "n": 3.0, "x": 3.0 }), &json!({ "n": 3, "x": 3.0 }));
    check(&schema, json!({ "n": -0.0 }), &json!({ "n": 0 }));
    check(&schema, json!({ "n": u64::MAX }), &json!({ "n": u64::MAX }));
    check(&schema, json!({ "n": 1e300 }), &json!({ "n": 1e300 }));
    let nullable = properties(json!({ "n": { "type": ["integer", "null"] } }));
    check(&nullable, json!({ "n": 3.0 }), &json!({ "n": 3 }));
    let either = properties(json!({ "n": { "type": ["integer", "number"] } }));
    check(&either, json!({ "n": 3.0 }), &json!({ "n": 3.0 }));
    assert_snapshot!(refused(&schema, json!({ "n": 3.5 })), @"`n`: expected integer, found number 3.5");
}

/// QUIRKS row 139.
#[test]
fn lists_and_objects_in_quotes_are_read() {
    let item = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let schema = properties(json!({
        "list": { "type": "array", "items": item },
        "object": { "type": ["object", "null"], "properties": { "d": { "default": 1 } } },
        "either": { "anyOf": [{ "type": "null" }, { "type": "array" }] },
        "text": { "type": "string" },
        "texts": { "type": ["string", "array"] },
        "any": {},
    }));
    check(
        &schema,
        json!({ "list": "[{\"n\": 3.0}, \"{}\"]" }),
        &json!({ "list": [{ "n": 3 }, {}] }),
    );
    check(&schema, json!({ "object": " {\"a\": 1}\n" }), &json!({ "object": { "a": 1, "d": 1 } }));
    check(&schema, json!({ "either": "[1]" }), &json!({ "either": [1] }));
    // A string that is allowed is meant.
    let texts = json!({ "text": "[1]", "texts": "[1]", "any": "{}" });
    check(&schema, texts.clone(), &texts);
    assert_snapshot!(refused(&schema, json!({ "list": "{}" })), @r#"`list`: expected array, found string "{}""#);
    assert_snapshot!(refused(&schema, json!({ "list": "[1" })), @r#"`list`: expected array, found string "[1""#);
    assert_snapshot!(refused(&schema, json!({ "list": "[1]" })), @"`list[0]`: expected object, found number 1");
    // Neither deep nor large ones.
    for text in ["[".repeat(40) + &"]".repeat(40), format!("[{}1]", "1,".repeat(100_001))] {
        assert!(check_arguments(&schema, json!({ "either": text })).is_err());
    }
}

#[test]
fn problems_name_the_path() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "unit": { "enum": ["c", "f", 3] },
            "stops": { "type": "array", "items": {
                "type": "object",
                "properties": { "name": { "type": ["string", "null"] } },
                "required": ["name"],
                "additionalProperties": false,
            }},
        },
        "required": ["city", "stops", "other"],
    });
    assert_snapshot!(refused(&schema, json!({})), @"`city`: required, but missing; expected string; `stops`: required, but missing; expected array; `other`: required, but missing");
    assert_snapshot!(refused(&schema, json!({
        "city": 5,
        "other": 1,
        "stops": [{ "name": "a" }, { "name": 1 }, {}, { "name": null, "x.y": 1 }, "z"],
        "unit": "kelvin",
    })), @r#"`city`: expected string, found number 5; `stops[1].name`: expected string or null, found number 1; `stops[2].name`: required, but missing; expected string or null; `stops[3].x.y`: unknown parameter; the parameters are `name`; `stops[4]`: expected object, found string "z"; `unit`: expected one of "c", "f", 3, found string "kelvin""#);
    check(
        &schema,
        json!({ "city": "a", "stops": [], "other": null, "unit": 3.0 }),
        &json!({ "city": "a", "stops": [], "other": null, "unit": 3.0 }),
    );
    assert_snapshot!(refused(&schema, json!([1, 2])), @"expected object, found array of 2");
}

#[test]
fn defaults_are_filled_in_at_any_depth() {
    let schema = json!({
        "type": "object",
        "properties": {
            "limit": { "type": "integer", "default": 10 },
            "page": {
                "type": "object",
                "properties": { "size": { "$ref": "#/$defs/size" } },
                "default": {},
            },
            "rows": { "items": { "properties": { "on": { "default": true } } } },
        },
        "$defs": { "size": { "type": "integer", "default": 5 } },
    });
    check(&schema, json!({}), &json!({ "limit": 10, "page": { "size": 5 } }));
    check(
        &schema,
        json!({ "limit": 1, "page": {}, "rows": [{}, { "on": false }, 3] }),
        &json!({ "limit": 1, "page": { "size": 5 }, "rows": [{ "on": true }, { "on": false }, 3] }),
    );
    check(&schema, Value::Null, &json!({ "limit": 10, "page": { "size": 5 } }));
}

/// Defaults that never settle are not filled in at all, rather than to a different depth each time.
#[test]
fn endless_defaults_are_not_filled_in() {
    let endless = properties(json!({
        "a": { "$ref": "#", "default": {} },
        "b": { "$ref": "#", "default": {} },
        "n": { "type": "integer" },
    }));
    check(&endless, json!({}), &json!({}));
    check(&endless, json!({ "n": 5.0 }), &json!({ "n": 5.0 }));
}

/// A default in one alternative may make the value match an earlier one with more defaults.
#[test]
fn completion_repeats_until_stable() {
    let schema = json!({
        "type": "object",
        "anyOf": [
            { "properties": { "more": { "default": 5.0 } }, "required": ["kind"] },
            { "properties": { "kind": { "default": "x" } } },
        ],
        "properties": { "more": { "type": ["integer", "null"] } },
    });
    check(&schema, json!({}), &json!({ "kind": "x", "more": 5 }));
}

#[test]
fn null_for_an_optional_member_is_removed() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": { "type": "string" },
            "b": { "type": "integer", "default": 1 },
            "c": { "type": ["string", "null"] },
            "d": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "e": { "type": "string" },
        },
        "required": ["e"],
    });
    let given = json!({ "a": null, "b": null, "c": null, "d": null, "e": "x" });
    check(&schema, given, &json!({ "b": 1, "c": null, "d": null, "e": "x" }));
    assert_snapshot!(refused(&schema, json!({ "e": null })), @"`e`: expected string, found null");
}

#[test]
fn alternatives_and_references_are_followed() {
    let schema = json!({
        "type": "object",
        "properties": {
            "shape": { "oneOf": [{ "$ref": "#/$defs/circle" }, { "$ref": "#/$defs/square" }] },
            "id": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "both": { "allOf": [{ "required": ["x"] }, { "required": ["y"] }] },
        },
        "$defs": {
            "circle": {
                "type": "object",
                "properties": { "kind": { "const": "circle" }, "r": { "type": "number" } },
                "required": ["kind", "r"],
            },
            "square": {
                "type": "object",
                "properties": { "kind": { "const": "square" }, "a": { "default": 1 } },
                "required": ["kind"],
            },
        },
    });
    let fine = json!({ "shape": { "kind": "circle", "r": 1.5 }, "id": 7 });
    check(&schema, fine.clone(), &fine);
    check(
        &schema,
        json!({ "shape": { "kind": "square" } }),
        &json!({ "shape": { "kind": "square", "a": 1 } }),
    );
    assert_snapshot!(refused(&schema, json!({ "shape": { "kind": "line" } })), @r#"`shape.kind`: expected one of "circle", "square", found string "line""#);
    assert_snapshot!(refused(&schema, json!({ "shape": "round" })), @r#"`shape`: expected object, found string "round""#);
    assert_snapshot!(refused(&schema, json!({ "id": [] })), @"`id`: expected string or integer, found array of 0");
    assert_snapshot!(refused(&schema, json!({ "both": { "x": 1 } })), @"`both.y`: required, but missing");
}

#[test]
fn keywords_beside_a_ref_apply() {
    let schema = json!({
        "type": "object",
        "properties": {
            "unit": { "$ref": "#/$defs/Unit", "default": "C" },
            "warm": { "$ref": "#/$defs/Unit", "enum": ["C", "K"] },
            "size": { "$ref": "#/$defs/Size", "properties": { "deep": { "default": 1 } }, "required": ["high"] },
        },
        "$defs": {
            "Unit": { "type": "string", "enum": ["C", "F", "K"], "default": "K" },
            "Size": { "$ref": "#/$defs/Box", "properties": { "wide": { "type": "integer" } } },
            "Box": { "type": "object", "properties": { "high": { "type": "integer", "default": 2 } } },
        },
    });
    // A default next to a reference takes precedence over the target's.
    check(&schema, json!({}), &json!({ "unit": "C", "warm": "K" }));
    check(
        &schema,
        json!({ "unit": "K", "warm": "C", "size": { "wide": 3.0 } }),
        &json!({ "unit": "K", "warm": "C", "size": { "wide": 3, "deep": 1, "high": 2 } }),
    );
    assert_snapshot!(refused(&schema, json!({ "unit": "X", "warm": "F", "size": { "wide": "x" } })), @r#"`unit`: expected one of "C", "F", "K", found string "X"; `warm`: expected one of "C", "K", found string "F"; `size.wide`: expected integer, found string "x""#);
    // A problem found by several schemas for the same value is reported once.
    let twice =
        json!({ "$ref": "#/$defs/o", "type": "object", "$defs": { "o": { "type": "object" } } });
    assert_snapshot!(refused(&twice, json!([])), @"expected object, found array of 0");
    let never = json!({ "$ref": "#/$defs/no", "type": "object", "$defs": { "no": false } });
    assert_snapshot!(refused(&never, json!({})), @"no value is allowed here");
}

#[test]
fn additional_properties_are_checked() {
    let of_numbers = json!({ "type": "object", "additionalProperties": { "type": "number" } });
    check(&of_numbers, json!({ "a": 1 }), &json!({ "a": 1 }));
    assert_snapshot!(refused(&of_numbers, json!({ "a": "x" })), @r#"`a`: expected number, found string "x""#);
    let none = json!({ "type": "object", "additionalProperties": false });
    assert_snapshot!(refused(&none, json!({ "a": 1 })), @"`a`: unknown parameter");
    // A pattern may name it.
    let named = json!({
        "patternProperties": { "^x-": { "type": "string" } }, "additionalProperties": false,
    });
    check(&named, json!({ "x-a": "1" }), &json!({ "x-a": "1" }));
    let forbidden = properties(json!({ "a": false }));
    assert_snapshot!(refused(&forbidden, json!({ "a": 1 })), @"`a`: no value is allowed here");
}

#[test]
fn tuple_items_have_their_own_schemas() {
    let integer = json!({ "type": "integer" });
    let string = json!({ "type": "string" });
    for schema in [
        json!({ "prefixItems": [string, integer], "items": false }),
        json!({ "prefixItems": [string], "items": integer }),
        json!({ "items": [string, integer], "additionalItems": false }),
    ] {
        check(&schema, json!(["a", 2.0]), &json!(["a", 2]));
        check(&schema, json!(["a"]), &json!(["a"]));
        assert_eq!(refused(&schema, json!([1])), "`[0]`: expected string, found number 1");
    }
    let pair = json!({ "prefixItems": [string, integer], "items": false });
    assert_snapshot!(refused(&pair, json!(["a", 1, 2])), @"`[2]`: no value is allowed here");
}

#[test]
fn openapi_nullable_allows_null() {
    let schema = json!({
        "properties": { "a": { "type": "string", "nullable": true }, "b": { "type": "string" } },
        "required": ["a"],
    });
    check(&schema, json!({ "a": null, "b": null }), &json!({ "a": null }));
    let not = json!({ "properties": { "a": { "type": "string", "nullable": false } }, "required": ["a"] });
    assert_snapshot!(refused(&not, json!({ "a": null })), @"`a`: expected string, found null");
}

#[test]
fn large_integers_compare_exactly() {
    let schema = properties(json!({ "n": { "enum": [9_007_199_254_740_993_i64, 2.0] } }));
    check(
        &schema,
        json!({ "n": 9_007_199_254_740_993_i64 }),
        &json!({ "n": 9_007_199_254_740_993_i64 }),
    );
    check(&schema, json!({ "n": 2 }), &json!({ "n": 2 }));
    refused(&schema, json!({ "n": 9_007_199_254_740_992_i64 }));
}

#[test]
fn long_values_are_quoted_in_part() {
    let schema = properties(json!({ "n": { "type": "integer" } }));
    let message = refused(&schema, json!({ "n": "long\n".repeat(1_000_000) }));
    assert!(message.len() < 150, "{message}");
    let none = json!({ "additionalProperties": false });
    let message = refused(&none, json!({ "x".repeat(1_000_000): 1 }));
    assert!(message.len() < 150, "{message}");
}

#[test]
fn eight_problems_are_listed_rest_counted() {
    let schema = json!({ "items": { "type": "string" } });
    let error = check_arguments(&schema, json!((0..100).collect::<Vec<_>>())).unwrap_err();
    assert_eq!(error.problems().len(), 8);
    assert_eq!(error.problems()[7].path, "[7]");
    assert!(error.to_string().ends_with("; and 92 more"), "{error}");
}

#[test]
fn recursive_schemas_terminate() {
    let circle = json!({ "$ref": "#/$defs/a", "$defs": {
        "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" },
    }});
    check(&circle, json!({ "x": 1 }), &json!({ "x": 1 }));

    let doubling = json!({ "$ref": "#/$defs/a", "$defs": { "a": {
        "anyOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }],
        "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }],
    }}});
    check(&doubling, json!({ "x": 1 }), &json!({ "x": 1 }));

    let tree = json!({ "$ref": "#/$defs/t", "$defs": { "t": {
        "type": "object", "properties": { "next": { "$ref": "#/$defs/t" } },
    }}});
    // Unoptimized code needs more stack on Windows than a test's thread has there.
    let stack = if cfg!(windows) { 4 << 20 } else { 2 << 20 };
    let deep = thread::Builder::new().stack_size(stack).spawn({
        let tree = tree.clone();
        move || {
            let deep = (0..1_000).fold(json!({}), |deep, _| json!({ "next": deep }));
            assert!(check_arguments(&tree, deep).is_ok());
        }
    });
    deep.unwrap().join().unwrap();
    assert_snapshot!(refused(&tree, json!({ "next": { "next": 1 } })), @"`next.next`: expected object, found number 1");
}

#[test]
fn malformed_keywords_are_ignored() {
    let schema = json!({
        "type": 5, "required": "a", "properties": [], "enum": {}, "anyOf": 1, "items": 3, "$ref": 9,
    });
    check(&schema, json!({ "a": [1] }), &json!({ "a": [1] }));
    check(&json!(null), json!({ "a": 1 }), &json!({ "a": 1 }));
    check(&json!({ "type": "money" }), json!({}), &json!({}));
    check(&json!({ "$ref": "http://elsewhere/schema" }), json!({}), &json!({}));
}

#[test]
fn ranges_and_lengths_are_checked() {
    let schema = properties(json!({
        "count": { "type": "integer", "minimum": 1, "maximum": 10 },
        "ratio": { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 },
        "id": { "type": "integer", "maximum": u64::MAX - 1 },
        "name": { "type": "string", "minLength": 2, "maxLength": 5 },
        "tags": { "type": "array", "items": { "type": "string", "maxLength": 3 }, "minItems": 1, "maxItems": 2 },
        "days": { "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "null" }] },
    }));
    let fitting = json!({
        "count": 1, "ratio": 0.5, "id": u64::MAX - 1, "name": "\u{f8}\u{f8}\u{f8}\u{f8}\u{f8}", "tags": ["abc"], "days": null,
    });
    check(&schema, fitting.clone(), &fitting);
    check(&schema, json!({ "count": 10.0 }), &json!({ "count": 10 }));
    let refused = |input| refused(&schema, input);
    assert_snapshot!(refused(json!({ "count": 0 })), @"`count`: expected at least 1, found 0");
    assert_snapshot!(refused(json!({ "count": 11.0 })), @"`count`: expected at most 10, found 11");
    assert_snapshot!(refused(json!({ "ratio": 0 })), @"`ratio`: expected more than 0, found 0");
    assert_snapshot!(refused(json!({ "ratio": 1.0 })), @"`ratio`: expected less than 1, found 1.0");
    assert_snapshot!(refused(json!({ "id": u64::MAX })), @"`id`: expected at most 18446744073709551614, found 18446744073709551615");
    assert_snapshot!(refused(json!({ "name": "x" })), @"`name`: expected at least 2 characters, found 1");
    assert_snapshot!(refused(json!({ "name": "Trondheim" })), @"`name`: expected at most 5 characters, found 9");
    assert_snapshot!(refused(json!({ "tags": [] })), @"`tags`: expected at least 1 item, found 0");
    assert_snapshot!(refused(json!({ "tags": ["a", "b", "c", "abcd"] })), @"`tags`: expected at most 2 items, found 4; `tags[3]`: expected at most 3 characters, found 4");
    assert_snapshot!(refused(json!({ "days": -1 })), @"`days`: expected at least 0, found -1");
}

#[test]
fn unsatisfiable_bounds_are_ignored() {
    let schema = properties(json!({
        "swapped": { "type": "integer", "minimum": 5, "maximum": 1 },
        "empty": { "type": "number", "minimum": 5, "exclusiveMaximum": 5 },
        "text": { "type": "string", "minLength": 5, "maxLength": 1 },
        "old": { "type": "number", "minimum": 0, "exclusiveMinimum": true },
        "odd": { "type": "integer", "minimum": "1" },
    }));
    let given = json!({ "swapped": 3, "empty": 9, "text": "abc", "old": 0, "odd": 0 });
    check(&schema, given.clone(), &given);
}

#[test]
fn defaults_may_be_out_of_bounds() {
    let schema = properties(json!({ "limit": { "type": "integer", "minimum": 1, "default": 0 } }));
    check(&schema, json!({}), &json!({ "limit": 0 }));
    let float = properties(json!({ "limit": { "type": "integer", "minimum": 1, "default": 0.0 } }));
    check(&float, json!({}), &json!({ "limit": 0 }));
    assert_snapshot!(refused(&schema, json!({ "limit": -1 })), @"`limit`: expected at least 1, found -1");
}

#[test]
fn mistyped_defaults_are_not_filled_in() {
    let page = json!({
        "type": "object",
        "properties": { "size": { "type": "integer", "default": 10 } },
        "required": ["size"],
        "default": {},
    });
    let area = json!({
        "type": "object",
        "properties": { "width": { "type": "integer", "default": "wide" } },
        "required": ["width"],
        "default": {},
    });
    let schema = properties(json!({
        "note": { "type": "string", "default": null },
        "order": { "type": "string", "enum": ["newest", "oldest"], "default": "" },
        "limit": { "type": "integer", "default": "10" },
        "tags": { "type": "array", "items": { "type": "string" }, "default": [1] },
        "page": page,
        "area": area,
    }));
    let completed = json!({ "page": { "size": 10 } });
    check(&schema, json!({}), &completed);
    check(&schema, json!({ "note": null }), &completed);
    assert_snapshot!(refused(&schema, json!({ "order": "" })), @r#"`order`: expected one of "newest", "oldest", found string """#);
}

/// Where a default would make valid arguments invalid, no default is filled in.
#[test]
fn defaults_never_invalidate_arguments() {
    let schema = json!({
        "type": "object",
        "allOf": [
            { "properties": { "size": { "type": "integer", "default": 1 } } },
            { "properties": { "size": { "enum": [2, 3] } } },
        ],
        "properties": { "name": { "type": "string", "default": "x" } },
    });
    check(&schema, json!({}), &json!({}));
    check(&schema, json!({ "size": 2.0 }), &json!({ "size": 2, "name": "x" }));
    assert_snapshot!(refused(&schema, json!({ "size": 4 })), @"`size`: expected one of 2, 3, found number 4");
}

/// Servers with `strict: true` send `null` for each member that is left out, and each alternative has such members.
#[test]
fn null_is_removed_in_alternatives() {
    let circle = json!({
        "type": "object",
        "properties": {
            "radius": { "type": "number" },
            "color": { "type": "string" },
            "unit": { "type": "string", "default": "cm" },
        },
        "required": ["radius", "unit"],
        "additionalProperties": false,
    });
    let schema = properties(json!({
        "shape": { "anyOf": [{ "type": "string" }, circle] },
    }));
    check(
        &schema,
        json!({ "shape": { "radius": 1, "color": null } }),
        &json!({ "shape": { "radius": 1, "unit": "cm" } }),
    );
    assert_snapshot!(refused(&schema, json!({ "shape": { "radius": null } })), @"`shape.radius`: expected number, found null");
}

/// An attempt at an alternative costs no report: nested ones would double the work at each level, until it is used up
/// and the problem is no longer told.
#[test]
fn deep_alternatives_stay_within_the_work_budget() {
    let schema = json!({
        "type": "object",
        "properties": { "sum": { "$ref": "#/$defs/sum" } },
        "required": ["sum"],
        "$defs": { "sum": { "anyOf": [
            { "type": "number" },
            { "type": "object", "properties": { "more": { "$ref": "#/$defs/sum" } }, "required": ["more"] },
        ] } },
    });
    let nested = |leaf: Value| (0..20).fold(leaf, |inner, _| json!({ "more": inner }));
    check_arguments(&schema, json!({ "sum": nested(json!(1)) })).unwrap();
    let error = check_arguments(&schema, json!({ "sum": nested(json!("x")) })).unwrap_err();
    assert!(
        error.to_string().ends_with(r#"expected number or object, found string "x""#),
        "{error}"
    );
}

#[test]
fn padding_does_not_hide_a_problem() {
    let schema = json!({
        "type": "object",
        "properties": {
            "pad": { "type": "array", "items": { "$ref": "#/$defs/cell" } },
            "path": { "enum": ["a.txt"] },
        },
        "$defs": { "cell": { "anyOf": [{ "type": "string" }, { "type": "number" }] } },
    });
    let pad = vec![1; 200_000];
    let error = check_arguments(&schema, json!({ "pad": pad, "path": "/etc/passwd" })).unwrap_err();
    assert_snapshot!(error, @r#"`path`: expected one of "a.txt", found string "/etc/passwd""#);
    let large = json!({ "pad": pad, "path": "a.txt" });
    assert_eq!(check_arguments(&schema, large.clone()).unwrap(), large);
}

/// Each level of the value doubles the work, and what follows is not reached.
#[test]
fn arguments_that_use_up_the_work_do_not_match() {
    let schema = json!({
        "type": "object",
        "properties": { "list": { "$ref": "#/$defs/list" }, "path": { "enum": ["a.txt"] } },
        "$defs": { "list": { "oneOf": [
            { "properties": { "next": { "$ref": "#/$defs/list" } }, "required": ["end"] },
            { "properties": { "next": { "$ref": "#/$defs/list" } } },
        ] } },
    });
    let list = |length| (0..length).fold(json!({}), |inner, _| json!({ "next": inner }));
    let error = refused(&schema, json!({ "list": list(20), "path": "/etc/passwd" }));
    assert_snapshot!(error, @"too large or too deeply nested to be checked");
    check_arguments(&schema, json!({ "list": list(8), "path": "a.txt" })).unwrap();
}

/// The ways in which serde and `schemars` write an enum: the model reads what is wrong with the variant that it meant.
#[test]
fn problems_of_enums_name_the_variant() {
    let schema = json!({
        "type": "object",
        "properties": {
            "unit": { "oneOf": [
                { "type": "string", "const": "celsius", "description": "water freezes at 0" },
                { "type": "string", "enum": ["kelvin", "rankine"] },
            ] },
            "action": { "anyOf": [
                { "oneOf": [
                    {
                        "type": "object",
                        "properties": { "kind": { "const": "page" }, "who": { "type": "string" } },
                        "required": ["kind", "who"],
                    },
                    {
                        "type": "object",
                        "properties": { "kind": { "enum": ["restart"] }, "service": { "type": "string" } },
                        "required": ["kind", "service"],
                    },
                ] },
                { "type": "null" },
            ] },
            "source": { "oneOf": [
                { "type": "string", "enum": ["Nowhere"] },
                {
                    "type": "object",
                    "properties": { "Log": { "type": "string" } },
                    "required": ["Log"],
                    "additionalProperties": false,
                },
                {
                    "type": "object",
                    "properties": { "Metric": { "type": "object", "required": ["name"] } },
                    "required": ["Metric"],
                    "additionalProperties": false,
                },
            ] },
        },
    });
    let fine = json!({ "unit": "kelvin", "action": null, "source": { "Log": "a" } });
    check(&schema, fine.clone(), &fine);
    let said = |name: &str, value: Value| refused(&schema, json!({ name: value }));
    assert_snapshot!(said("unit", json!("C")), @r#"`unit`: expected one of "celsius", "kelvin", "rankine", found string "C""#);
    assert_snapshot!(said("action", json!({ "kind": "page" })), @"`action.who`: required, but missing; expected string");
    assert_snapshot!(said("action", json!({ "kind": "restart", "service": 5 })), @"`action.service`: expected string, found number 5");
    assert_snapshot!(said("action", json!({ "who": "ada" })), @r#"`action.kind`: required, but missing; expected one of "page", "restart""#);
    assert_snapshot!(said("action", json!({ "kind": 1 })), @r#"`action.kind`: expected one of "page", "restart", found number 1"#);
    assert_snapshot!(said("source", json!({ "Metric": {} })), @"`source.Metric.name`: required, but missing");
    assert_snapshot!(said("source", json!({ "Metric": {}, "Log": "a" })), @r#"`source`: expected an object with one of the members "Log", "Metric""#);
    assert_snapshot!(said("source", json!({ "Trace": {} })), @r#"`source`: expected an object with one of the members "Log", "Metric""#);
    assert_snapshot!(said("source", json!({})), @r#"`source`: expected an object with one of the members "Log", "Metric""#);
    assert_snapshot!(said("source", json!("Log")), @r#"`source`: expected one of "Nowhere", found string "Log""#);
}
