/// Puts results into a text, each at the place where its marker stood.
///
/// Places are those of the calls that a scanner of [`Markers::filled_in`](crate::Markers::filled_in) found,
/// in the order in which it found them: bytes of the text around the markers.
///
/// ```
/// use std::sync::Arc;
/// use oa_fallback::{Dialect, Markers, Scanned, fill_in};
///
/// let mut scanner = Markers::filled_in().scanner(Arc::new([]));
/// scanner.push("It is [TOOL:clock] in Oslo.");
/// scanner.finish();
/// let (mut text, mut places) = (String::new(), Vec::new());
/// while let Some(item) = scanner.next_item() {
///     match item {
///         Scanned::Text(piece) => text.push_str(piece),
///         Scanned::Call(call) => places.push(call.place),
///         _ => {}
///     }
/// }
/// assert_eq!(text, "It is  in Oslo.");
/// let results = places.into_iter().map(|place| (place, "12:04"));
/// assert_eq!(fill_in(&text, results), "It is 12:04 in Oslo.");
/// ```
#[must_use]
pub fn fill_in<'a>(text: &str, results: impl IntoIterator<Item = (usize, &'a str)>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut at = 0;
    for (place, result) in results {
        // A place that is none is the next one that is.
        let mut place = place.clamp(at, text.len());
        while !text.is_char_boundary(place) {
            place += 1;
        }
        filled.push_str(&text[at..place]);
        filled.push_str(result);
        at = place;
    }
    filled.push_str(&text[at..]);
    filled
}
