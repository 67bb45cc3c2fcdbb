use oa_mcp_data::fill_variables;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::server::McpServer;
use crate::servers::Servers;

/// One server in a configuration file. Editor-specific settings are ignored.
#[derive(Deserialize)]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Map<String, Value>,
    cwd: Option<String>,
    #[serde(alias = "serverUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(rename = "type", alias = "transport")]
    of: Option<String>,
    #[serde(default)]
    disabled: bool,
}

impl Servers {
    /// Reads servers from the JSON that editors use: an object `mcpServers` (or `servers`) that maps names to servers,
    /// each with `command`, `args`, `env` and `cwd`, or with `url` and `headers`.
    ///
    /// In all of these, `${NAME}` and `${env:NAME}` are replaced by the value that `variable` returns for the name, and
    /// `${NAME:-text}` falls back to the text if it returns `None`. Nothing else is read from the environment. Servers
    /// marked `disabled` are left out, and settings that are not listed here are ignored. The values of `env` and
    /// `headers` count as secrets.
    ///
    /// ```
    /// use oa_mcp::Servers;
    ///
    /// let text = r#"{ "mcpServers": {
    ///     "github": { "command": "github-mcp-server", "args": ["stdio"], "env": { "GITHUB_TOKEN": "${TOKEN}" } }
    /// } }"#;
    /// let servers = Servers::from_json(text, |name| (name == "TOKEN").then(|| "ghp_0123456789".to_owned()))?;
    /// assert_eq!(servers.servers()[0].name(), "github");
    /// assert!(!format!("{servers:?}").contains("ghp_0123456789"));
    ///
    /// let error = Servers::from_json(text, |_| None).unwrap_err();
    /// assert_eq!(error.to_string(), "server github: the variable TOKEN is not set");
    /// # Ok::<(), oa_mcp::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Config`: the JSON is invalid or has another form, a server has neither a command nor a URL, a variable is not
    /// set, a server uses the old SSE transport (`"type": "sse"`), or a URL is given without the feature `http`.
    pub fn from_json(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let not_json = |error: serde_json::Error| {
            Error::config(format!("the configuration is not valid JSON (line {})", error.line()))
        };
        // Some editors on Windows begin a file with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let config: Value = serde_json::from_str(text).map_err(not_json)?;
        let servers = config.get("mcpServers").or_else(|| config.get("servers"));
        let Some(Value::Object(entries)) = servers else {
            return Err(Error::config("the configuration has no `mcpServers` object"));
        };
        let mut servers = Self::new();
        for (name, entry) in entries {
            let at = |error: Error| error.of(format_args!("server {name}"));
            // The parser's message may quote a value, which may be a secret.
            let entry = Entry::deserialize(entry)
                .map_err(|_| at(Error::config("a setting has the wrong type")))?;
            if !entry.disabled {
                servers = servers.add(read(name, entry, &variable).map_err(at)?);
            }
        }
        Ok(servers)
    }
}

fn read(
    name: &str,
    entry: Entry,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<McpServer, Error> {
    let fill = |text: &str| fill_variables(text, variable).map_err(Error::config);
    let pairs = |map: Map<String, Value>| -> Result<Vec<(String, String)>, Error> {
        map.into_iter()
            .map(|(name, value)| match value {
                Value::String(text) => Ok((name, fill(&text)?)),
                Value::Bool(_) | Value::Number(_) => Ok((name, value.to_string())),
                _ => Err(Error::config(format!(
                    "the value of {name} must be a string, a number or a boolean"
                ))),
            })
            .collect()
    };
    if entry.of.as_deref() == Some("sse") {
        return Err(Error::config("the transport sse is not supported: use streamable HTTP"));
    }
    if let Some(command) = entry.command {
        let args = entry.args.iter().map(|arg| fill(arg)).collect::<Result<Vec<_>, _>>()?;
        let mut server = McpServer::stdio(name, fill(&command)?).args(args);
        for (name, value) in pairs(entry.env)? {
            server = server.env(name, value);
        }
        if let Some(dir) = entry.cwd {
            server = server.current_dir(fill(&dir)?);
        }
        return Ok(server);
    }
    let Some(url) = entry.url else {
        return Err(Error::config("neither `command` nor `url` is set"));
    };
    #[cfg(feature = "http")]
    {
        let mut server = McpServer::http(name, fill(&url)?);
        for (name, value) in pairs(entry.headers)? {
            server = server.header(name, value)?;
        }
        Ok(server)
    }
    #[cfg(not(feature = "http"))]
    {
        let _ = (url, entry.headers);
        Err(Error::config("a `url` needs the feature `http`"))
    }
}
