use std::{error, fmt};

/// Marks an error of a transport as one that comes again however often the request is sent.
///
/// A client retries a request when a transport fails before the answer. With this anywhere among the
/// [sources](error::Error::source) of the transport's error it does not.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Permanent;

impl Permanent {
    /// Creates the mark.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// Returns whether an error, or one of its sources, is this mark.
    #[must_use]
    pub fn marks(error: &(dyn error::Error + 'static)) -> bool {
        let mut next = Some(error);
        while let Some(error) = next {
            if error.is::<Self>() {
                return true;
            }
            next = error.source();
        }
        false
    }
}

impl fmt::Display for Permanent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sending it again gives the same error")
    }
}

impl error::Error for Permanent {}
