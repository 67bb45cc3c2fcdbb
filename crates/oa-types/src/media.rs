//! Data of images and audio: base64, media types and files.

use std::borrow::Cow;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::Path;

use crate::error::Error;

/// Returns true for the second half of a media type, such as `svg+xml`.
pub(crate) fn is_subtype(subtype: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    !subtype.is_empty() && subtype.chars().all(is_token)
}

/// Returns base64 data with its padding, which is added if it is missing; `None` if the data is empty or not base64.
pub(crate) fn padded(data: &str) -> Option<Cow<'_, str>> {
    let text = data.trim_end_matches('=');
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
    let (given, padding) = (data.len() - text.len(), text.len().wrapping_neg() % 4);
    // No data ends with a single letter of a group of four.
    let is_whole = !text.is_empty() && padding < 3 && (given == 0 || given == padding);
    if !is_whole || !text.chars().all(is_base64) {
        return None;
    }
    Some(if given == padding { data.into() } else { format!("{text}{}", &"=="[..padding]).into() })
}

/// Reads a regular file of at most `max_bytes`.
pub(crate) fn read_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Error> {
    let unreadable = |error| Error::unreadable(format!("cannot read {}", path.display()), error);
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

/// RFC 4648, section 4, with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
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
