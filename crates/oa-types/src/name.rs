//! Settings checked once, at the edge, so that the inside never checks again.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// The name of a model: not empty, without control characters.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ModelName(Box<str>);

impl ModelName {
    /// Checks a model's name.
    ///
    /// # Errors
    ///
    /// `Config` if it is empty or holds control characters.
    pub fn new(name: impl AsRef<str>) -> Result<Self, Error> {
        let name = name.as_ref().trim();
        if name.is_empty() {
            return Err(Error::config("the model's name is empty"));
        }
        if name.contains(char::is_control) {
            return Err(Error::config("the model's name has control characters"));
        }
        Ok(Self(name.into()))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address that paths such as `/chat/completions` are appended to, without a trailing slash.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct BaseUrl(Box<str>);

impl BaseUrl {
    /// Checks an address.
    ///
    /// # Errors
    ///
    /// `Config` unless it is `http://` or `https://`, names a host, and has no user name, query,
    /// fragment, white space or control characters.
    pub fn new(url: impl AsRef<str>) -> Result<Self, Error> {
        Self::of(url.as_ref().trim())
    }

    /// Compiled once, whatever the address is given as.
    fn of(url: &str) -> Result<Self, Error> {
        let refuse = |why: &str| Err(Error::config(format!("the base URL {why}: {}", shown(url))));
        if url.contains(|character: char| character.is_control() || character.is_whitespace()) {
            return refuse("has spaces or control characters");
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            return refuse("does not begin with http:// or https://");
        };
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "http" && scheme != "https" {
            return refuse("does not begin with http:// or https://");
        }
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        if authority.contains('@') {
            return refuse("holds a user name or password, which belong into api_key or header");
        }
        if rest.contains(['?', '#']) {
            return refuse("has a query or fragment");
        }
        let host = authority
            .rsplit_once(':')
            .map_or(authority, |(host, port)| if port.ends_with(']') { authority } else { host });
        if host.is_empty() {
            return refuse("names no host");
        }
        let port = authority[host.len()..].strip_prefix(':');
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return refuse("has a port that is no number from 0 to 65535");
        }
        Ok(Self(format!("{scheme}://{authority}{}", path.trim_end_matches('/')).into()))
    }

    /// Returns the address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the connection is to be encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.0.starts_with("https:")
    }
}

/// An address as it may be shown: what may be a password or a key is left out.
fn shown(url: &str) -> String {
    let text: String = url.chars().take(200).collect();
    let text = match text.split_once('?') {
        Some((address, _)) => format!("{address}?****"),
        None => text,
    };
    match text.rsplit_once('@') {
        Some((_, rest)) => format!("\"****@{}\"", rest.escape_debug()),
        None => format!("{text:?}"),
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BaseUrl").field(&self.0).finish()
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What both are to those who know them only as text.
macro_rules! checked_text {
    ($($name:ident),*) => {$(
        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = Error;

            fn try_from(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }
    )*};
}

checked_text!(BaseUrl, ModelName);

/// How freely the model chooses its words: from 0 (hardly) to 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature(f32);

impl Temperature {
    /// Checks a temperature.
    ///
    /// # Errors
    ///
    /// `Config` unless it is a number from 0 to 2.
    pub fn new(value: f32) -> Result<Self, Error> {
        if (0.0..=2.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(Error::config(format!("the temperature is not from 0 to 2: {value}")))
        }
    }

    /// Returns the number.
    #[must_use]
    pub fn value(self) -> f32 {
        self.0
    }
}
