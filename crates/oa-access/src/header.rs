//! Headers of a request.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use subtle::ConstantTimeEq as _;

/// Returns true if a request carries this bearer token. White space around the token is ignored, as around the value of
/// a header: a token from a file may end with a line break. No request carries an empty token.
///
/// Tokens of equal length are compared in constant time, so that a token cannot be guessed byte by byte.
#[must_use]
pub fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let given = single(headers, AUTHORIZATION).and_then(|value| {
        let (scheme, given) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(given.trim())
    });
    given.is_some_and(|given| {
        !given.is_empty() && bool::from(given.as_bytes().ct_eq(token.trim().as_bytes()))
    })
}

/// Returns the value of a header that occurs exactly once. Of a header that occurs twice, a proxy in front may have
/// checked the other value.
#[must_use]
pub fn single(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}
