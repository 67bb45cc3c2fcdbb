//! A server's text, made safe to show.

use std::fmt;

use oa_chat::Endpoint;
use oa_redact::Secrets;

/// The length of a server's text that is shown, in characters.
const SHOWN: usize = 240;

/// Masks secrets in a server's text: a server may repeat the key that it received.
pub(crate) struct Quotes(Secrets);

impl Quotes {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        Self(endpoint.secrets().clone())
    }

    /// Returns the secrets that are masked.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.0
    }

    /// Returns the text as one bounded line, without secrets and control characters.
    pub(crate) fn quote(&self, text: &str) -> String {
        self.0.excerpt(text, SHOWN)
    }
}

impl fmt::Debug for Quotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quotes").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_mask_secrets_and_strip_escapes() {
        let endpoint = Endpoint::builder()
            .base_url("http://localhost/v1")
            .api_key("sk-a-secret-of-mine")
            .header("x-token", "another-one-1234")
            .header("x-short", "1")
            .build()
            .unwrap();
        let quotes = Quotes::new(&endpoint);
        let quoted = quotes.quote("1 wrong\nkey sk-a-secret-of-mine\u{1b}[31m, another-one-1234");
        assert_eq!(quoted, "1 wrong key ****, ****");
        assert_eq!(quotes.quote(&"\u{e4}".repeat(300)).chars().count(), SHOWN + 3);
    }
}
