/// Decodes percent-encoding (RFC 3986, section 2.1). A `%` without two digits stands for itself. `None` if the bytes are
/// not UTF-8.
#[doc(hidden)]
#[must_use]
pub fn percent_decoded(text: &str) -> Option<String> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let byte = match after {
            [high, low, behind @ ..] if *first == b'%' => digit(high).zip(digit(low)).map(|both| {
                rest = behind;
                both.0 << 4 | both.1
            }),
            _ => None,
        };
        bytes.push(byte.and_then(|byte| u8::try_from(byte).ok()).unwrap_or(*first));
    }
    String::from_utf8(bytes).ok()
}
