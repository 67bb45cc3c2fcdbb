use std::fmt;

/// The reason why a text could not be read.
///
/// `Display` starts with the path of the failed value, if there is one: `` `stops[2].name`: `x` is not a JSON value ``.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, Eq, PartialEq)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: String,
}

/// The kinds of [`Error`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text has more than one possible meaning.
    Ambiguous,
    /// An object has two members with the same name.
    Duplicate,
    /// The text contains no JSON value.
    Missing,
    /// The text is not JSON, and not close enough to it to be repaired.
    Syntax,
    /// Arrays and objects are nested too deeply.
    TooDeep,
    /// The value takes more memory than [`Limits`](crate::Limits) allow.
    TooLarge,
    /// The text ends before the value is complete.
    Unfinished,
}

/// A result with the [`Error`] of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), path: String::new() }))
    }

    pub(crate) fn syntax(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Syntax, message)
    }

    pub(crate) fn too_deep() -> Self {
        let message =
            format!("arrays and objects are nested more than {} levels deep", crate::MAX_DEPTH);
        Self::new(ErrorKind::TooDeep, message)
    }

    pub(crate) fn too_large(bytes: usize) -> Self {
        Self::new(ErrorKind::TooLarge, format!("the value takes more than {bytes} bytes of memory"))
    }

    pub(crate) fn at(mut self, path: String) -> Self {
        self.0.path = path;
        self
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the path to the member or item that could not be read, such as `city` or `stops[2].name`. It is empty
    /// for an error about the whole text. Only [`PartialReader`](crate::PartialReader) sets it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.path
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0.path {
            "" => f.write_str(&self.0.message),
            path => write!(f, "`{path}`: {}", self.0.message),
        }
    }
}

impl std::error::Error for Error {}
