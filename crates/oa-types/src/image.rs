use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// An image, by URL or as inline data.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ImageBlock {
    /// An `http`, `https` or `data` URL.
    pub url: String,
    /// The resolution at which the model processes the image.
    #[serde(default, skip_serializing_if = "ImageDetail::is_auto")]
    pub detail: ImageDetail,
}

/// The resolution at which a model processes an image.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ImageDetail {
    /// The server decides.
    #[default]
    Auto,
    /// Full resolution.
    High,
    /// Low resolution, which costs fewer tokens.
    Low,
}

impl ImageDetail {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

impl ImageBlock {
    /// The largest file that [`from_file_path`](Self::from_file_path) reads: 20 MiB.
    pub const MAX_FILE_BYTES: u64 = 20 << 20;

    /// Creates an image from a URL that the server fetches, or from a `data:` URL.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the scheme is not `http`, `https` or `data`, or the URL contains whitespace or control
    /// characters.
    pub fn from_url(url: impl Into<String>) -> Result<Self, Error> {
        let url = url.into();
        let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        if !matches!(scheme.as_deref(), Some("http" | "https" | "data")) {
            return Err(Error::invalid_input(
                "an image URL must begin with http:, https: or data:",
            ));
        }
        if url.contains(|character: char| character.is_whitespace() || character.is_control()) {
            return Err(Error::invalid_input(
                "an image URL must not contain whitespace or control characters",
            ));
        }
        Ok(Self { url, detail: ImageDetail::Auto })
    }

    /// Creates an image from base64 data and its media type (such as `image/png`).
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the data is empty or not base64, or the media type is not an image type. Missing padding is
    /// added.
    pub fn from_base64(data: impl AsRef<str>, media_type: impl AsRef<str>) -> Result<Self, Error> {
        let (data, media_type) = (data.as_ref(), media_type.as_ref());
        let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let subtype = media_type.strip_prefix("image/").unwrap_or_default();
        if subtype.is_empty() || !subtype.chars().all(is_token) {
            return Err(Error::invalid_input(format!(
                "the media type must be an image type such as image/png, not {media_type:?}"
            )));
        }
        let text = data.trim_end_matches('=');
        let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
        let (given, padding) = (data.len() - text.len(), text.len().wrapping_neg() % 4);
        // No data ends with a single letter of a group of four.
        let is_whole = !text.is_empty() && padding < 3 && (given == 0 || given == padding);
        if !is_whole || !text.chars().all(is_base64) {
            return Err(Error::invalid_input("the image data is not valid base64"));
        }
        let padding = &"=="[..padding];
        Ok(Self {
            url: format!("data:{media_type};base64,{text}{padding}"),
            detail: ImageDetail::Auto,
        })
    }

    /// Creates an image from the bytes of an image file, such as a screenshot. The media type is detected as in
    /// [`from_file_path`](Self::from_file_path).
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the bytes are not an image of a known type.
    ///
    /// ```
    /// use oa_types::ImageBlock;
    ///
    /// let image = ImageBlock::from_bytes(b"GIF89a")?;
    /// assert_eq!(image.url, "data:image/gif;base64,R0lGODlh");
    /// # Ok::<(), oa_types::Error>(())
    /// ```
    pub fn from_bytes(bytes: impl AsRef<[u8]>) -> Result<Self, Error> {
        let image = Self::detected(bytes.as_ref());
        image.ok_or_else(|| Error::invalid_input(format!("the data is {NO_IMAGE}")))
    }

    /// Creates an image from a file of at most [`MAX_FILE_BYTES`](Self::MAX_FILE_BYTES). Blocks while reading.
    ///
    /// The media type is detected from the first bytes (PNG, JPEG, GIF, WebP, BMP), not from the file name.
    /// Symbolic links are followed. Anything but a regular file is rejected before it is opened, so a FIFO
    /// cannot block the caller and a device is never touched.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the path is not a regular file, or the file cannot be read, is too large, or is not an
    /// image of a known type.
    pub fn from_file_path(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_file_path_with_limit(path, Self::MAX_FILE_BYTES)
    }

    /// Creates an image from a file of at most `max_bytes`; otherwise like
    /// [`from_file_path`](Self::from_file_path).
    ///
    /// # Errors
    ///
    /// The same as [`from_file_path`](Self::from_file_path).
    pub fn from_file_path_with_limit(
        path: impl AsRef<Path>,
        max_bytes: u64,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        let bytes = read_file(path, max_bytes)?;
        Self::detected(&bytes)
            .ok_or_else(|| Error::invalid_input(format!("{} is {NO_IMAGE}", path.display())))
    }

    fn detected(bytes: &[u8]) -> Option<Self> {
        let url = format!("data:{};base64,{}", media_type(bytes)?, base64(bytes));
        Some(Self { url, detail: ImageDetail::Auto })
    }

    /// Sets the resolution at which the model processes the image.
    #[must_use]
    pub fn with_detail(mut self, detail: ImageDetail) -> Self {
        self.detail = detail;
        self
    }
}

const NO_IMAGE: &str = "not a PNG, JPEG, GIF, WebP or BMP image";

/// Reads a regular file of at most `max_bytes`.
fn read_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Error> {
    // With the reason in the message, too: few programs print the causes of an error about what a user named.
    let unreadable = |error: io::Error| {
        Error::unreadable(format!("cannot read {}: {error}", path.display()), error)
    };
    let too_large = || {
        let message = format!("{} is larger than {max_bytes} bytes", path.display());
        Error::invalid_input(message)
    };
    let check = |metadata: &Metadata| match metadata.is_file() {
        true if metadata.len() > max_bytes => Err(too_large()),
        true => Ok(()),
        false => Err(Error::invalid_input(format!("{} is not a regular file", path.display()))),
    };
    // Checked before opening, because opening a FIFO blocks and opening a device may have side effects; and
    // again after opening, because the path may point elsewhere by then.
    check(&fs::metadata(path).map_err(unreadable)?)?;
    let file = File::open(path).map_err(unreadable)?;
    check(&file.metadata().map_err(unreadable)?)?;
    // The file may still grow, and files of virtual file systems report no size.
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max_bytes { Err(too_large()) } else { Ok(bytes) }
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'B', b'M', ..] => Some("image/bmp"),
        _ => None,
    }
}

/// RFC 4648, section 4, with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte));
        let bits = bits << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_matches_rfc_vectors() {
        let vectors = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, expected) in vectors.into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..length]), expected);
        }
    }
}
