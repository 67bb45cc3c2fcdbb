use std::path::Path;

use serde_json::{Value, json};

/// A folder that is announced to a server.
#[derive(Clone, Debug)]
pub struct Root {
    uri: String,
    name: Option<String>,
}

impl Root {
    /// Creates a root for a folder. A relative path, even an empty one, is resolved against the current directory;
    /// `None` if there is none.
    #[must_use]
    pub fn new(path: &Path) -> Option<Self> {
        // As it is, an empty path would announce the whole file system.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let path = std::path::absolute(path).ok()?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Some(Self { uri: file_uri(path.as_os_str().as_encoded_bytes()), name })
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
fn file_uri(path: &[u8]) -> String {
    let separated = |byte: &u8| if cfg!(windows) && *byte == b'\\' { b'/' } else { *byte };
    let mut uri = "file://".to_owned();
    if path.first().map(separated) != Some(b'/') {
        uri.push('/');
    }
    for byte in path.iter().map(separated) {
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
        let root = |path: &str| Root::new(Path::new(path)).unwrap().to_json();
        assert_eq!(root("/srv/shared"), json!({ "uri": "file:///srv/shared", "name": "shared" }));
        assert_eq!(
            root("/a b/\u{e9}#1"),
            json!({ "uri": "file:///a%20b/%C3%A9%231", "name": "\u{e9}#1" })
        );
        assert_eq!(root("/"), json!({ "uri": "file:///" }));
        let relative = root("here")["uri"].as_str().unwrap_or_default().to_owned();
        assert!(relative.starts_with("file:///") && relative.ends_with("/here"), "{relative}");
        assert_eq!(root(""), root("."), "not the whole file system");
        let raw = std::os::unix::ffi::OsStrExt::from_bytes(b"/a\xe9");
        let raw = Root::new(std::ffi::OsStr::as_ref(raw)).unwrap().to_json();
        assert_eq!(raw["uri"], "file:///a%E9");
    }
}
