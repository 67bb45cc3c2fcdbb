use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::media::{base64, is_subtype, padded, read_file};

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
        if !media_type.strip_prefix("image/").is_some_and(is_subtype) {
            return Err(Error::invalid_input(format!(
                "the media type must be an image type such as image/png, not {media_type:?}"
            )));
        }
        let data = padded(data)
            .ok_or_else(|| Error::invalid_input("the image data is not valid base64"))?;
        let url = format!("data:{media_type};base64,{data}");
        Ok(Self { url, detail: ImageDetail::Auto })
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
