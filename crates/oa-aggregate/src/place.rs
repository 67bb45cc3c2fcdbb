/// The text, the thinking, or the arguments of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    Text,
    Thinking,
    Arguments(usize),
}
