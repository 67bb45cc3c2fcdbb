use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::syntax::{Doubt, Syntax};

/// Reads truncated or slightly broken JSON whose meaning is unambiguous.
///
/// At the end of the text, open strings, arrays and objects are closed; a member without a value is dropped. Besides
/// JSON, it accepts code fences around the value, comments, extra commas, single quotes, unquoted names, line breaks in
/// strings, `\'`, half a surrogate pair (as U+FFFD), and Python's `True`, `False` and `None`. Valid JSON gives the same
/// value as with serde_json.
///
/// Everything else is ambiguous and an error: an escape unknown to JSON (`C:\Temp`), unquoted text, a missing
/// comma, a truncated word (`tru`), anything but white space, comments and fences after the value. Time is
/// linear in the text.
///
/// ```
/// use oa_json::{Limits, repair};
/// use serde_json::json;
///
/// let cut = "```json\n{'city': 'Oslo', \"days\": [1, 2,], // the rest";
/// assert_eq!(repair(cut, Limits::default())?, json!({"city": "Oslo", "days": [1, 2]}));
/// assert!(repair(r#"{"path": "C:\Temp"}"#, Limits::default()).is_err());
/// # Ok::<(), oa_json::Error>(())
/// ```
///
/// # Errors
///
/// [`Missing`](ErrorKind::Missing) if there is no value, [`Ambiguous`](ErrorKind::Ambiguous) if something else
/// follows it, [`TooDeep`](ErrorKind::TooDeep) and [`TooLarge`](ErrorKind::TooLarge) if it exceeds a limit, and
/// [`Syntax`](ErrorKind::Syntax) for everything else.
pub fn repair(text: &str, limits: Limits) -> Result<Value> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '`');
    // No JSON value starts with these words, so they can only be the language of a fence.
    let text =
        ["json5", "jsonc", "json"].into_iter().find_map(|word| without(text, word)).unwrap_or(text);
    let mut syntax = Syntax::new(text, Doubt::Resolve, limits);
    if syntax.rest().trim_end_matches('`').is_empty() {
        return Err(Error::new(ErrorKind::Missing, "expected a JSON value, found nothing"));
    }
    let value = syntax.value()?;
    // Only the fence may follow. With another value or prose, `end` reports that the text is ambiguous.
    while syntax.take('`') {}
    syntax.end()?;
    Ok(value)
}

/// Reads JSON, [repaired](repair) if serde_json rejects it. What cannot be repaired either becomes a string.
#[must_use]
pub fn read_or_text(text: &str) -> Value {
    let repaired = |_| repair(text, Limits::default());
    text.parse().or_else(repaired).unwrap_or_else(|_| text.into())
}

/// Returns the text after this word, in capital or small letters.
fn without<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}
