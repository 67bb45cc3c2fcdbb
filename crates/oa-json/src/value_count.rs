/// Returns an upper bound of the number of values and names in a JSON text, without parsing it: to refuse a text whose
/// values would take far more memory than the text, such as `[0,0,0,..]`.
///
/// Text that is not JSON may be miscounted.
///
/// ```
/// assert_eq!(oa_json::count_values(br#"{"a": [1, "2,3"]}"#), 5);
/// ```
#[must_use]
pub fn count_values(json: &[u8]) -> usize {
    // Each value or name except the first follows one of the four separators.
    let (mut count, mut is_text, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b':' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}
