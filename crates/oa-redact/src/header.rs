//! Finds the secrets in request headers.

/// The shortest secret in a header meant for secrets, in bytes. Placeholders such as `EMPTY` or `ollama` are
/// shorter.
pub(crate) const SHORTEST_KEY: usize = 8;

/// The shortest secret in any other header; shorter values count as words.
const SHORTEST_OTHER: usize = 16;

/// Headers whose values say nothing about the caller.
const HARMLESS: [&str; 11] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "host",
    "transfer-encoding",
    "user-agent",
];

/// Returns true if a request header with this name never carries a secret: `Accept`, `Content-Type`,
/// `User-Agent` and a few others.
#[must_use]
pub fn is_harmless(name: &str) -> bool {
    HARMLESS.iter().any(|harmless| name.eq_ignore_ascii_case(harmless))
}

/// Returns the secrets in a header: its value, each word of it except the scheme, and the values of
/// `name=value` pairs, as in cookies and signatures. A server may repeat any of them alone.
pub(crate) fn secrets<'a>(name: &str, value: &'a str) -> impl Iterator<Item = &'a str> {
    let shortest = if carries_key(name) { SHORTEST_KEY } else { SHORTEST_OTHER };
    let value = if is_harmless(name) { "" } else { value.trim() };
    let words = value.split([' ', '\t', ';', ',']).filter(|word| !word.is_empty());
    // The first of several words is the scheme, unless it is the first item of a list or a pair.
    let has_scheme =
        value.split_once([' ', '\t']).is_some_and(|(first, _)| !first.contains([';', ',', '=']));
    let words = words.skip(usize::from(has_scheme));
    let values = words.clone().filter_map(|word| word.split_once('=')).map(|(_, value)| value);
    std::iter::once(value)
        .chain(words)
        .chain(values)
        .map(|secret| secret.trim_matches('"'))
        .filter(move |secret| secret.len() >= shortest)
}

/// Returns true if a header is meant for secrets: `Authorization`, `X-Api-Key`, `Cookie` and similar.
fn carries_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "cookie", "-key", "-secret", "-token"].iter().any(|end| name.ends_with(end))
}
