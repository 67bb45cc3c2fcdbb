use std::fmt;
use std::fs;
use std::io::Read;
use std::path::Path;

use oa_aggregate::ThinkTags;
use oa_types::wire::TokenLimit;
use oa_types::{BaseUrl, ModelName};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::provider::Provider;

/// The version of profiles that is written and read.
const VERSION: u64 = 1;
/// The member that holds the version.
const MARK: &str = "open_agent_profile";
/// Larger files are not profiles.
const LARGEST_FILE: u64 = 64 * 1024;

/// Facts about a server and a model, in a file that the doctor writes and endpoints
/// [read](crate::EndpointBuilder::profile).
///
/// It is JSON that people can read and edit; absent members are unknown. It never contains keys or headers.
///
/// ```
/// use oa_chat::{Endpoint, Provider, ServerProfile};
///
/// # fn main() -> oa_chat::Result<()> {
/// let profile = ServerProfile::from_json(
///     r#"{
///         "open_agent_profile": 1,
///         "base_url": "http://localhost:8000/v1",
///         "model": "qwen3",
///         "provider": "vLLM",
///         "think_tags": "starts_in_thinking"
///     }"#,
/// )?;
/// let server = Endpoint::builder().profile(profile).build()?;
/// assert_eq!(server.provider(), Some(Provider::Vllm));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ServerProfile {
    #[serde(rename = "open_agent_profile")]
    version: u64,
    /// The address that paths are appended to.
    pub base_url: String,
    /// The model that the facts are about.
    pub model: String,
    /// The provider, if it was recognized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// The name of the request member that limits the length of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "token_limit")]
    pub token_limit: Option<TokenLimit>,
    /// `false` if the server rejects requests for usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_for_usage: Option<bool>,
    /// The treatment of think tags in the text.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "think_tags")]
    pub think_tags: Option<ThinkTags>,
    /// `false` if the server rejects requests with tools. Calls are then made in text, and
    /// [`ToolMode::Native`](crate::ToolMode::Native) with tools is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// `true` if the model makes a call when the request forces one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced_calls: Option<bool>,
    /// `true` if the model makes several calls in one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_calls: Option<bool>,
    /// `true` if answers follow a schema: [`ToolMode::Auto`](crate::ToolMode::Auto) then uses one for the calls of a
    /// model without tools. If `false`, structured output puts the schema into the prompt from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<bool>,
    /// The size of the model's context, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

impl ServerProfile {
    /// Creates a profile with only the required facts.
    #[must_use]
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            version: VERSION,
            base_url: base_url.into(),
            model: model.into(),
            provider: None,
            token_limit: None,
            ask_for_usage: None,
            think_tags: None,
            tools: None,
            forced_calls: None,
            parallel_calls: None,
            schema: None,
            context_tokens: None,
        }
    }

    /// Parses the JSON of a profile.
    ///
    /// # Errors
    ///
    /// `Config` if it is not a profile, has a newer version, or contradicts itself.
    pub fn from_json(json: &str) -> Result<Self> {
        let json = json.trim_start_matches('\u{feff}');
        let refuse = |why: fmt::Arguments<'_>| Err(Error::config(format!("the profile {why}")));
        let value: Value = match json.parse() {
            Ok(value) => value,
            Err(error) => return refuse(format_args!("is not JSON: {error}")),
        };
        match value.get(MARK).and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(newer) if newer > VERSION => {
                return refuse(format_args!(
                    "has version {newer}, but this program supports only {VERSION}: update it, or \
                     let the doctor write a new profile"
                ));
            }
            _ => return refuse(format_args!("is invalid: \"{MARK}\": {VERSION} is missing")),
        }
        // Parsed from the text again, because that error has a position.
        let profile: Self = match serde_json::from_str(json) {
            Ok(profile) => profile,
            Err(error) => return refuse(format_args!("cannot be used: {error}")),
        };
        profile.check()?;
        Ok(profile)
    }

    /// Returns the JSON, formatted for people.
    #[must_use]
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("texts, numbers and booleans always serialize") + "\n"
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    ///
    /// `Config` if the file cannot be read, and as [`from_json`](Self::from_json).
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut json = String::new();
        let of_path = |why: &dyn fmt::Display| Error::config(format!("{}: {why}", path.display()));
        let read = fs::File::open(path)
            .and_then(|file| file.take(LARGEST_FILE + 1).read_to_string(&mut json));
        match read {
            Err(error) => Err(of_path(&error)),
            Ok(_) if json.len() as u64 > LARGEST_FILE => Err(of_path(&"too large for a profile")),
            Ok(_) => Self::from_json(&json).map_err(|error| of_path(&error)),
        }
    }

    /// Writes the profile to a file, replacing an existing one.
    ///
    /// # Errors
    ///
    /// `Config` if the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        fs::write(path, self.to_json())
            .map_err(|error| Error::config(format!("{}: {error}", path.display())))
    }

    /// Rejects facts that contradict each other.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::config(format!("the profile {why}")));
        if let Err(error) = BaseUrl::new(&self.base_url) {
            return refuse(format!("has no usable base_url: {error}"));
        }
        if let Err(error) = ModelName::new(&self.model) {
            return refuse(format!("has no usable model: {error}"));
        }
        if self.tools == Some(false) {
            for (name, said) in
                [("forced_calls", self.forced_calls), ("parallel_calls", self.parallel_calls)]
            {
                if said == Some(true) {
                    return refuse(format!("contradicts itself: no tools, but {name}"));
                }
            }
        }
        if self.context_tokens == Some(0) {
            return refuse("has a context of 0 tokens".to_owned());
        }
        Ok(())
    }
}

impl Serialize for Provider {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Provider {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

/// Converts values of other crates to names and back.
macro_rules! words {
    ($name:ident: $type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        mod $name {
            use serde::de::{Deserialize, Deserializer, Error};
            use serde::ser::Serializer;

            use super::$type;

            pub(super) fn serialize<S: Serializer>(
                value: &Option<$type>,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                match value {
                    $(Some($type::$variant) => serializer.serialize_str($word),)+
                    // Kinds without a word here are not known to profiles of this version.
                    _ => serializer.serialize_none(),
                }
            }

            pub(super) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Option<$type>, D::Error> {
                let word = Option::<String>::deserialize(deserializer)?;
                match word.as_deref() {
                    None => Ok(None),
                    $(Some($word) => Ok(Some($type::$variant)),)+
                    Some(other) => Err(D::Error::unknown_variant(other, &[$($word),+])),
                }
            }
        }
    };
}

words!(token_limit: TokenLimit {
    MaxCompletionTokens = "max_completion_tokens",
    MaxTokens = "max_tokens",
});

words!(think_tags: ThinkTags {
    Off = "off",
    Split = "split",
    StartsInThinking = "starts_in_thinking",
});
