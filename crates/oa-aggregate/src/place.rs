/// The text, the thinking, or the arguments of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    Text,
    Thinking,
    Arguments(usize),
}

/// The start and the end of a piece in its place, in bytes.
pub(crate) type Span = (usize, usize);
