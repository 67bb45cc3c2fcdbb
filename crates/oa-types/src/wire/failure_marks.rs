/// The members by which a body without a member `error` says that the request failed (QUIRKS rows 114 and 136).
///
/// ```
/// use oa_types::wire::FailureMarks;
///
/// let mut marks = FailureMarks::default();
/// marks.note("message", "\"System is busy\"");
/// assert!(!marks.is_failure());
/// marks.note("code", "50505");
/// assert!(marks.is_failure());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct FailureMarks {
    /// One of the members says it alone.
    says_so: bool,
    has_code: bool,
    has_message: bool,
}

impl FailureMarks {
    /// Takes a member of the body: its name, and its value as JSON text. Other members mean nothing.
    pub fn note(&mut self, name: &str, value: &str) {
        let word = value.strip_prefix('"').map_or("", |value| value.trim_end_matches('"'));
        match name {
            "object" | "type" => self.says_so |= word == "error",
            "detail" | "error_code" | "errors" => {
                self.says_so |= !matches!(value, "null" | "false" | "0" | "\"\"" | "[]" | "{}");
            }
            // Only together: a message may be anything, and a code may be one of success.
            "message" | "msg" => self.has_message |= !word.is_empty() && !is_success(word),
            "code" | "status" => self.has_code |= is_failed(name, value, word),
            _ => {}
        }
    }

    /// Returns true if the members so far say that the request failed.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.says_so || (self.has_code && self.has_message)
    }
}

fn is_failed(name: &str, value: &str, word: &str) -> bool {
    match value.trim_matches('"').parse::<u64>() {
        Ok(number) => number >= 400,
        Err(_) if name == "code" => !word.is_empty() && !is_success(word),
        // Other words say how far an answer is.
        Err(_) => ["error", "fail", "failed"].iter().any(|it| it.eq_ignore_ascii_case(word)),
    }
}

fn is_success(word: &str) -> bool {
    ["ok", "success"].iter().any(|it| it.eq_ignore_ascii_case(word))
}
