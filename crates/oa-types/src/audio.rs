use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::media::{base64, is_subtype, padded, read_file};

/// A recording, such as a spoken question, for a model that takes audio.
///
/// Servers do not fetch recordings, so the data is part of the message.
///
/// ```
/// use oa_types::AudioBlock;
///
/// let audio = AudioBlock::from_base64("UklGRg==", "audio/x-wav")?;
/// assert_eq!(audio.format, "wav");
/// # Ok::<(), oa_types::Error>(())
/// ```
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AudioBlock {
    /// The bytes of the file in base64 (RFC 4648, section 4).
    pub data: String,
    /// The name of the file format, such as `wav` or `mp3`. llama.cpp accepts only these two.
    pub format: String,
}

impl AudioBlock {
    /// The largest file that [`from_file_path`](Self::from_file_path) reads: 20 MiB, which is ten minutes of 16-bit mono
    /// at 16 kHz.
    pub const MAX_FILE_BYTES: u64 = 20 << 20;

    /// Creates a recording from base64 data and its media type (such as `audio/wav`), whose parameters are ignored.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the data is empty or not base64, or the media type is not an audio type. Missing padding is
    /// added.
    pub fn from_base64(data: impl AsRef<str>, media_type: impl AsRef<str>) -> Result<Self, Error> {
        let media_type = media_type.as_ref();
        let format = format_of(media_type).ok_or_else(|| {
            Error::invalid_input(format!(
                "the media type must be an audio type such as audio/wav, not {media_type:?}"
            ))
        })?;
        let data = padded(data.as_ref())
            .ok_or_else(|| Error::invalid_input("the audio data is not valid base64"))?;
        Ok(Self { data: data.into_owned(), format })
    }

    /// Creates a recording from a URL such as `data:audio/wav;base64,UklGRg==`.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is not a `data:` URL of base64, and the errors of [`from_base64`](Self::from_base64).
    pub fn from_data_url(url: impl AsRef<str>) -> Result<Self, Error> {
        let url = url.as_ref();
        let scheme = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:"));
        let parts = scheme.and_then(|scheme| url[scheme.len()..].split_once(";base64,"));
        let (media_type, data) = parts.ok_or_else(|| {
            Error::invalid_input("the URL of audio must be a data: URL of base64")
        })?;
        Self::from_base64(data, media_type)
    }

    /// Creates a recording from the bytes of an audio file. The format is detected as in
    /// [`from_file_path`](Self::from_file_path).
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the bytes are not audio of a known format.
    pub fn from_bytes(bytes: impl AsRef<[u8]>) -> Result<Self, Error> {
        let audio = Self::detected(bytes.as_ref());
        audio.ok_or_else(|| Error::invalid_input(format!("the data is {NO_AUDIO}")))
    }

    /// Creates a recording from a file of at most [`MAX_FILE_BYTES`](Self::MAX_FILE_BYTES). Blocks while reading.
    ///
    /// The format is detected from the first bytes (WAV, MP3, FLAC, Ogg, M4A, AAC), not from the file name. Only regular
    /// files are read, as by [`ImageBlock::from_file_path`](crate::ImageBlock::from_file_path).
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the path is not a regular file, or the file cannot be read, is too large, or is not audio of a
    /// known format.
    pub fn from_file_path(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_file_path_with_limit(path, Self::MAX_FILE_BYTES)
    }

    /// Creates a recording from a file of at most `max_bytes`; otherwise like
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
            .ok_or_else(|| Error::invalid_input(format!("{} is {NO_AUDIO}", path.display())))
    }

    /// Returns the size of the file in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let padding = self.data.bytes().rev().take_while(|byte| *byte == b'=').count();
        (self.data.len() / 4 * 3).saturating_sub(padding)
    }

    fn detected(bytes: &[u8]) -> Option<Self> {
        Some(Self { data: base64(bytes), format: detect(bytes)?.to_owned() })
    }
}

const NO_AUDIO: &str = "not a WAV, MP3, FLAC, Ogg, M4A or AAC file";

/// Returns the file format that chat APIs call by this name.
fn format_of(media_type: &str) -> Option<String> {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let (kind, subtype) = essence.split_once('/')?;
    if !kind.eq_ignore_ascii_case("audio") || !is_subtype(subtype) {
        return None;
    }
    let subtype = subtype.to_ascii_lowercase();
    let name = subtype.strip_prefix("x-").unwrap_or(&subtype);
    Some(match name {
        "mpeg" | "mpeg3" => "mp3".to_owned(),
        "mp4" => "m4a".to_owned(),
        "wave" | "vnd.wave" | "pn-wav" => "wav".to_owned(),
        name => name.to_owned(),
    })
}

fn detect(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("wav"),
        [b'I', b'D', b'3', ..] => Some("mp3"),
        [b'f', b'L', b'a', b'C', ..] => Some("flac"),
        [b'O', b'g', b'g', b'S', ..] => Some("ogg"),
        [_, _, _, _, b'f', b't', b'y', b'p', b'M', b'4', b'A' | b'B', ..] => Some("m4a"),
        // The frame header of MPEG audio: eleven bits of synchronization, and the layer, which is 0 for AAC.
        [0xFF, second, ..] if second & 0xE6 == 0xE2 => Some("mp3"),
        [0xFF, second, ..] if second & 0xF6 == 0xF0 => Some("aac"),
        _ => None,
    }
}
