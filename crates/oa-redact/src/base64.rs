//! Base64 (RFC 4648, section 4).

/// Encodes bytes as base64.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        let digits = [18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift & 63) as usize]));
        let used = group.len() + 1;
        text.extend(&digits[..used]);
        text.extend(std::iter::repeat_n('=', 4 - used));
    }
    text
}

/// Decodes base64; `None` if the text is invalid.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    // `held` counts the low bits of `bits` that are not written yet: at most 12. Older bits stay above them,
    // are masked by `& 255`, and leave at the top of the shift. Bits that remain at the end are ignored.
    let (mut bits, mut held) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 255) as u8);
        }
    }
    Some(bytes)
}

/// Returns the base64 digits of bytes preceded by `shift` other bytes, limited to digits that do not depend on
/// neighboring bytes.
pub(crate) fn inside(bytes: &[u8], shift: usize) -> String {
    let all = [&[0; 2][..shift], bytes].concat();
    // A digit is 6 bits. With `shift` 1, digit 1 still holds 2 bits of the byte before, so the first safe
    // digit is 2. At the end, a digit that is filled up with bits of the next byte is left out.
    let (first, end) = ((shift * 8).div_ceil(6), all.len() * 8 / 6);
    encode(&all)[first..end.max(first)].to_owned()
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_4648_vectors_round_trip() {
        let vectors = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, text) in vectors.into_iter().enumerate() {
            assert_eq!(encode(&b"foobar"[..length]), text);
            assert_eq!(decode(text).as_deref(), Some(&b"foobar"[..length]));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    #[test]
    fn inside_is_independent_of_neighbors() {
        for before in ["", "a", "ab", "abc", "user:"] {
            let inside = inside(b"sk-0123456789", before.len() % 3);
            let whole = encode(format!("{before}sk-0123456789 and more").as_bytes());
            assert!(inside.len() >= 16 && whole.contains(&inside), "{inside} in {whole}");
        }
        assert_eq!(inside(b"", 2), "");
    }

    #[test]
    fn invalid_base64_is_rejected() {
        for text in ["Z", "Zg=", "Zg===", "====", "Zm9v!A==", "Zm 9"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
