//! The settings of the program: flags, then the environment, then the configuration file, then defaults.

mod error;
mod file;
pub mod reference;
mod setting;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use open_agent::Provider;
use open_agent::types::BaseUrl;
use serde_json::Map;

pub use self::error::SettingsError;
pub use self::setting::{Kind, SETTINGS, Setting, Value};

/// The settings in effect, each with its source.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Settings(
    /// The values from each place that has the setting. The last takes precedence.
    BTreeMap<&'static str, Vec<Entry>>,
);

#[derive(Clone, Eq, PartialEq)]
struct Entry {
    value: Value,
    source: Source,
}

/// The source of a setting.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Source {
    /// An environment variable.
    Environment(&'static str),
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A command-line flag.
    Flag(&'static str),
}

impl Settings {
    /// Merges settings. Flags take precedence over the environment, which takes precedence over the file. Blank
    /// variables count as not set.
    ///
    /// # Errors
    ///
    /// If the file is not TOML, a name is unknown, or a value is invalid for its setting.
    pub fn merge(
        flags: &[(&'static str, Vec<String>)],
        environment: impl Fn(&str) -> Option<String>,
        file: Option<(&Path, &str)>,
    ) -> Result<Self, SettingsError> {
        let mut merged = Self::default();
        if let Some((path, text)) = file {
            for (setting, value, line) in file::read(path, text)? {
                let source = Source::File { path: path.to_owned(), line };
                merged.add(setting, value, source);
            }
        }
        for setting in SETTINGS {
            let told = environment(setting.variable).filter(|told| !told.trim().is_empty());
            let Some(told) = told else { continue };
            let value = setting.parse(&[told.trim().to_owned()]).map_err(|why| {
                SettingsError::new(format!("the variable {}: {why}", setting.variable))
            })?;
            merged.add(setting, value, Source::Environment(setting.variable));
        }
        for (key, told) in flags {
            let Some((setting, flag)) = setting::find(key).and_then(|s| Some((s, s.flag?))) else {
                continue;
            };
            let value = setting
                .parse(told)
                .map_err(|why| SettingsError::new(format!("the flag --{flag}: {why}")))?;
            merged.add(setting, value, Source::Flag(flag));
        }
        Ok(merged)
    }

    fn add(&mut self, setting: &Setting, value: Value, source: Source) {
        self.0.entry(setting.key).or_default().push(Entry { value, source });
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        self.0.get(key)?.last()
    }

    /// Returns the source of a setting; `None` if it has its default.
    #[must_use]
    pub fn source(&self, key: &str) -> Option<&Source> {
        self.entry(key).map(|entry| &entry.source)
    }

    /// Returns the value of a setting, if it is set.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns a setting that is text, a choice or a path.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        if let Value::Text(text) = self.value(key)? { Some(text) } else { None }
    }

    /// Returns a secret.
    #[must_use]
    pub(crate) fn secret(&self, key: &str) -> Option<&str> {
        if let Value::Secret(secret) = self.value(key)? { Some(secret) } else { None }
    }

    /// Returns the API key for a server, if it is for this one.
    ///
    /// A key is for the server that is set where the key is, or else in a place with less precedence: a flag for another
    /// server does not redirect the key. A key without a server is for any that is set.
    ///
    /// # Errors
    ///
    /// If the key is for another server: says so, without the key.
    pub(crate) fn key_for(&self, base_url: &str) -> Result<Option<&str>, String> {
        let (Some(key), Some(source)) = (self.secret("api_key"), self.source("api_key")) else {
            return Ok(None);
        };
        let Some(owner) = self.server_up_to(source) else { return Ok(Some(key)) };
        let (owner, asked) = (origin(owner), origin(base_url));
        if owner.is_some() && owner == asked {
            return Ok(Some(key));
        }
        let name = |origin: Option<String>| origin.unwrap_or_else(|| "another server".to_owned());
        let (owner, asked) = (name(owner), name(asked));
        Err(format!(
            "the API key ({source}) is for {owner} and is not sent to {asked}: to send one there, set both OPEN_AGENT_BASE_URL and OPEN_AGENT_API_KEY"
        ))
    }

    /// Returns the address that is set if places with more precedence than `source` are left out.
    fn server_up_to(&self, source: &Source) -> Option<&str> {
        let text = |key: &str| {
            let mut entries = self.0.get(key)?.iter().rev();
            let entry = entries.find(|entry| entry.source.precedence() <= source.precedence())?;
            if let Value::Text(text) = &entry.value { Some(&**text) } else { None }
        };
        text("base_url").or_else(|| text("provider")?.parse::<Provider>().ok()?.base_url())
    }

    /// Returns a setting that is a whole number.
    #[must_use]
    pub fn integer(&self, key: &str) -> Option<u64> {
        if let Value::Integer(number) = self.value(key)? { Some(*number) } else { None }
    }

    /// Returns a setting that is a number.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<f64> {
        if let Value::Number(text) = self.value(key)? { text.parse().ok() } else { None }
    }

    /// Returns a setting that is a list; empty if it is not set.
    #[must_use]
    pub fn list(&self, key: &str) -> &[String] {
        match self.value(key) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }

    /// Returns a setting that is an object.
    #[must_use]
    pub fn object(&self, key: &str) -> Option<&Map<String, serde_json::Value>> {
        if let Value::Object(members) = self.value(key)? { Some(members) } else { None }
    }

    /// Returns true if a setting is on.
    #[must_use]
    pub fn is_on(&self, key: &str) -> bool {
        self.value(key) == Some(&Value::Switch(true))
    }

    /// Returns the settings in effect, one per line, with their sources and with defaults in parentheses. Secrets are
    /// masked.
    #[must_use]
    pub fn report(&self) -> String {
        let mut report = String::new();
        for setting in SETTINGS {
            let (value, source) = match self.entry(setting.key) {
                Some(Entry { value, source }) => (setting.shown(value), format!("  [{source}]")),
                None => (format!("({})", setting.default), String::new()),
            };
            report.push_str(&format!("{:<12} {value}{source}\n", setting.key));
        }
        report
    }
}

impl Source {
    fn precedence(&self) -> u8 {
        match self {
            Self::File { .. } => 0,
            Self::Environment(_) => 1,
            Self::Flag(_) => 2,
        }
    }
}

/// Returns the scheme, host and port of a server; `None` if the address is invalid.
fn origin(base_url: &str) -> Option<String> {
    let url = BaseUrl::new(base_url).ok()?.as_str().to_ascii_lowercase();
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let default = if scheme == "https" { 443 } else { 80 };
    // The colons of an IPv6 address are within brackets.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse::<u16>().ok()?),
        _ => (authority, default),
    };
    let port = if port == default { String::new() } else { format!(":{port}") };
    Some(format!("{scheme}://{host}{port}"))
}

/// Masks the values of secrets.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("value", &self.value).field("source", &self.source).finish()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(name) => write!(f, "variable {name}"),
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Flag(flag) => write!(f, "flag --{flag}"),
        }
    }
}

#[cfg(test)]
mod tests;
