//! Escapes in texts, which may be cut anywhere.

/// Takes as much of an escape as is missing: a letter, four digits behind a `u`, and the second half of a
/// pair. Returns how many bytes that were.
pub(super) fn more_of_escape(escape: &mut String, rest: &str) -> usize {
    let mut taken = 0;
    for next in rest.chars() {
        if is_whole(escape) {
            break;
        }
        escape.push(next);
        taken += next.len_utf8();
    }
    taken
}

pub(super) fn is_whole(escape: &str) -> bool {
    let bytes = escape.as_bytes();
    let length = match bytes {
        [_] => 2,
        [_, b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'b' | b'A'..=b'B', ..] => 12,
        [_, b'u', ..] => 6,
        _ => 2,
    };
    bytes.len() >= length
}
