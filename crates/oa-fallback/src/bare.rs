use oa_json::{LenientReader, LenientValue, Limits};

/// The text that a dialect allows without quotes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Bare {
    /// Everything but commas, brackets, double quotes, `=` and line breaks.
    Text,
    /// Words with blanks between them.
    Words,
}

impl Bare {
    /// Creates a reader of values with such text.
    pub(crate) fn reader(self, text: &str) -> LenientReader<'_> {
        LenientReader::with_limits(text, limits()).words(match self {
            Self::Text => |c| !matches!(c, ',' | '[' | ']' | '{' | '}' | '"' | '=' | '\n' | '\r'),
            Self::Words => |c| {
                c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_' | ' ' | '/' | '%' | '@')
            },
        })
    }
}

/// Reads one value that is the whole text.
pub(crate) fn whole(text: &str) -> Result<LenientValue, String> {
    LenientValue::read(text, limits()).map_err(|error| error.to_string())
}

/// Returns the limits of readers: none. The scanner knows how much memory is left, and checks before a call is read
/// that its value fits.
pub(crate) fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.held_bytes = usize::MAX;
    limits
}
