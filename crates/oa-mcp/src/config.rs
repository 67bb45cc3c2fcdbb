use oa_mcp_data::{ConfiguredServer, read_config};

use crate::error::Error;
use crate::server::McpServer;
use crate::servers::Servers;

impl Servers {
    /// Reads servers from the JSON that editors use: an object `mcpServers` (or `servers`) that maps names to servers,
    /// each with `command`, `args`, `env` and `cwd`, or with `url` and `headers`.
    ///
    /// In all of these, `${NAME}` and `${env:NAME}` are replaced by the value that `variable` returns for the name, and
    /// `${NAME:-text}` falls back to the text if it returns `None`. Nothing else is read from the environment. Servers
    /// marked `disabled` or not `enabled` are left out, and settings that are not listed here are ignored. Comments and
    /// trailing commas are allowed. The values of `env` and `headers` count as secrets.
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
        let mut servers = Self::new();
        for (name, server) in read_config(text, &variable).map_err(Error::config)? {
            let server = configured(&name, server);
            servers = servers.add(server.map_err(|error| error.of(format_args!("server {name}")))?);
        }
        Ok(servers)
    }
}

fn configured(name: &str, server: ConfiguredServer) -> Result<McpServer, Error> {
    match server {
        ConfiguredServer::Stdio { command, args, env, dir } => {
            let mut server = McpServer::stdio(name, command).args(args);
            for (name, value) in env {
                server = server.env(name, value);
            }
            Ok(match dir {
                Some(dir) => server.current_dir(dir),
                None => server,
            })
        }
        #[cfg(feature = "http")]
        ConfiguredServer::Http { url, headers } => {
            let mut server = McpServer::http(name, url);
            for (name, value) in headers {
                server = server.header(name, value)?;
            }
            Ok(server)
        }
        #[cfg(not(feature = "http"))]
        ConfiguredServer::Http { .. } => Err(Error::config("a `url` needs the feature `http`")),
    }
}
