use std::fmt;

/// How much of a model's own text is quoted back to it, in characters.
const LENGTH: usize = 60;

/// The beginning of a text, on one line.
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
