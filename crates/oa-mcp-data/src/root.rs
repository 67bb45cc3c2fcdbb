use std::path::Path;

use serde_json::{Value, json};

/// A folder that is announced to a server.
#[derive(Clone, Debug)]
pub struct Root {
    uri: String,
    name: Option<String>,
}

impl Root {
    /// Creates a root for a folder. A relative path is resolved against the current directory.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Self { uri: file_uri(&path.to_string_lossy()), name }
    }

    /// Returns the root in the protocol's form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.name {
            Some(name) => json!({ "uri": self.uri, "name": name }),
            None => json!({ "uri": self.uri }),
        }
    }
}

/// Writes an absolute path as a URI.
fn file_uri(path: &str) -> String {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let mut uri = "file://".to_owned();
    if !path.starts_with('/') {
        uri.push('/');
    }
    for byte in path.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        if is_plain || (cfg!(windows) && byte == b':') {
            uri.push(char::from(byte));
        } else {
            uri += &format!("%{byte:02X}");
        }
    }
    uri
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn roots_are_file_uris_with_names() {
        let root = |path: &str| Root::new(Path::new(path)).to_json();
        assert_eq!(root("/srv/shared"), json!({ "uri": "file:///srv/shared", "name": "shared" }));
        assert_eq!(
            root("/a b/\u{e9}#1"),
            json!({ "uri": "file:///a%20b/%C3%A9%231", "name": "\u{e9}#1" })
        );
        assert_eq!(root("/"), json!({ "uri": "file:///" }));
        let relative = root("here")["uri"].as_str().unwrap_or_default().to_owned();
        assert!(relative.starts_with("file:///") && relative.ends_with("/here"), "{relative}");
    }
}
