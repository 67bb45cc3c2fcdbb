use oa_redact::Secrets;

/// The longest excerpt of a parameter, in characters.
const EXCERPT: usize = 200;

/// Describes what a server demands of the key, as its `WWW-Authenticate` headers say: the error, and the scope that the
/// key needs, or else where the login is described (`resource_metadata` of OAuth). `None` if they say nothing of this.
///
/// ```
/// use oa_mcp_data::key_problem;
/// use oa_redact::Secrets;
///
/// let header = r#"Bearer error="insufficient_scope", scope="files:read files:write""#;
/// let expected = "insufficient_scope; the key needs the scope files:read files:write";
/// assert_eq!(key_problem([header], &Secrets::new()).as_deref(), Some(expected));
/// ```
pub fn key_problem<'a>(
    headers: impl IntoIterator<Item = &'a str>,
    secrets: &Secrets,
) -> Option<String> {
    let challenges: Vec<_> = headers.into_iter().flat_map(read).collect();
    // Other challenges may offer other ways to log in.
    let challenge = challenges.iter().find(|of| of.get("error").is_some());
    let challenge = challenge.or_else(|| challenges.iter().find(|of| of.get("scope").is_some()));
    let Some(challenge) = challenge else {
        // Of a server that is used with OAuth, to a request without a key.
        let metadata = challenges.iter().find_map(|of| of.get("resource_metadata"))?;
        let metadata = secrets.excerpt(metadata, EXCERPT);
        return Some(format!("it requires a login, which {metadata} describes"));
    };
    let text = |name: &str| Some(secrets.excerpt(challenge.get(name)?, EXCERPT));
    let mut told = Vec::new();
    told.extend(match (text("error"), text("error_description")) {
        (Some(error), Some(description)) => Some(format!("{error}: {description}")),
        (error, _) => error,
    });
    told.extend(text("scope").map(|scope| format!("the key needs the scope {scope}")));
    Some(told.join("; "))
}

/// Returns true if the server may accept another key: after status 401, and after 403 if the key lacks a scope (RFC 6750,
/// section 3.1), as the `WWW-Authenticate` headers say.
///
/// ```
/// use oa_mcp_data::wants_another_key;
///
/// assert!(wants_another_key(401, []));
/// assert!(wants_another_key(403, [r#"Bearer error="insufficient_scope", scope="files:write""#]));
/// assert!(!wants_another_key(403, ["Bearer realm=tools"]));
/// ```
pub fn wants_another_key<'a>(status: u16, headers: impl IntoIterator<Item = &'a str>) -> bool {
    let lacks_scope = |of: Challenge| of.get("error") == Some("insufficient_scope");
    status == 401 || status == 403 && headers.into_iter().flat_map(read).any(lacks_scope)
}

/// Returns true if a message may be sent again after the pause that an overloaded server asks for, with status 429 or 503.
/// After 503, a call may have run.
///
/// ```
/// use oa_mcp_data::may_send_again;
///
/// assert!(may_send_again(503, "tools/list"));
/// assert!(may_send_again(429, "tools/call") && !may_send_again(503, "tools/call"));
/// ```
#[must_use]
pub fn may_send_again(status: u16, method: &str) -> bool {
    status == 429 || status == 503 && method != "tools/call"
}

/// The parameters of one challenge, with names in lower case.
#[derive(Default)]
struct Challenge(Vec<(String, String)>);

impl Challenge {
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(other, value)| other == name && !value.is_empty());
        found.map(|(_, value)| &**value)
    }
}

/// Reads a header: `Scheme name=value, name="value", Scheme ..`. Anything else in it is skipped.
fn read(header: &str) -> Vec<Challenge> {
    let mut challenges = vec![Challenge::default()];
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '=' | '"'));
        if rest.is_empty() {
            return challenges;
        }
        let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '=' | '"');
        let (name, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        let Some(after) = after.trim_start().strip_prefix('=') else {
            // A name without a value is the scheme of the next challenge.
            challenges.push(Challenge::default());
            rest = after;
            continue;
        };
        let (value, after) = value(after.trim_start());
        if let Some(challenge) = challenges.last_mut() {
            challenge.0.push((name.to_ascii_lowercase(), value));
        }
        rest = after;
    }
}

/// Splits a value, which may be quoted, from what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => {
                is_escaped = true;
                continue;
            }
            '"' => return (value, &quoted[at + 1..]),
            _ => {}
        }
        value.push(c);
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn problem(headers: &[&str]) -> String {
        let mut secrets = Secrets::new();
        secrets.add_key("sk-0123456789");
        key_problem(headers.iter().copied(), &secrets).unwrap_or_default()
    }

    #[test]
    fn error_and_scope_are_described() {
        let scope = "the key needs the scope a:read b";
        for (header, expected) in [
            (
                r#"Bearer error="insufficient_scope", scope="a:read b""#,
                format!("insufficient_scope; {scope}"),
            ),
            (
                r#"bearer SCOPE = "a:read b" , Error=insufficient_scope"#,
                format!("insufficient_scope; {scope}"),
            ),
            (
                r#"Bearer resource_metadata="https://a.example/x?y=z", scope="a:read b""#,
                scope.to_owned(),
            ),
            (
                r#"Bearer realm="a, b", error="invalid_token", error_description="it \"expired\"""#,
                r#"invalid_token: it "expired""#.to_owned(),
            ),
            (
                r#"Bearer error="invalid_token", error_description="not sk-0123456789""#,
                "invalid_token: not ****".to_owned(),
            ),
            (r#"Bearer realm="tools""#, String::new()),
            (
                r#"Bearer realm="OAuth", resource_metadata="https://a.example/.well-known/x""#,
                "it requires a login, which https://a.example/.well-known/x describes".to_owned(),
            ),
            (r#"Bearer error="", scope="""#, String::new()),
            ("Bearer", String::new()),
            ("", String::new()),
            ("=,\"", String::new()),
            (r#"Bearer error="unclosed"#, "unclosed".to_owned()),
        ] {
            assert_eq!(problem(&[header]), expected, "{header}");
        }
    }

    /// The parameters of one challenge do not belong to another.
    #[test]
    fn challenges_are_kept_apart() {
        let bearer = r#"Bearer error="insufficient_scope", scope="a""#;
        let expected = "insufficient_scope; the key needs the scope a";
        assert_eq!(problem(&[&format!(r#"Basic realm="x", {bearer}"#)]), expected);
        assert_eq!(problem(&[&format!(r#"DPoP scope="b", {bearer}, Negotiate YWJj=="#)]), expected);
        assert_eq!(problem(&["Negotiate YWJj", bearer]), expected);
        assert_eq!(problem(&[r#"Bearer error="e", Basic scope="b""#]), "e");
    }

    #[test]
    fn parameters_are_bounded() {
        let long = format!("Bearer scope=\"{}\"", "x".repeat(10_000));
        let told = problem(&[&long]);
        assert_eq!(told.len(), "the key needs the scope ".len() + EXCERPT + "...".len());
    }

    proptest! {
        #[test]
        fn any_header_is_read(header in r#"[a-z"=, \\é]{0,40}"#) {
            let _ = problem(&[&header]);
        }
    }
}
