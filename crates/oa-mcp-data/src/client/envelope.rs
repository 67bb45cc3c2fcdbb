use serde_json::{Value, json};

use super::message::{
    HEADER_MISMATCH, INVALID_PARAMS, UNSUPPORTED_VERSION, error, error_with, excerpt,
};

/// The stateless version, which has no handshake: each request states its version.
pub const STATELESS: &str = "2026-07-28";
/// The versions that begin with `initialize`, newest last.
pub const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The levels of log notifications, in the protocol's order.
pub const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SERVER: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The metadata of a request: its protocol version and log level.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum Envelope {
    /// None: the request belongs to a conversation that began with `initialize`.
    None,
    /// A request of the stateless version, with its log level.
    Stateless {
        /// The index in [`LEVELS`] of the lowest wanted level; `None` for no log lines.
        level: Option<u8>,
    },
    /// The request is refused with this answer.
    Refused(String),
}

/// The headers of a request that repeat parts of its body.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Mirrors {
    /// `MCP-Protocol-Version`.
    pub version: Option<String>,
    /// `Mcp-Method`.
    pub method: Option<String>,
    /// `Mcp-Name`, plain or in base64.
    pub name: Option<String>,
    /// The headers of [`MirroredArguments`](crate::MirroredArguments), with their values.
    pub arguments: Vec<(String, String)>,
}

/// The transport of a request, as far as it matters for the stateless version.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Origin<'a> {
    /// A stream of lines, which may carry both kinds of requests.
    Lines,
    /// A session over HTTP.
    Session,
    /// HTTP without a session. The headers are checked.
    Post(&'a Mirrors),
}

impl Envelope {
    /// Reads the envelope of a request.
    #[must_use]
    pub fn read(id: &Value, method: &str, params: &Value, origin: Origin<'_>) -> Self {
        let meta = params.get("_meta");
        let field = |name: &str| meta.and_then(|meta| meta.get(name));
        let malformed = |why: &str| Self::Refused(error(id, INVALID_PARAMS, why));
        // First the version, from the metadata and the place where the request arrived:
        //   metadata        lines          session over HTTP    POST without a session
        //   none            conversation   conversation         malformed
        //   a version       stateless      header mismatch      stateless, if the header agrees
        // Then the rest of the metadata.
        let version = match (field(VERSION), origin) {
            // This begins a conversation, whatever its metadata.
            (_, Origin::Lines | Origin::Session) if method == "initialize" => return Self::None,
            (Some(Value::String(version)), _) => version,
            (Some(_), _) => return malformed(&format!("{VERSION} must be a string")),
            (None, Origin::Post(_)) => {
                return malformed(&format!("_meta must have {VERSION}, and {CAPABILITIES}"));
            }
            // These exist only in the stateless version.
            (None, _) if matches!(method, "server/discover" | "subscriptions/listen") => {
                return malformed(&format!("_meta must have {VERSION}, and {CAPABILITIES}"));
            }
            (None, _) => return Self::None,
        };
        let mismatch = |header: &str| {
            let why = format!("the header {header} must match the body");
            Self::Refused(error(id, HEADER_MISMATCH, &why))
        };
        match origin {
            Origin::Lines => {}
            Origin::Session => return mismatch("mcp-protocol-version"),
            Origin::Post(mirrors) => {
                // Before the version is judged: whoever reads only the header must not see another one.
                if mirrors.version.as_deref() != Some(version) {
                    return mismatch("mcp-protocol-version");
                }
            }
        }
        if version != STATELESS {
            let supported: Vec<_> =
                std::iter::once(STATELESS).chain(VERSIONS.into_iter().rev()).collect();
            let data = json!({ "supported": supported, "requested": excerpt(version) });
            let why = "this protocol version is not supported";
            return Self::Refused(error_with(id, UNSUPPORTED_VERSION, why, &data));
        }
        if !field(CAPABILITIES).is_some_and(Value::is_object) {
            return malformed(&format!("{CAPABILITIES} must be an object"));
        }
        if let Origin::Post(mirrors) = origin {
            if mirrors.method.as_deref() != Some(method) {
                return mismatch("mcp-method");
            }
            let name = params.get("name").and_then(Value::as_str);
            if method == "tools/call" && name.is_some_and(|name| !mirrors.names(name)) {
                return mismatch("mcp-name");
            }
        }
        let level = match field(LOG_LEVEL) {
            None => None,
            Some(level) => match level_place(level) {
                Some(place) => Some(place),
                None => {
                    return malformed(&format!("{LOG_LEVEL} must be one of {}", LEVELS.join(", ")));
                }
            },
        };
        Self::Stateless { level }
    }
}

impl Mirrors {
    /// Returns the names and values of the headers.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = [
            ("mcp-protocol-version", &self.version),
            ("mcp-method", &self.method),
            ("mcp-name", &self.name),
        ];
        let own = own.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        own.chain(self.arguments.iter().map(|(name, value)| (&**name, &**value)))
    }

    /// Returns the headers for a client to send with a request, without those of arguments.
    #[must_use]
    pub fn of(method: &str, params: &Value) -> Self {
        let named = if method == "resources/read" { "uri" } else { "name" };
        let is_named = matches!(method, "prompts/get" | "resources/read" | "tools/call");
        let name = params.get(named).and_then(Value::as_str).filter(|_| is_named);
        Self {
            version: Some(STATELESS.to_owned()),
            method: Some(method.to_owned()),
            name: name.map(header_text),
            arguments: Vec::new(),
        }
    }

    /// Returns true if the `Mcp-Name` header has this name, plain or in base64.
    fn names(&self, name: &str) -> bool {
        let Some(header) = self.name.as_deref() else { return false };
        match header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
            // Encodes instead of decoding: only the canonical encoding is accepted, and no decoder is needed.
            Some(encoded) => encoded == base64(name.as_bytes()),
            None => header == name,
        }
    }
}

/// Returns the index of a level in [`LEVELS`].
#[must_use]
pub fn level_place(level: &Value) -> Option<u8> {
    let level = level.as_str()?;
    let place = LEVELS.iter().position(|known| *known == level)?;
    u8::try_from(place).ok()
}

/// Adds the metadata of the stateless version to a result.
#[must_use]
pub fn complete(mut result: Value, server: &Value) -> Value {
    result["resultType"] = "complete".into();
    result["_meta"] = json!({ SERVER: server });
    result
}

/// Adds the id of a subscription, which is that of the request that began it, to the parameters of a message.
#[must_use]
pub fn of_subscription(mut params: Value, id: &Value) -> Value {
    params["_meta"][SUBSCRIPTION] = id.clone();
    params
}

/// Adds the metadata of the stateless version to parameters of a request, for a client that offers `capabilities`.
/// `level` is the lowest log level that the client wants.
#[must_use]
pub fn enclose(
    mut params: Value,
    client: &Value,
    capabilities: &Value,
    level: Option<&str>,
) -> Value {
    if params.is_null() {
        params = json!({});
    }
    let Some(members) = params.as_object_mut() else { return params };
    let meta = members.entry("_meta").or_insert_with(|| json!({}));
    if !meta.is_object() {
        *meta = json!({});
    }
    meta[VERSION] = STATELESS.into();
    meta[CLIENT] = client.clone();
    meta[CAPABILITIES] = capabilities.clone();
    if let Some(level) = level {
        meta[LOG_LEVEL] = level.into();
    }
    params
}

/// Adds metadata to the parameters of a request, which are an object or null. Their own metadata stays, except under the
/// same names.
#[must_use]
pub fn add_meta(mut params: Value, meta: Option<Value>) -> Value {
    let Some(Value::Object(meta)) = meta else { return params };
    if params.is_null() {
        params = json!({});
    }
    if let Some(members) = params.as_object_mut() {
        match members.get_mut("_meta").and_then(Value::as_object_mut) {
            Some(own) => own.extend(meta),
            None => drop(members.insert("_meta".to_owned(), meta.into())),
        }
    }
    params
}

/// Returns a text as a header value, in base64 if it would not arrive unchanged.
pub(crate) fn header_text(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    // HTTP trims values, and a plain name that looks encoded would be decoded.
    if is_plain && text.trim() == text && !text.starts_with("=?base64?") {
        return text.to_owned();
    }
    format!("=?base64?{}?=", base64(text.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let of = |place: usize| u32::from(three.get(place).copied().unwrap_or_default());
        let bits = of(0) << 16 | of(1) << 8 | of(2);
        for digit in 0..4_usize {
            let place = (bits >> (18 - 6 * digit)) & 63;
            // n bytes fill n + 1 digits; the rest is padding.
            let is_there = digit <= three.len();
            text.push(if is_there { char::from(DIGITS[place as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(version: &str) -> Value {
        json!({ "name": "echo", "_meta": { VERSION: version, CAPABILITIES: {} } })
    }

    fn code(envelope: &Envelope) -> Value {
        let Envelope::Refused(answer) = envelope else { panic!("{envelope:?}") };
        serde_json::from_str::<Value>(answer).unwrap()["error"]["code"].clone()
    }

    fn mirrors(version: &str, method: &str, name: &str) -> Mirrors {
        let of = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Mirrors { version: of(version), method: of(method), name: of(name), arguments: Vec::new() }
    }

    #[test]
    fn version_comes_from_the_metadata() {
        let read =
            |method: &str, params: &Value| Envelope::read(&json!(1), method, params, Origin::Lines);
        assert_eq!(read("tools/list", &json!({})), Envelope::None);
        assert_eq!(read("initialize", &params(STATELESS)), Envelope::None);
        assert_eq!(read("tools/list", &params(STATELESS)), Envelope::Stateless { level: None });
        let mut verbose = params(STATELESS);
        verbose["_meta"][LOG_LEVEL] = "warning".into();
        assert_eq!(read("tools/call", &verbose), Envelope::Stateless { level: Some(3) });
        verbose["_meta"][LOG_LEVEL] = "loud".into();
        assert_eq!(code(&read("tools/call", &verbose)), INVALID_PARAMS);
        assert_eq!(code(&read("server/discover", &json!({}))), INVALID_PARAMS);
        assert_eq!(code(&read("tools/list", &json!({ "_meta": { VERSION: 7 } }))), INVALID_PARAMS);
        let bare = json!({ "_meta": { VERSION: STATELESS } });
        assert_eq!(code(&read("tools/list", &bare)), INVALID_PARAMS);
        let unknown = read("tools/list", &params("2099-01-01"));
        assert_eq!(code(&unknown), UNSUPPORTED_VERSION);
        assert!(format!("{unknown:?}").contains("2025-11-25"), "{unknown:?}");
    }

    #[test]
    fn headers_must_match_the_body() {
        let read = |mirrors: &Mirrors, name: &str| {
            let mut params = params(STATELESS);
            params["name"] = name.into();
            Envelope::read(&json!(1), "tools/call", &params, Origin::Post(mirrors))
        };
        let good = Envelope::Stateless { level: None };
        assert_eq!(read(&mirrors(STATELESS, "tools/call", "echo"), "echo"), good);
        let encoded = "=?base64?SGVsbG8sIOS4lueVjA==?=";
        assert_eq!(read(&mirrors(STATELESS, "tools/call", encoded), "Hello, 世界"), good);
        for (version, method, name) in [
            ("", "tools/call", "echo"),
            ("2025-11-25", "tools/call", "echo"),
            (STATELESS, "", "echo"),
            (STATELESS, "tools/list", "echo"),
            (STATELESS, "tools/call", ""),
            (STATELESS, "tools/call", "other"),
            (STATELESS, "tools/call", "=?base64?b3RoZXI=?="),
        ] {
            let refused = read(&mirrors(version, method, name), "echo");
            assert_eq!(code(&refused), HEADER_MISMATCH, "{version} {method} {name}");
        }
        let in_session =
            Envelope::read(&json!(1), "tools/list", &params(STATELESS), Origin::Session);
        assert_eq!(code(&in_session), HEADER_MISMATCH);
    }

    #[test]
    fn enclosed_params_are_read_back() {
        let client = json!({ "name": "test", "version": "0" });
        for name in ["echo", "Hello, 世界", " padded ", "=?base64?eA==?=", "a\nb", ""] {
            let params = json!({ "name": name, "_meta": { "progressToken": 1 } });
            let params = enclose(params, &client, &json!({ "roots": {} }), Some("info"));
            assert_eq!(params["_meta"]["progressToken"], 1);
            assert_eq!(params["_meta"][CAPABILITIES], json!({ "roots": {} }));
            let mirrors = Mirrors::of("tools/call", &params);
            let origin = Origin::Post(&mirrors);
            let read = Envelope::read(&json!(1), "tools/call", &params, origin);
            assert_eq!(read, Envelope::Stateless { level: Some(1) }, "{name:?} {mirrors:?}");
        }
        let params = enclose(Value::Null, &client, &json!({}), None);
        let mirrors = Mirrors::of("tools/list", &params);
        assert_eq!(mirrors.name, None);
        let read = Envelope::read(&json!(1), "tools/list", &params, Origin::Post(&mirrors));
        assert_eq!(read, Envelope::Stateless { level: None });
        let uri = json!({ "uri": "file:///a", "name": "b" });
        assert_eq!(Mirrors::of("resources/read", &uri).name.as_deref(), Some("file:///a"));
        // What is no object has no room for it.
        assert_eq!(enclose(json!([1]), &client, &json!({}), None), json!([1]));
        let enclosed = enclose(json!({ "_meta": 1 }), &client, &json!({}), None);
        assert_eq!(enclosed["_meta"][VERSION], STATELESS);
    }

    #[test]
    fn base64_matches_the_rfc_vectors() {
        for (text, encoded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }
}
