use std::{error, fmt};

/// Marks a transport error as permanent: sending the request again gives the same error.
///
/// A client retries a request when the transport fails before the answer. It does not if this mark is among the
/// [sources](error::Error::source) of the transport's error.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Permanent;

impl Permanent {
    /// Creates the mark.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// Returns true if the error or one of its sources is this mark.
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
        f.write_str("permanent error: retrying cannot succeed")
    }
}

impl error::Error for Permanent {}
