use std::fmt;

/// The longest quote of a model's own text in a message, in characters.
const LENGTH: usize = 60;

/// The start of a text, escaped onto one line.
pub(crate) struct Excerpt<'a>(&'a str);

impl<'a> Excerpt<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self(text)
    }
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, dots) = match self.0.char_indices().nth(LENGTH) {
            Some((end, _)) => (&self.0[..end], "..."),
            None => (self.0, ""),
        };
        write!(f, "{}{dots}", shown.escape_debug())
    }
}
