//! Upper bounds on the memory that JSON takes as a [`Value`].
//!
//! A value takes more memory than its text: `0,` is two bytes of text and 32 to 144 bytes in an array. To limit
//! untrusted JSON, compare these bounds with a limit, not the length of the text.
//!
//! All functions return upper bounds, whichever kind of map `serde_json` is built with.

use serde_json::{Map, Value};

/// The nesting limit of `serde_json`.
const DEPTH: usize = 128;

const VALUE: usize = size_of::<Value>();

/// A list and its first item. `Vec` allocates room for four.
pub const LIST: usize = 4 * VALUE;

/// Each further item of a list, whose capacity may be twice its length.
pub const ITEM: usize = 2 * VALUE;

/// True if maps keep the order of their members (the `preserve_order` feature): each map is then a list plus a
/// hash table, otherwise a B-tree.
const IS_ORDERED: bool = size_of::<Map<String, Value>>() > 3 * size_of::<usize>();

/// A member in the list of an ordered map, with its hash.
const ENTRY: usize = size_of::<usize>() + size_of::<String>() + VALUE;

/// A bucket of the hash table: an index and a control byte.
const BUCKET: usize = size_of::<usize>() + 1;

/// The size of an ordered map with room for this many members. The table has a few more bytes at its end.
const fn ordered(members: usize, buckets: usize) -> usize {
    members * ENTRY + buckets * BUCKET + 32
}

/// Members that fit into the first allocation: a B-tree node holds eleven, a table of sixteen buckets fourteen.
const IN_FIRST: usize = if IS_ORDERED { 14 } else { 11 };

/// An object and its first eleven members.
pub const OBJECT: usize =
    if IS_ORDERED { ordered(IN_FIRST, 16) } else { IN_FIRST * (size_of::<String>() + VALUE) + 16 };

/// Each further member of an object. The list and table may have twice the room they need; B-tree nodes may be
/// half empty, and other nodes point to them.
pub const MEMBER: usize = if IS_ORDERED { 2 * ENTRY + 4 * BUCKET } else { OBJECT / 4 };

/// The most memory that one byte of JSON can take.
pub const MAX_PER_BYTE: usize = if 1 + LIST > OBJECT / 3 { 1 + LIST } else { OBJECT / 3 };

/// Returns an upper bound, in bytes, on the memory that `json` takes as a value.
///
/// For text that is not valid JSON, the bound covers what a parser builds before it notices.
///
/// ```
/// use oa_json::held;
///
/// assert_eq!(held::by_json("\"plain text\""), 12);
/// assert!(held::by_json("[0,0,0,0]") > 100);
/// ```
#[must_use]
pub fn by_json(json: &str) -> usize {
    // One pass over the signs of JSON, without building anything: `{"a":[0,0]}` takes its 11 bytes, an
    // `OBJECT` for the first colon, a `LIST` for `[` and an `ITEM` for the comma.
    // Each byte counts, because it may belong to a string or a number.
    let mut held = json.len();
    // The members so far of each open object; 0 in a list, which tells what a comma separates.
    let mut members = [0_usize; DEPTH];
    let mut depth = 0;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => loop {
                match bytes.next() {
                    None => return held,
                    Some(b'"') => break,
                    Some(b'\\') => _ = bytes.next(),
                    Some(_) => {}
                }
            },
            b'[' | b'{' => {
                depth += 1;
                // A parser gives up here, so the rest takes nothing, and `depth` stays a valid index.
                let Some(members) = members.get_mut(depth) else { return held };
                *members = 0;
                held += if byte == b'[' { LIST } else { 0 };
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if members[depth] == 0 => held += ITEM,
            b':' => {
                members[depth] += 1;
                held += by_member(members[depth]);
            }
            _ => {}
        }
    }
    held
}

/// Returns true if `json` takes at most `bytes` bytes of memory as a value.
///
/// Fast for small texts, which are judged by their length or by their number of brackets, commas and colons.
#[must_use]
pub fn fits(json: &str, bytes: usize) -> bool {
    json.len() <= bytes / MAX_PER_BYTE || by_signs(json) <= bytes || by_json(json) <= bytes
}

/// Returns a larger bound than [`by_json`], but faster: it also counts characters inside strings, and counts each
/// member as the first of its object.
fn by_signs(json: &str) -> usize {
    let mut held = json.len();
    // Counts of one byte do not overflow in this many bytes, and many of them are added at once.
    for bytes in json.as_bytes().chunks(u8::MAX.into()) {
        let count =
            |sign| usize::from(bytes.iter().map(|byte| u8::from(*byte == sign)).sum::<u8>());
        held += count(b'[') * LIST + count(b',') * ITEM + count(b':') * OBJECT;
    }
    held
}

/// Returns an upper bound on the heap memory of a value, in bytes, excluding the value itself.
#[must_use]
pub fn by_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 0,
        // With the `arbitrary_precision` feature a number is stored as text.
        Value::Number(number) if size_of_val(number) > 16 => number.to_string().len(),
        Value::Number(_) => 0,
        Value::String(text) => text.capacity(),
        Value::Array(list) => list.capacity() * VALUE + list.iter().map(by_value).sum::<usize>(),
        Value::Object(members) => by_members(members),
    }
}

/// Returns an upper bound on the memory of an object's members, in bytes.
#[must_use]
pub fn by_members(members: &Map<String, Value>) -> usize {
    let members = members.iter().zip(1..);
    let member = |((name, value), count): ((&String, &Value), usize)| {
        name.capacity() + by_value(value) + by_member(count)
    };
    members.map(member).sum()
}

/// Returns an upper bound on the memory of a member with this name in a map, in bytes, excluding its value.
#[must_use]
pub fn member(name: &str) -> usize {
    OBJECT + name.len()
}

/// Returns how much a map grows by when it gains its `count`-th member.
pub(crate) fn by_member(count: usize) -> usize {
    match count {
        // A table starts with four buckets and doubles when seven eighths are taken.
        1 if IS_ORDERED => ordered(3, 4),
        4 if IS_ORDERED => ordered(7, 8) - ordered(3, 4),
        8 if IS_ORDERED => OBJECT - ordered(7, 8),
        1 if !IS_ORDERED => OBJECT,
        _ if count <= IN_FIRST => 0,
        // The first allocation is full: from here on, earlier members count as further ones, too.
        _ if count == IN_FIRST + 1 => count * MEMBER,
        _ => MEMBER,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Text of the signs of JSON and little else, which is JSON by chance only.
    fn signs() -> impl Strategy<Value = String> {
        proptest::string::string_regex("[\\[\\]{},:\"\\\\0a]{0,600}").expect("it is a pattern")
    }

    proptest! {
        /// The fast bound is never lower than the exact one.
        #[test]
        fn fast_bound_is_larger(json in signs()) {
            prop_assert!(by_signs(&json) >= by_json(&json));
        }

        /// Members of one object cost most where a node is full.
        #[test]
        fn fast_bound_is_larger_for_large_objects(count in 0..600_usize) {
            let members: Vec<String> = (0..count).map(|_| "\"\":0".to_owned()).collect();
            let json = format!("{{{}}}", members.join(","));
            prop_assert!(by_signs(&json) >= by_json(&json));
        }
    }
}
