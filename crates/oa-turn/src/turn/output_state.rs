/// Structured output of the turn in progress.
#[derive(Clone, Debug)]
pub(super) struct OutputState {
    /// The tool whose calls are answers.
    pub(super) tool: Option<String>,
    /// The revisions of invalid answers and their corrections. Indexes would change when a refused answer is removed.
    pub(super) invalid: Vec<u64>,
}
