//! The table of settings: flags, variables, the configuration file and the reference are derived from it.

use std::fmt;

use open_agent::Provider;
use serde_json::Map;

/// A setting.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Setting {
    /// The name in the configuration file.
    pub key: &'static str,
    /// The environment variable.
    pub variable: &'static str,
    /// The flag, without dashes. Secrets have none: other programs can read a command line.
    pub flag: Option<&'static str>,
    /// The kind of value.
    pub kind: Kind,
    /// The default, in words.
    pub default: &'static str,
    /// The description.
    pub about: &'static str,
}

/// The kind of a setting's value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number, at least 1.
    Integer,
    /// A list of strings, separated by commas in a variable and a flag.
    List,
    /// A number, at least 0.
    Number,
    /// Members of a JSON object; a table in the file.
    Object,
    /// A path. A leading `~` is the home folder.
    Path,
    /// A string that is never shown.
    Secret,
    /// `true` or `false`.
    Switch,
    /// A string.
    Text,
}

/// The value of a setting.
#[derive(Clone, Eq, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Of [`Kind::Integer`].
    Integer(u64),
    /// Of [`Kind::List`].
    List(Vec<String>),
    /// Of [`Kind::Number`], as written.
    Number(String),
    /// Of [`Kind::Object`].
    Object(Map<String, serde_json::Value>),
    /// Of [`Kind::Secret`].
    Secret(String),
    /// Of [`Kind::Switch`].
    Switch(bool),
    /// Of all other kinds.
    Text(String),
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Value {
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Integer(number) => number.to_string(),
            Self::List(list) => list.join(", "),
            Self::Number(text) | Self::Text(text) => text.clone(),
            Self::Object(members) => serde_json::Value::from(members.clone()).to_string(),
            Self::Secret(_) => "****".to_owned(),
            Self::Switch(is_on) => is_on.to_string(),
        }
    }
}

/// All settings, in the order of the reference.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "model",
        variable: "OPEN_AGENT_MODEL",
        flag: Some("model"),
        kind: Kind::Text,
        default: "the server's first model that is not an embedding model",
        about: "the model",
    },
    Setting {
        key: "base_url",
        variable: "OPEN_AGENT_BASE_URL",
        flag: Some("base-url"),
        kind: Kind::Text,
        default: "the first of `servers` that answers",
        about: "the base URL of the server, including `/v1`",
    },
    Setting {
        key: "servers",
        variable: "OPEN_AGENT_SERVERS",
        flag: Some("servers"),
        kind: Kind::List,
        default: "the default addresses of local servers on this machine",
        about: "URLs to try if `base_url` is not set: the first server that answers is used; `KIND=URL` also sets its kind",
    },
    Setting {
        key: "provider",
        variable: "OPEN_AGENT_PROVIDER",
        flag: Some("provider"),
        kind: Kind::Text,
        default: "inferred from the address",
        about: "the kind of server, such as `LM Studio` or `llama.cpp`, so that its quirks are handled",
    },
    Setting {
        key: "api_key",
        variable: "OPEN_AGENT_API_KEY",
        flag: None,
        kind: Kind::Secret,
        default: "none",
        about: "the API key, sent only to this server",
    },
    Setting {
        key: "system",
        variable: "OPEN_AGENT_SYSTEM",
        flag: Some("system"),
        kind: Kind::Text,
        default: "none",
        about: "the system prompt",
    },
    Setting {
        key: "temperature",
        variable: "OPEN_AGENT_TEMPERATURE",
        flag: Some("temperature"),
        kind: Kind::Number,
        default: "the server's",
        about: "the sampling temperature, from 0 to 2",
    },
    Setting {
        key: "top_p",
        variable: "OPEN_AGENT_TOP_P",
        flag: Some("top-p"),
        kind: Kind::Number,
        default: "the server's",
        about: "the share of likely tokens from which the next one is chosen, above 0 and up to 1",
    },
    Setting {
        key: "seed",
        variable: "OPEN_AGENT_SEED",
        flag: Some("seed"),
        kind: Kind::Integer,
        default: "the server's, usually a random one",
        about: "the seed of sampling: with the same one, many servers repeat an answer",
    },
    Setting {
        key: "extra_body",
        variable: "OPEN_AGENT_EXTRA_BODY",
        flag: Some("extra-body"),
        kind: Kind::Object,
        default: "none",
        about: "members for every request that no setting has, such as `min_p` and `top_k`, for servers that know them",
    },
    Setting {
        key: "max_tokens",
        variable: "OPEN_AGENT_MAX_TOKENS",
        flag: Some("max-tokens"),
        kind: Kind::Integer,
        default: "the server's",
        about: "the maximum length of an answer, in tokens",
    },
    Setting {
        key: "thinking",
        variable: "OPEN_AGENT_THINKING",
        flag: Some("thinking"),
        kind: Kind::Choice(&["on", "off", "minimal", "low", "medium", "high", "xhigh", "max"]),
        default: "the model's",
        about: "how much the model thinks, if it can; needs a `provider`",
    },
    Setting {
        key: "context",
        variable: "OPEN_AGENT_CONTEXT",
        flag: Some("context"),
        kind: Kind::Integer,
        default: "unknown: nothing is dropped",
        about: "the model's context size, in tokens; older parts of a longer conversation are left out",
    },
    Setting {
        key: "mode",
        variable: "OPEN_AGENT_MODE",
        flag: Some("mode"),
        kind: Kind::Choice(&["ask", "reads", "all", "plan"]),
        default: "reads",
        about: "which tool calls run without asking: none (`ask`), those that only read (`reads`), or `all`; `plan` runs no calls",
    },
    Setting {
        key: "tools",
        variable: "OPEN_AGENT_TOOLS",
        flag: Some("tools"),
        kind: Kind::List,
        default: "none",
        about: "built-in tools: `files:DIR` lists, reads and searches the files in a folder, and changes nothing",
    },
    Setting {
        key: "mcp",
        variable: "OPEN_AGENT_MCP",
        flag: Some("mcp"),
        kind: Kind::Path,
        default: "none",
        about: "a JSON file with `mcpServers`, in the format of editors; adds the tools of these servers",
    },
    Setting {
        key: "max_rounds",
        variable: "OPEN_AGENT_MAX_ROUNDS",
        flag: Some("max-rounds"),
        kind: Kind::Integer,
        default: "25",
        about: "the maximum number of rounds of tool calls per prompt",
    },
    Setting {
        key: "sessions",
        variable: "OPEN_AGENT_SESSIONS",
        flag: Some("sessions"),
        kind: Kind::Path,
        default: "`sessions` in the program's data folder",
        about: "where sessions are stored: a folder of text files, or a database file that ends in `.sqlite`",
    },
    Setting {
        key: "token",
        variable: "OPEN_AGENT_TOKEN",
        flag: None,
        kind: Kind::Secret,
        default: "none: `oa serve` listens on this machine only",
        about: "the token that clients of `oa serve` must send, as `authorization: Bearer TOKEN`",
    },
    Setting {
        key: "color",
        variable: "OPEN_AGENT_COLOR",
        flag: Some("color"),
        kind: Kind::Choice(&["auto", "always", "never"]),
        default: "auto: at a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`",
        about: "colors and other styles",
    },
    Setting {
        key: "stand_in",
        variable: "OPEN_AGENT_STAND_IN",
        flag: Some("stand-in"),
        kind: Kind::Switch,
        default: "false",
        about: "a built-in scripted model, to try everything without a server",
    },
];

/// Returns the setting with this name.
pub(super) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

impl Setting {
    /// Returns a value of this setting as it is shown: without secrets, also in addresses.
    pub(super) fn shown(&self, value: &Value) -> String {
        match value {
            Value::Text(url) if self.key == "base_url" => masked(url),
            Value::List(urls) if self.key == "servers" => {
                urls.iter().map(|url| masked(url)).collect::<Vec<_>>().join(", ")
            }
            value => value.shown(),
        }
    }

    /// Parses the value of a flag or a variable.
    pub(super) fn parse(&self, told: &[String]) -> Result<Value, String> {
        let one = told.last().map(String::as_str).unwrap_or_default();
        self.check(one)?;
        Ok(match self.kind {
            Kind::Choice(words) if words.contains(&one) => Value::Text(one.to_owned()),
            Kind::Choice(words) => {
                return Err(format!("{one:?} is not one of {}", words.join(", ")));
            }
            Kind::Integer => match one.parse() {
                Ok(number) if number > 0 || self.key == "seed" => Value::Integer(number),
                _ if self.key == "seed" => return Err(format!("{one:?} is not a whole number")),
                _ => return Err(format!("{one:?} is not a whole number above 0")),
            },
            Kind::List => {
                let words = told.iter().flat_map(|told| told.split(','));
                let words = words.map(str::trim).filter(|word| !word.is_empty());
                Value::List(words.map(str::to_owned).collect())
            }
            Kind::Number => match one.parse::<f64>() {
                Ok(number) if number.is_finite() && number >= 0.0 => Value::Number(one.to_owned()),
                _ => return Err(format!("{one:?} is not a number of at least 0")),
            },
            Kind::Object => {
                let members = serde_json::from_str(one).map_err(|error| {
                    let error = error.to_string().replace(" at line 1 ", " at ");
                    format!(r#"expected JSON like {{"min_p": 0.05}}: {error}"#)
                })?;
                object(members)?
            }
            Kind::Path | Kind::Text => Value::Text(one.to_owned()),
            Kind::Secret => Value::Secret(one.to_owned()),
            Kind::Switch => match one {
                "true" | "1" | "yes" | "on" => Value::Switch(true),
                "false" | "0" | "no" | "off" => Value::Switch(false),
                _ => return Err(format!("{one:?} is neither true nor false")),
            },
        })
    }
}

impl Setting {
    /// Checks the values that a client would refuse later, where nothing is known about their place.
    fn check(&self, told: &str) -> Result<(), String> {
        match self.key {
            "max_tokens" if told.parse::<u64>().is_ok_and(|it| u32::try_from(it).is_err()) => {
                Err(format!("{told} is too large"))
            }
            "provider" => told.parse::<Provider>().map(|_| ()).map_err(|error| error.to_string()),
            "temperature" if told.parse::<f64>().is_ok_and(|it| it > 2.0) => {
                Err(format!("{told} is not a number from 0 to 2"))
            }
            "top_p" if told.parse::<f32>().is_ok_and(|it| !(it > 0.0 && it <= 1.0)) => {
                Err(format!("{told} is not a number above 0 and up to 1"))
            }
            _ => Ok(()),
        }
    }
}

/// Settings that servers know by the same name, in the same form.
const MEMBERS: [&str; 4] = ["max_tokens", "seed", "temperature", "top_p"];

/// Returns members of a request, unless they would break it. A setting among them was meant to be one: in TOML, what
/// follows the head of a table is part of the table. It could be a key, or override what `/model` says.
pub(super) fn object(members: Map<String, serde_json::Value>) -> Result<Value, String> {
    let is_meant = |name: &str| find(name).is_some() && !MEMBERS.contains(&name);
    for (name, value) in &members {
        if is_meant(name) {
            return Err(format!(
                "{name} is a setting, and not a member of a request: set it outside"
            ));
        }
        if name == "messages" || (name == "stream" && *value != false) {
            return Err(format!("{name} is not to be set"));
        }
    }
    Ok(Value::Object(members))
}

/// Returns a URL without what may be a password or a key. A client refuses such a URL, but it can be set.
fn masked(url: &str) -> String {
    let begin = url.rfind('@').unwrap_or(0);
    let end = url.find(['?', '#']).map_or(url.len(), |at| at + 1);
    if end <= begin {
        // It is unclear which part is which.
        return "****".to_owned();
    }
    let hidden = |is_hidden| if is_hidden { "****" } else { "" };
    format!("{}{}{}", hidden(begin > 0), &url[begin..end], hidden(end < url.len()))
}
