/// A person's answer to a question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Answer<'a> {
    Always,
    /// With the reason, which may be empty.
    No(&'a str),
    /// Shows all of a call that was cut.
    Show,
    Yes,
}

impl<'a> Answer<'a> {
    /// Reads a line; `None` if it is no answer.
    pub(crate) fn read(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let word = word.trim_end_matches([',', '.', ':', '!']).to_ascii_lowercase();
        match (&*word, rest.trim()) {
            ("n" | "no", reason) => Some(Self::No(reason)),
            // Only alone: `a shorter answer` and `yes but not that` are no consent.
            ("a" | "always", "") => Some(Self::Always),
            ("s" | "show", "") => Some(Self::Show),
            ("y" | "yes", "") => Some(Self::Yes),
            _ => None,
        }
    }
}
