//! Validated settings: checked once at the edge, so the inside never checks again.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// The name of a model: not empty, no control characters.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ModelName(Box<str>);

impl ModelName {
    /// Validates a model name, trimming whitespace around it.
    ///
    /// # Errors
    ///
    /// `Config` if it is empty or contains control characters.
    pub fn new(name: impl AsRef<str>) -> Result<Self, Error> {
        let name = name.as_ref().trim();
        if name.is_empty() {
            return Err(Error::config("the model name is empty"));
        }
        if name.contains(char::is_control) {
            return Err(Error::config("the model name contains control characters"));
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

/// The URL to which paths such as `/chat/completions` are appended, without a trailing slash.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct BaseUrl(Box<str>);

impl BaseUrl {
    /// Validates a base URL.
    ///
    /// # Errors
    ///
    /// `Config` unless it starts with `http://` or `https://`, has a host, and has no user name, query,
    /// fragment, whitespace or control characters.
    pub fn new(url: impl AsRef<str>) -> Result<Self, Error> {
        Self::of(url.as_ref().trim())
    }

    /// Not generic, so it is compiled once.
    fn of(url: &str) -> Result<Self, Error> {
        let refuse = |why: &str| Err(Error::config(format!("the base URL {why}: {}", shown(url))));
        if url.contains(|character: char| character.is_control() || character.is_whitespace()) {
            return refuse("contains whitespace or control characters");
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            return refuse("must begin with http:// or https://");
        };
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "http" && scheme != "https" {
            return refuse("must begin with http:// or https://");
        }
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        if authority.contains('@') {
            return refuse("contains a user name or password (use api_key or header instead)");
        }
        if rest.contains(['?', '#']) {
            return refuse("must not have a query or fragment");
        }
        // Only an address in brackets contains colons.
        let end = match authority.find(']') {
            Some(bracket) if authority.starts_with('[') => bracket + 1,
            _ => authority.find(':').unwrap_or(authority.len()),
        };
        let (host, port) = authority.split_at(end);
        if host.is_empty() {
            return refuse("has no host");
        }
        let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if name.is_empty() || name.contains(['[', ']']) {
            return refuse("has an invalid host");
        }
        // `parse` also accepts a sign.
        let is_port = |port: &str| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
        };
        if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
            return refuse("has an invalid port (must be 0 to 65535)");
        }
        Ok(Self(format!("{scheme}://{authority}{}", path.trim_end_matches('/')).into()))
    }

    /// Returns the URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the connection is encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.0.starts_with("https:")
    }
}

/// Returns a URL that is safe to show: anything that may be a password or key is masked.
fn shown(url: &str) -> String {
    let (user, query) = (url.rfind('@'), url.find(['?', '#']));
    let text = match (user, query) {
        // A `?` or `#` in a password, or an `@` in a query: it is unclear which part may be shown.
        (Some(user), Some(query)) if query < user => "****".to_owned(),
        (user, query) => {
            let hidden = |is_there| if is_there { "****" } else { "" };
            let address = &url[user.unwrap_or(0)..query.map_or(url.len(), |query| query + 1)];
            format!("{}{address}{}", hidden(user.is_some()), hidden(query.is_some()))
        }
    };
    // Cut last: a part of a password is not recognized.
    format!("{:?}", text.chars().take(200).collect::<String>())
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

/// Implements the text conversions of both types.
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

/// The sampling temperature, from 0 (almost deterministic) to 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature(f32);

impl Temperature {
    /// Validates a temperature.
    ///
    /// # Errors
    ///
    /// `Config` unless it is a number from 0 to 2.
    pub fn new(value: f32) -> Result<Self, Error> {
        if (0.0..=2.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(Error::config(format!("temperature must be from 0 to 2, not {value}")))
        }
    }

    /// Returns the value.
    #[must_use]
    pub fn value(self) -> f32 {
        self.0
    }
}
