//! Values that are read while they arrive.

use oa_output::OutputReader;
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
