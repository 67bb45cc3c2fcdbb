use oa_output::OutputValidator;

/// Structured output of the turn in progress.
pub(crate) struct Output {
    pub(super) validator: OutputValidator,
    /// The revisions of invalid answers and their corrections. Places would change when a refused answer leaves.
    pub(super) failed: Vec<u64>,
}

impl Output {
    pub(super) fn new(validator: OutputValidator) -> Self {
        Self { validator, failed: Vec::new() }
    }
}
