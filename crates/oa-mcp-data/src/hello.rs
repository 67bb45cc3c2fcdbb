use oa_redact::Secrets;
use serde_json::Value;

use crate::client::{STATELESS, VERSIONS};
use crate::cut;

/// The longest excerpt of a server's text in an error.
const EXCERPT: usize = 300;

/// The error codes with which servers refuse `initialize`, because they do not know it or do not support its version.
const NO_HANDSHAKE: [i64; 6] = [-32600, -32601, -32602, -32020, -32021, -32022];

/// A server's information about itself: its answer to `initialize` or `server/discover`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Hello {
    /// The protocol version in use.
    pub version: String,
    /// The server has tools.
    pub has_tools: bool,
    /// The server has resources.
    pub has_resources: bool,
    /// The server has prompts.
    pub has_prompts: bool,
    /// The server announces changes of its tools.
    pub tells_changes: bool,
    /// The server's instructions, bounded.
    pub instructions: Option<String>,
}

impl Hello {
    /// Reads the answer to `initialize`. Instructions are cut after this number of bytes.
    ///
    /// # Errors
    ///
    /// A description of the problem: the answer has no version, or none that is supported.
    pub fn of_handshake(result: &Value, secrets: &Secrets, bytes: usize) -> Result<Self, String> {
        let Some(version) = result.get("protocolVersion").and_then(Value::as_str) else {
            let excerpt = secrets.excerpt(&result.to_string(), EXCERPT);
            return Err(format!("the answer to initialize has no version: {excerpt}"));
        };
        // A stateless server may nevertheless answer a handshake, with its own version.
        if !VERSIONS.contains(&version) && version != STATELESS {
            let ours = [&VERSIONS[..], &[STATELESS]].concat();
            return Err(unknown(&secrets.excerpt(version, 40), &ours));
        }
        Ok(Self::read(version, result, bytes))
    }

    /// Reads the answer to `server/discover`. Otherwise like [`of_handshake`](Self::of_handshake).
    ///
    /// # Errors
    ///
    /// As [`of_handshake`](Self::of_handshake).
    pub fn of_discovery(result: &Value, secrets: &Secrets, bytes: usize) -> Result<Self, String> {
        let Some(versions) = result.get("supportedVersions").and_then(Value::as_array) else {
            let excerpt = secrets.excerpt(&result.to_string(), EXCERPT);
            return Err(format!("the answer to server/discover has no versions: {excerpt}"));
        };
        let versions: Vec<_> = versions.iter().filter_map(Value::as_str).collect();
        // Only the stateless version is of use: who asks this has no handshake, or was refused it.
        if !versions.contains(&STATELESS) {
            return Err(unknown(&secrets.excerpt(&versions.join(", "), 200), &[STATELESS]));
        }
        Ok(Self::read(STATELESS, result, bytes))
    }

    fn read(version: &str, result: &Value, bytes: usize) -> Self {
        // Some servers write null for what they do not have.
        let has = |what: &str| result.pointer(what).is_some_and(|offer| !offer.is_null());
        let instructions = result.get("instructions").and_then(Value::as_str);
        let changes = result.pointer("/capabilities/tools/listChanged");
        Self {
            version: version.to_owned(),
            has_tools: has("/capabilities/tools"),
            has_resources: has("/capabilities/resources"),
            has_prompts: has("/capabilities/prompts"),
            tells_changes: changes == Some(&Value::Bool(true)),
            instructions: instructions.map(|text| cut(text, bytes)),
        }
    }

    /// Returns true for the code of an error as which servers without a handshake refuse one.
    #[must_use]
    pub fn is_refused(code: i64) -> bool {
        NO_HANDSHAKE.contains(&code)
    }

    /// Returns true if the text of an HTTP error with this status is about the protocol version: some servers check it
    /// before they read the message.
    #[must_use]
    pub fn refuses_version(status: u16, text: &str) -> bool {
        let is_named = |version: &&str| text.contains(*version);
        status == 400 && (VERSIONS.iter().any(is_named) || text.contains(STATELESS))
    }

    /// Returns the version to ask for after a refusal of the newest one: the newest other that its text names, if any.
    /// A server should answer with its own version instead, but some refuse.
    #[must_use]
    pub fn other_version(refusal: &str) -> Option<&'static str> {
        VERSIONS.iter().rev().skip(1).copied().find(|version| refusal.contains(version))
    }

    /// Returns true if the server has no tools, resources or prompts.
    #[must_use]
    pub fn has_nothing(&self) -> bool {
        !(self.has_tools || self.has_resources || self.has_prompts)
    }

    /// Returns true for the stateless version.
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        self.version == STATELESS
    }
}

fn unknown(theirs: &str, ours: &[&str]) -> String {
    format!("the server speaks version {theirs} of the protocol, not {}", ours.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn handshake_and_discovery_read_alike() {
        let capabilities =
            json!({ "tools": { "listChanged": true }, "prompts": {}, "resources": null });
        let mut answer = json!({ "capabilities": capabilities, "instructions": "Be very kind." });
        answer["protocolVersion"] = "2025-03-26".into();
        let old = Hello::of_handshake(&answer, &Secrets::new(), 7).unwrap();
        assert!(old.has_tools && old.has_prompts && old.tells_changes && !old.has_resources);
        assert_eq!(old.instructions.as_deref(), Some("Be very..."));
        assert!(!old.is_stateless());
        answer["supportedVersions"] = json!(["2025-11-25", "2026-07-28"]);
        let new = Hello::of_discovery(&answer, &Secrets::new(), 7).unwrap();
        assert_eq!(Hello { version: old.version.clone(), ..new.clone() }, old);
        assert!(new.is_stateless());
        // Such a version may be the answer to a handshake, too.
        answer["protocolVersion"] = "2026-07-28".into();
        assert_eq!(Hello::of_handshake(&answer, &Secrets::new(), 7), Ok(new));
    }

    #[test]
    fn unsupported_versions_are_named() {
        let of = |answer: &Value| {
            let handshake = Hello::of_handshake(answer, &Secrets::new(), 7).unwrap_err();
            (handshake, Hello::of_discovery(answer, &Secrets::new(), 7).unwrap_err())
        };
        let answer = json!({ "protocolVersion": "1999", "supportedVersions": ["1999", "2000"] });
        let (one, other) = of(&answer);
        let ours = "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28";
        assert_eq!(one, format!("the server speaks version 1999 of the protocol, not {ours}"));
        let expected = "the server speaks version 1999, 2000 of the protocol, not 2026-07-28";
        assert_eq!(other, expected);
        let (one, other) = of(&json!({}));
        assert_eq!(one, "the answer to initialize has no version: {}");
        assert_eq!(other, "the answer to server/discover has no versions: {}");
    }
}
