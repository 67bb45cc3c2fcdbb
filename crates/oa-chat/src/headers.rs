//! Headers that a caller sets: which ones are rejected, and which values are secrets.

use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use oa_redact::Secrets;
use oa_transport::ApiKey;
use oa_types::BaseUrl;

use crate::error::{Error, Result};

/// Checks a header and marks its value as a secret.
pub(crate) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let name: HeaderName = name.parse().map_err(|_| format!("invalid header name: {name:?}"))?;
    if let Some((_, why)) = OF_TRANSPORT.iter().find(|(of_transport, _)| name == *of_transport) {
        return Err(format!("header {name} cannot be set: {why}"));
    }
    let mut value: HeaderValue =
        value.parse().map_err(|_| format!("the value of header {name} has invalid characters"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

const OF_CONNECTION: &str = "the transport manages connections";
const OF_BODY: &str = "the transport sets it from the body";
const OF_ENCODING: &str = "requests and answers are not compressed; your own transport can do that";

/// Headers that only a transport can set, and the reasons.
const OF_TRANSPORT: [(&str, &str); 11] = [
    ("accept-encoding", OF_ENCODING),
    ("connection", OF_CONNECTION),
    ("content-encoding", OF_ENCODING),
    ("content-length", OF_BODY),
    ("expect", OF_CONNECTION),
    ("keep-alive", OF_CONNECTION),
    ("proxy-connection", OF_CONNECTION),
    ("te", OF_CONNECTION),
    ("trailer", OF_BODY),
    ("transfer-encoding", OF_BODY),
    ("upgrade", OF_CONNECTION),
];

/// Rejects a `Host` that differs from the address: another server would answer, or none.
pub(crate) fn check_host(headers: &HeaderMap, base_url: &BaseUrl) -> Result<()> {
    let Some(host) = headers.get(HOST) else { return Ok(()) };
    let authority =
        base_url.as_str().parse::<Uri>().ok().and_then(|uri| uri.into_parts().authority);
    let is_it = authority.is_some_and(|authority| {
        let host = host.as_bytes();
        let is = |wanted: &str| host.eq_ignore_ascii_case(wanted.as_bytes());
        let usual = if base_url.is_https() { 443 } else { 80 };
        is(authority.as_str())
            || (authority.port_u16() == Some(usual) && is(authority.host()))
            || (authority.port().is_none() && is(&format!("{}:{usual}", authority.host())))
    });
    if is_it {
        return Ok(());
    }
    Err(Error::config(format!("header host cannot differ from the base URL, which is {base_url}")))
}

/// Returns the keys that are masked wherever a server repeats them.
pub(crate) fn secrets(api_key: Option<&ApiKey>, headers: &HeaderMap) -> Secrets {
    let mut secrets = Secrets::new();
    if let Some(key) = api_key {
        secrets.add_key(key.expose());
    }
    for (name, value) in headers {
        // `to_str` rejects all characters beyond ASCII.
        if let Ok(value) = str::from_utf8(value.as_bytes()) {
            secrets.add_header(name.as_str(), value);
        }
    }
    secrets
}
