use oa_redact::base64;
use oa_types::ImageBlock;
use serde_json::{Value, json};

use crate::message::plain_base64;

/// A resource of a server, such as a file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resource {
    /// The URI, or a URI template with placeholders such as `{id}`.
    pub uri: String,
    /// The name.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The media type.
    pub mime_type: Option<String>,
    /// The size in bytes.
    pub size: Option<u64>,
}

/// The content of a resource. A resource may have several contents, such as the files of a folder.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResourceContent {
    /// The URI.
    pub uri: String,
    /// The media type.
    pub mime_type: Option<String>,
    /// The data.
    pub data: ResourceData,
}

/// The data of a [`ResourceContent`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResourceData {
    /// Bytes, as unchecked base64.
    Blob(String),
    /// Text.
    Text(String),
}

impl Resource {
    /// Reads an entry of a list of resources or of templates; `None` without a URI.
    #[must_use]
    pub fn read(entry: &Value) -> Option<Self> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            uri: text("uri").or_else(|| text("uriTemplate"))?,
            name: text("name").unwrap_or_default(),
            title: text("title"),
            description: text("description"),
            mime_type: text("mimeType"),
            size: entry.get("size").and_then(Value::as_u64),
        })
    }

    /// Returns the entry of a list for a model: what it needs to choose and to read a resource.
    #[must_use]
    pub fn entry(&self) -> Value {
        // No URI contains braces.
        let key = if self.uri.contains('{') { "uriTemplate" } else { "uri" };
        let mut entry = json!({ key: self.uri, "name": self.name });
        for (name, text) in [("description", &self.description), ("mimeType", &self.mime_type)] {
            if let Some(text) = text {
                entry[name] = text.as_str().into();
            }
        }
        entry
    }
}

impl ResourceContent {
    /// Reads a part of the result of `resources/read`; `None` without data.
    #[must_use]
    pub fn read(entry: &Value) -> Option<Self> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
        let data = match text("text") {
            Some(text) => ResourceData::Text(text),
            None => ResourceData::Blob(text("blob")?),
        };
        Some(Self { uri: text("uri").unwrap_or_default(), mime_type: text("mimeType"), data })
    }

    /// Returns the text; `None` for bytes.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            ResourceData::Blob(_) => None,
            ResourceData::Text(text) => Some(text),
        }
    }

    /// Returns the bytes; `None` for base64 that is not valid.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match &self.data {
            ResourceData::Blob(blob) => base64::decode(&plain_base64(blob)),
            ResourceData::Text(text) => Some(text.clone().into_bytes()),
        }
    }

    /// Returns the image for a message; `None` if it is not an image that models accept.
    #[must_use]
    pub fn image(&self) -> Option<ImageBlock> {
        match (&self.data, &self.mime_type) {
            (ResourceData::Blob(blob), Some(mime)) => {
                ImageBlock::from_base64(plain_base64(blob), mime).ok()
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_text_bytes_or_images() {
        let read = |entry: Value| ResourceContent::read(&entry);
        let text = read(json!({ "uri": "a://b", "text": "inside" })).unwrap();
        assert_eq!((text.text(), text.bytes().as_deref()), (Some("inside"), Some(&b"inside"[..])));
        let image =
            read(json!({ "uri": "a://c", "mimeType": "image/png", "blob": "QUJD" })).unwrap();
        assert_eq!((image.text(), image.bytes().as_deref()), (None, Some(&b"ABC"[..])));
        assert_eq!(image.image().unwrap().url, "data:image/png;base64,QUJD");
        let blob = "data:image/png;base64,QU\nJD";
        let uri = read(json!({ "mimeType": "image/png", "blob": blob })).unwrap();
        assert_eq!((uri.bytes(), uri.image()), (image.bytes(), image.image()));
        let broken = read(json!({ "blob": "?" })).unwrap();
        assert_eq!((broken.bytes(), broken.image()), (None, None));
        assert_eq!(read(json!({ "uri": "a://d" })), None);
    }

    #[test]
    fn a_resource_needs_a_uri_or_a_template() {
        let read = |entry: Value| Resource::read(&entry).map(|resource| resource.uri);
        assert_eq!(read(json!({ "uri": "a://b", "name": "b", "size": 7 })), Some("a://b".into()));
        assert_eq!(read(json!({ "uriTemplate": "a://{id}" })), Some("a://{id}".into()));
        assert_eq!(read(json!({ "name": "b" })), None);
    }
}
