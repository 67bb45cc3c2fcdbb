/// Inserts results into a text, each at the place of its marker.
///
/// The offsets are those of the calls found by a scanner of [`Markers::inline`](crate::Markers::inline), in the order
/// found, in bytes of the text without the markers. An offset that is not on a character boundary is rounded up to the
/// next one.
///
/// ```
/// use std::sync::Arc;
/// use oa_fallback::{Dialect, Markers, Scanned, inline_results};
///
/// let mut scanner = Markers::inline().scanner(Arc::new([]));
/// scanner.push("It is [TOOL:clock] in Oslo.");
/// scanner.finish();
/// let (mut text, mut offsets) = (String::new(), Vec::new());
/// while let Some(item) = scanner.next_item() {
///     match item {
///         Scanned::Text(piece) => text.push_str(piece),
///         Scanned::Call(call) => offsets.push(call.offset),
///         _ => {}
///     }
/// }
/// assert_eq!(text, "It is  in Oslo.");
/// let results = offsets.into_iter().map(|offset| (offset, "12:04"));
/// assert_eq!(inline_results(&text, results), "It is 12:04 in Oslo.");
/// ```
#[must_use]
pub fn inline_results<'a>(
    text: &str,
    results: impl IntoIterator<Item = (usize, &'a str)>,
) -> String {
    let mut inlined = String::with_capacity(text.len());
    let mut at = 0;
    for (offset, result) in results {
        let mut offset = offset.clamp(at, text.len());
        while !text.is_char_boundary(offset) {
            offset += 1;
        }
        inlined.push_str(&text[at..offset]);
        inlined.push_str(result);
        at = offset;
    }
    inlined.push_str(&text[at..]);
    inlined
}
