//! The memory that a call takes while it is read.

use oa_json::{LenientValue, held};

/// Returns an upper bound for the memory of a call while it is read, as written values and as JSON, in bytes. It
/// counts every syntax character, because it does not know which ones are inside strings.
pub(crate) fn held_by(text: &str) -> usize {
    /// The size of a named value as it was written.
    const WRITTEN: usize = 2 * (size_of::<String>() + size_of::<LenientValue>());
    let by_sign = |byte: u8| match byte {
        b',' => held::ITEM + WRITTEN,
        b':' | b'=' => held::MEMBER + WRITTEN,
        b'[' => held::LIST + 2 * WRITTEN,
        b'{' | b'<' | b'(' => held::OBJECT + 2 * WRITTEN,
        _ => 0,
    };
    text.bytes().map(by_sign).sum::<usize>() + 3 * text.len()
}
