use oa_json::{Limits, ObjectFinder, PartialReader};

/// Reads structured output while it arrives, from the text or from a call's arguments.
///
/// ```
/// use oa_output::OutputReader;
/// use serde_json::json;
///
/// let mut reader = OutputReader::new(1 << 20);
/// reader.begin_answer();
/// reader.push_text("It is {\"city\": \"Os");
/// assert!(reader.has_grown());
/// assert_eq!(reader.json().value(), Some(&json!({"city": "Os"})));
/// ```
#[derive(Debug)]
pub struct OutputReader {
    limits: Limits,
    text: ObjectFinder,
    call: PartialReader,
    /// The index of the call that holds the value.
    place: Option<usize>,
    answers: u32,
    /// The revision of `json` that `has_grown` has seen.
    shown: u64,
}

impl OutputReader {
    /// Creates a reader for values of at most `held_bytes` bytes in memory.
    #[must_use]
    pub fn new(held_bytes: usize) -> Self {
        let mut limits = Limits::default();
        limits.held_bytes = held_bytes;
        Self::of_answer(0, limits)
    }

    fn of_answer(answers: u32, limits: Limits) -> Self {
        Self {
            limits,
            text: ObjectFinder::with_limits(limits),
            call: PartialReader::with_limits(limits),
            place: None,
            answers,
            shown: 0,
        }
    }

    /// Starts a new answer and discards the value so far.
    pub fn begin_answer(&mut self) {
        *self = Self::of_answer(self.answers + 1, self.limits);
    }

    /// Reads more of the answer's text.
    pub fn push_text(&mut self, text: &str) {
        self.text.push(text);
    }

    /// Reads a fragment of the arguments of the call with this index. After the first fragment with `is_output`, the
    /// value is read from that call.
    pub fn push_call(&mut self, call: usize, is_output: bool, fragment: &str) {
        if self.place.is_none() && is_output {
            self.place = Some(call);
            // From here on, `json` is another reader, whose revisions begin anew.
            self.shown = 0;
        }
        if self.place == Some(call) {
            self.call.push(fragment);
        }
    }

    /// Returns true if the value has grown since the last call of this method.
    pub fn has_grown(&mut self) -> bool {
        let revision = self.json().revision();
        std::mem::replace(&mut self.shown, revision) != revision
    }

    /// Returns the JSON reader, which holds the value so far.
    #[must_use]
    pub fn json(&self) -> &PartialReader {
        if self.place.is_some() { &self.call } else { self.text.object() }
    }

    /// Returns the number of the answer, from 1.
    #[must_use]
    pub fn answer(&self) -> u32 {
        self.answers
    }
}
