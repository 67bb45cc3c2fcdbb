//! Values that are read while they arrive.

use oa_output::{OutputReader, Partial, ResponseFormat};
use serde::Deserialize;
use serde_json::json;

#[test]
fn a_call_after_text_grows_on_its_own() {
    let mut reader = OutputReader::new(1 << 20);
    reader.begin_answer();
    reader.push_text("{\"a\": \"x\"");
    assert!(reader.has_grown() && !reader.has_grown());
    reader.push_call(0, true, "{\"b\": \"y\"");
    assert_eq!(reader.json().value(), Some(&json!({ "b": "y" })));
    assert!(reader.has_grown() && !reader.has_grown());
}

/// Other calls are not the value, and neither is a second call of the output tool.
#[test]
fn the_first_call_of_the_output_is_read() {
    let mut reader = OutputReader::new(1 << 20);
    reader.begin_answer();
    reader.push_call(0, false, "{\"path\": \"x\"}");
    assert_eq!(reader.json().value(), None);
    reader.push_call(1, true, "{\"a\": \"x");
    reader.push_call(2, true, "{\"b\": 1}");
    reader.push_call(0, false, "}");
    // A server tells the name of a call only with its first fragment.
    reader.push_call(1, false, "y\"}");
    assert_eq!(reader.json().value(), Some(&json!({ "a": "xy" })));
}

#[test]
fn each_answer_starts_over() {
    let mut reader = OutputReader::new(1 << 20);
    for number in 1..=3 {
        reader.begin_answer();
        assert_eq!((reader.answer(), reader.json().value()), (number, None));
        assert!(!reader.has_grown());
        reader.push_call(0, true, "{\"a\": 1");
        assert!(reader.has_grown());
    }
}

#[test]
fn partial_values_have_their_type() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Place {
        city: String,
        people: Option<u32>,
    }
    let format = ResponseFormat::new("place", json!({ "type": "object" }));
    let object = json!({ "city": "Os" });
    let partial = Partial::<Place>::new(&object, &object, &format, 2);
    assert_eq!((partial.value(), partial.answer()), (&object, 2));
    assert_eq!(partial.get(), Some(Place { city: "Os".to_owned(), people: None }));
    // Members that the type needs are still missing.
    let empty = json!({});
    assert_eq!(Partial::<Place>::new(&empty, &empty, &format, 2).get(), None);
}
