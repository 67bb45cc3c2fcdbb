use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::variables::fill_variables;

/// A server of a configuration file. Its variables are filled in.
#[derive(Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a server is a program, or it is at a URL")]
pub enum ConfiguredServer {
    /// A server at a URL.
    Http {
        /// The URL.
        url: String,
        /// The headers, which may be secrets.
        headers: Vec<(String, String)>,
    },
    /// A program.
    Stdio {
        /// The program.
        command: String,
        /// The arguments.
        args: Vec<String>,
        /// The variables of its environment, which may be secrets.
        env: Vec<(String, String)>,
        /// The working directory.
        dir: Option<String>,
    },
}

/// Omits URLs and arguments, and the values of headers and variables: any of them may have keys.
impl fmt::Debug for ConfiguredServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| -> Vec<String> {
            pairs.iter().map(|(name, _)| name.clone()).collect()
        };
        match self {
            Self::Http { headers, .. } => {
                f.debug_struct("Http").field("headers", &names(headers)).finish_non_exhaustive()
            }
            Self::Stdio { command, env, .. } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("env", &names(env))
                .finish_non_exhaustive(),
        }
    }
}

/// One server in a configuration file. Editor-specific settings are ignored.
#[derive(Deserialize)]
struct Entry {
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<Map<String, Value>>,
    cwd: Option<String>,
    #[serde(alias = "serverUrl")]
    url: Option<String>,
    headers: Option<Map<String, Value>>,
    #[serde(rename = "type", alias = "transport")]
    of: Option<String>,
    disabled: Option<bool>,
    enabled: Option<bool>,
}

/// Reads the JSON in which editors configure servers: an object `mcpServers` (or `servers`) that maps names to servers.
/// Returns them with their names, in the order of the file. `variable` returns the value of a variable
/// ([`fill_variables`]). Comments and trailing commas are allowed.
///
/// ```
/// use oa_mcp_data::{ConfiguredServer, read_config};
///
/// let text = r#"{ "mcpServers": { "docs": { "url": "https://docs.example/mcp?key=${KEY}" } } }"#;
/// let servers = read_config(text, &|_| Some("k".to_owned()))?;
/// let url = "https://docs.example/mcp?key=k".to_owned();
/// assert_eq!(servers, [("docs".to_owned(), ConfiguredServer::Http { url, headers: Vec::new() })]);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
///
/// Describes the problem, with the name of the server if it is that of one.
pub fn read_config(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<(String, ConfiguredServer)>, String> {
    let not_json = |error: serde_json::Error| {
        format!("the configuration is not valid JSON (line {})", error.line())
    };
    // Some editors on Windows begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let config: Value = serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&without_comments(text)))
        .map_err(not_json)?;
    let servers = config.get("mcpServers").or_else(|| config.get("servers"));
    let Some(Value::Object(entries)) = servers else {
        return Err("the configuration has no `mcpServers` object".to_owned());
    };
    let mut servers = Vec::new();
    for (name, entry) in entries {
        let at = |error: String| format!("server {name}: {error}");
        // The parser's message may quote a value, which may be a secret.
        let entry =
            Entry::deserialize(entry).map_err(|_| at("a setting has the wrong type".to_owned()))?;
        if entry.disabled != Some(true) && entry.enabled != Some(false) {
            servers.push((name.clone(), read(entry, variable).map_err(at)?));
        }
    }
    Ok(servers)
}

/// Replaces comments, and commas before a closing bracket, by spaces: some editors allow them. Line numbers stay the same.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let (mut rest, mut comma) = (text, None);
    while let Some(first) = rest.chars().next() {
        let is_comment = rest.starts_with("//") || rest.starts_with("/*");
        let length = match first {
            '"' => oa_json::string_length(&rest.as_bytes()[1..])
                .map_or(rest.len(), |(length, _)| length + 2),
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if is_comment => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            first => first.len_utf8(),
        };
        let (part, after) = rest.split_at(length);
        match (first, comma) {
            ('}' | ']', Some(at)) => plain.replace_range(at..=at, " "),
            _ if is_comment || first.is_whitespace() => {}
            _ => comma = (first == ',').then_some(plain.len()),
        }
        if is_comment {
            plain.extend(part.chars().map(|c| if c == '\n' { c } else { ' ' }));
        } else {
            plain.push_str(part);
        }
        rest = after;
    }
    plain
}

fn read(
    entry: Entry,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ConfiguredServer, String> {
    let fill = |text: &str| fill_variables(text, variable);
    let pairs = |map: Option<Map<String, Value>>| -> Result<Vec<(String, String)>, String> {
        map.into_iter()
            .flatten()
            .map(|(name, value)| match value {
                Value::String(text) => Ok((name, fill(&text)?)),
                Value::Bool(_) | Value::Number(_) => Ok((name, value.to_string())),
                _ => Err(format!("the value of {name} must be a string, a number or a boolean")),
            })
            .collect()
    };
    if entry.of.as_deref() == Some("sse") {
        return Err("the transport sse is not supported: use streamable HTTP".to_owned());
    }
    if let Some(command) = entry.command {
        let args = entry.args.iter().flatten().map(|arg| fill(arg)).collect::<Result<_, _>>()?;
        return Ok(ConfiguredServer::Stdio {
            command: fill(&command)?,
            args,
            env: pairs(entry.env)?,
            dir: entry.cwd.map(|dir| fill(&dir)).transpose()?,
        });
    }
    let url = entry.url.ok_or("neither `command` nor `url` is set")?;
    Ok(ConfiguredServer::Http { url: fill(&url)?, headers: pairs(entry.headers)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(server: &str) -> Result<ConfiguredServer, String> {
        let text = format!("{{ \"servers\": {{ \"s\": {server} }} }}");
        let variable = |name: &str| (name == "KEY").then(|| "sk-0".to_owned());
        read_config(&text, &variable).map(|mut servers| servers.remove(0).1)
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn settings_are_read_and_filled_in() {
        let program = r#"{ "command": "x-${KEY}", "args": ["-k", "${KEY}"], "env": { "N": 1, "K": "${KEY}" }, "cwd": "/${KEY}", "icon": {} }"#;
        let expected = ConfiguredServer::Stdio {
            command: "x-sk-0".to_owned(),
            args: vec!["-k".to_owned(), "sk-0".to_owned()],
            env: vec![pair("N", "1"), pair("K", "sk-0")],
            dir: Some("/sk-0".to_owned()),
        };
        assert_eq!(read_one(program), Ok(expected));
        let http = r#"{ "type": "http", "serverUrl": "http://a/${KEY}", "headers": { "A": "Bearer ${KEY}" } }"#;
        let headers = vec![pair("A", "Bearer sk-0")];
        let expected = ConfiguredServer::Http { url: "http://a/sk-0".to_owned(), headers };
        assert_eq!(read_one(http), Ok(expected));
        let shown = format!("{:?} {:?}", read_one(program), read_one(http));
        assert!(shown.contains(r#"["N", "K"]"#) && shown.contains(r#"["A"]"#), "{shown}");
        assert!(!shown.replace("x-sk-0", "").contains("sk-0"), "{shown}");
    }

    /// A server that is switched off must not be started, whichever editor has written that.
    #[test]
    fn disabled_servers_are_left_out() {
        let count = |of: &str| {
            let text = format!(r#"{{ "servers": {{ "s": {{ "command": "a", {of} }} }} }}"#);
            read_config(&text, &|_| None).map(|servers| servers.len())
        };
        for off in [
            r#""disabled": true"#,
            r#""enabled": false"#,
            r#""enabled": true, "disabled": true"#,
            r#""enabled": false, "disabled": false"#,
        ] {
            assert_eq!(count(off), Ok(0), "{off}");
        }
        for on in [r#""disabled": false"#, r#""enabled": true"#, r#""enabled": null"#] {
            assert_eq!(count(on), Ok(1), "{on}");
        }
    }

    #[test]
    fn settings_may_be_null() {
        let program = r#"{ "command": "a", "args": null, "env": null, "cwd": null, "url": null, "headers": null, "disabled": null }"#;
        let expected = ConfiguredServer::Stdio {
            command: "a".to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            dir: None,
        };
        assert_eq!(read_one(program), Ok(expected));
    }

    /// As VS Code has them.
    #[test]
    fn comments_and_trailing_commas_are_allowed() {
        let text = r#"// my servers
        { /* all
             of them */ "servers": {
            "a": { "command": "x", "args": ["http://a//b", "/*c*/", "\\\"//", ",]",], }, // é
            // "b": { "command": "y" },
        }, }"#;
        let args = ["http://a//b", "/*c*/", "\\\"//", ",]"].map(str::to_owned).to_vec();
        let (command, env, dir) = ("x".to_owned(), Vec::new(), None);
        let a = ConfiguredServer::Stdio { command, args, env, dir };
        assert_eq!(read_config(text, &|_| None), Ok(vec![("a".to_owned(), a)]));
        for (text, line) in [("{ // a\n\n \"servers\": x }", 3), ("{ /* a\n", 2)] {
            let expected = format!("the configuration is not valid JSON (line {line})");
            assert_eq!(read_config(text, &|_| None).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn problems_name_the_server() {
        for (server, expected) in [
            ("{}", "server s: neither `command` nor `url` is set"),
            (r#"{ "command": 7 }"#, "server s: a setting has the wrong type"),
            (r#"{ "command": "${OTHER}" }"#, "server s: the variable OTHER is not set"),
            (
                r#"{ "command": "a", "env": { "A": [] } }"#,
                "server s: the value of A must be a string, a number or a boolean",
            ),
            (
                r#"{ "url": "http://a", "type": "sse" }"#,
                "server s: the transport sse is not supported: use streamable HTTP",
            ),
        ] {
            assert_eq!(read_one(server).err().as_deref(), Some(expected), "{server}");
        }
    }
}
