/// The status of a stream after a payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StreamStatus {
    /// The server sent `[DONE]`, or the input was finished; whatever follows is ignored.
    Done,
    /// More payloads are expected.
    More,
}
