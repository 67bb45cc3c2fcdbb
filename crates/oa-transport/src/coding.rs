use http::HeaderMap;
use http::header::TRANSFER_ENCODING;

/// The names of codings that servers apply.
const KNOWN: [&str; 7] = ["br", "compress", "deflate", "gzip", "x-compress", "x-gzip", "zstd"];

/// Returns the transfer coding that a body still has when its chunks were decoded: one that we cannot decode, and never
/// ask for.
pub(crate) fn unrequested(headers: &HeaderMap) -> Option<&'static str> {
    let values = headers.get_all(TRANSFER_ENCODING).iter();
    let codings = values.flat_map(|value| value.to_str().unwrap_or("?").split(','));
    // Two programs in a row may both announce chunks, which are written once. `identity` is of older versions.
    let is_none = |coding: &str| {
        ["", "chunked", "identity"].iter().any(|none| coding.eq_ignore_ascii_case(none))
    };
    let coding = codings.map(str::trim).find(|coding| !is_none(coding))?;
    let name = coding.split(';').next().unwrap_or_default().trim();
    let known = KNOWN.into_iter().find(|known| name.eq_ignore_ascii_case(known));
    Some(known.unwrap_or("an unknown one"))
}
