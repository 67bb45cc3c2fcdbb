use std::fmt;

use http::HeaderValue;

use crate::error::Error;

/// An API key. `Debug` prints a fixed mask; there is no `Display` and no serde.
#[derive(Clone)]
pub struct ApiKey(HeaderValue);

/// The prefix of the key in a header.
const SCHEME: &str = "Bearer ";

impl ApiKey {
    /// Validates a key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidKey`](crate::ErrorKind::InvalidKey) if it is empty or contains anything but visible
    /// ASCII, such as a space, line break or typographic dash. The error does not contain the key.
    pub fn new(key: impl AsRef<str>) -> Result<Self, Error> {
        let key = key.as_ref();
        if key.is_empty() {
            return Err(Error::invalid_key("the API key is empty"));
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::invalid_key(
                "the API key contains characters other than visible ASCII, such as a line break",
            ));
        }
        let mut value = HeaderValue::try_from(format!("{SCHEME}{key}"))
            .expect("visible ASCII is a header value");
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// Returns the key itself, for masking it in other text. Never print it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.to_str().ok().and_then(|value| value.strip_prefix(SCHEME)).unwrap_or_default()
    }

    /// Returns the value of an `Authorization` header: `Bearer` and the key, marked sensitive.
    #[must_use]
    pub fn header_value(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(****)")
    }
}
