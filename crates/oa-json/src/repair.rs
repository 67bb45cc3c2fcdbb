use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::syntax::{Doubt, Syntax};

/// Reads JSON that is cut off or slightly broken as what was plainly meant.
///
/// Where the text ends, open strings, arrays and objects are closed; a member without its value is dropped. Beside
/// JSON it understands code fences around the value, comments, superfluous commas, single quotes, bare names, line
/// breaks in strings, `\'`, half a surrogate pair (as U+FFFD), and Python's `True`, `False` and `None`. JSON that is
/// valid is read as serde_json reads it.
///
/// What remains is an error, because it is not plain what was meant: an escape that JSON does not have (`C:\Temp`),
/// text without quotes, a missing comma, a word that is cut off (`tru`), anything but white space and fences behind the
/// value. Time is linear in the text.
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
    let text = text.strip_prefix("json").unwrap_or(text);
    let mut syntax = Syntax::new(text, Doubt::Resolve, limits);
    if syntax.rest().trim_end_matches('`').is_empty() {
        return Err(Error::new(ErrorKind::Missing, "there is no value"));
    }
    let value = syntax.value()?;
    // Whatever follows may be another value or prose: then nothing is plain.
    while syntax.take('`') {}
    syntax.end()?;
    Ok(value)
}
