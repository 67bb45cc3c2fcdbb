//! Keeps keys out of the file, wherever they are repeated.

use std::ops::Range;

use bytes::Bytes;
use http::Uri;
use http::header::HeaderMap;
use oa_redact::MASK;
use oa_types::percent_decoded;
use serde_json::{Map, Value};

/// The known secrets, in every form in which a body or URL may contain them.
#[derive(Clone, Default)]
pub(super) struct Secrets(oa_redact::Secrets);

impl Secrets {
    /// Adds a nonempty secret.
    pub(super) fn add(&mut self, secret: &str) {
        self.0.add(secret);
    }

    /// Adds the keys of a request: the values of its headers, except harmless ones, because any header may carry a
    /// server's key, and those of the members of its query that are secret by name.
    pub(super) fn learn(&mut self, headers: &HeaderMap, uri: &Uri) {
        let members = uri.query().unwrap_or_default().split('&');
        for (name, value) in members.filter_map(|member| member.split_once('=')) {
            if is_secret(name) {
                self.0.add_key(percent_decoded(value).as_deref().unwrap_or(value));
            }
        }
        for (name, value) in headers {
            // Not `to_str`, which accepts only ASCII.
            if let Ok(value) = std::str::from_utf8(value.as_bytes()) {
                self.0.add_header(name.as_str(), value);
            }
        }
    }

    /// Masks the secrets in a text.
    pub(super) fn text(&self, text: &str) -> String {
        let bytes = self.bytes(text.as_bytes(), &mut []);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Masks the secrets in a path with a query, including members that are secret by name.
    pub(super) fn target(&self, target: &str) -> String {
        let masked = self.text(target);
        let Some((path, query)) = masked.split_once('?') else { return masked };
        let members = query.split('&').map(|member| match member.split_once('=') {
            Some((name, value)) if is_secret(name) && !value.is_empty() => {
                format!("{name}={MASK}")
            }
            _ => member.to_owned(),
        });
        format!("{path}?{}", members.collect::<Vec<_>>().join("&"))
    }

    /// Masks the secrets in JSON, and sorts its members.
    pub(super) fn json(&self, value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.json(item)).collect(),
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(name, _)| name.as_str());
                let masked = |(name, value): (&String, _)| (self.text(name), self.json(value));
                Value::Object(members.into_iter().map(masked).collect::<Map<_, _>>())
            }
            Value::Number(number) if !self.spans(number.to_string().as_bytes()).is_empty() => {
                Value::from(MASK)
            }
            Value::String(text) => Value::from(self.text(text)),
            Value::Bool(_) | Value::Null | Value::Number(_) => value.clone(),
        }
    }

    /// Masks the secrets in bytes. Borders move along; those inside a secret move to the end of its mask.
    pub(super) fn bytes(&self, bytes: &[u8], borders: &mut [usize]) -> Bytes {
        // For example, with the secret `0123456789`:
        //
        //     ab 0123456789 cd     borders 3, 8, 15
        //     ab **** cd           borders 3, 7, 9
        //
        let spans = self.spans(bytes);
        let mut masked = Vec::with_capacity(bytes.len());
        let mut from = 0;
        let mut next = 0;
        for span in spans {
            // Borders are sorted.
            while let Some(border) = borders.get_mut(next).filter(|border| **border <= span.start) {
                *border = masked.len() + *border - from;
                next += 1;
            }
            masked.extend_from_slice(&bytes[from..span.start]);
            masked.extend_from_slice(MASK.as_bytes());
            while let Some(border) = borders.get_mut(next).filter(|border| **border < span.end) {
                *border = masked.len();
                next += 1;
            }
            from = span.end;
        }
        for border in &mut borders[next..] {
            *border = masked.len() + *border - from;
        }
        masked.extend_from_slice(&bytes[from..]);
        masked.into()
    }

    /// Finds the secrets, from left to right, merging adjacent ones.
    fn spans(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut spans = bearer_tokens(bytes);
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            let found = self.0.spans(chunk.valid()).into_iter();
            spans.extend(found.map(|span| at + span.start..at + span.end));
            at += chunk.valid().len() + chunk.invalid().len();
        }
        spans.sort_by_key(|span| span.start);
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(spans.len());
        for span in spans {
            match apart.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => apart.push(span),
            }
        }
        apart
    }
}

/// Finds text after the word `Bearer` that looks like a token rather than a word.
fn bearer_tokens(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    for (at, window) in bytes.windows(SCHEME.len()).enumerate() {
        if !window.eq_ignore_ascii_case(SCHEME) {
            continue;
        }
        let start = at + SCHEME.len();
        let spaces = bytes[start..].iter().take_while(|byte| **byte == b' ').count();
        let start = start + spaces;
        let length = bytes[start..].iter().take_while(|byte| is_of_token(**byte)).count();
        let token = &bytes[start..start + length];
        let is_word = length < TELLING && token.iter().all(u8::is_ascii_alphabetic);
        if spaces > 0 && !is_word {
            spans.push(start..start + length);
        }
    }
    spans
}

/// Returns true if a byte may be part of a token, according to RFC 6750.
fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

/// Returns true for the name of a query member that holds a secret, such as `tavilyApiKey` or `client_secret`.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_ENDS.iter().any(|end| name.ends_with(end))
}

const SCHEME: &[u8] = b"bearer";
/// The ends of the names of secret query members.
const SECRET_ENDS: [&str; 5] = ["key", "password", "secret", "signature", "token"];
/// From this length on, anything after `Bearer` counts as a key.
const TELLING: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk/0123456789+abc\"d";

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add(KEY);
        secrets
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(secrets().text(text), expected);
        assert_eq!(secrets().text(expected), expected, "masking is done once");
    }

    #[test]
    fn a_secret_goes_in_every_spelling() {
        check(&format!("a {KEY}{KEY} b"), "a **** b");
        check(&format!("{{\"key\":{}}}", Value::from(KEY)), "{\"key\":\"****\"}");
        check(r#""sk\/0123456789+abc\"d""#, r#""****""#);
        check("?q=sk%2F0123456789%2Babc%22d&x", "?q=****&x");
        check("cut off at sk/01234567", "cut off at ****");
        check("the sk/0123 is too short to tell", "the sk/0123 is too short to tell");
    }

    #[test]
    fn bearer_tokens_are_masked() {
        check("authorization: Bearer abc.def-1=\n", "authorization: Bearer ****\n");
        check("bearer  x1, BEARER abcdefgh", "bearer  ****, BEARER ****");
        check("the bearer of bad news; Bearer", "the bearer of bad news; Bearer");
    }

    #[test]
    fn members_of_a_query_go_by_their_names() {
        let masked = secrets().target("/v1/models?key=abc&alt=sse&api-key=x&token=");
        assert_eq!(masked, "/v1/models?key=****&alt=sse&api-key=****&token=");
        let masked =
            secrets().target("/mcp?tavilyApiKey=a&client_secret=b&X-Amz-Signature=c&keys=d");
        assert_eq!(masked, "/mcp?tavilyApiKey=****&client_secret=****&X-Amz-Signature=****&keys=d");
    }

    #[test]
    fn names_and_numbers_of_json_are_masked_too() {
        let mut secrets = secrets();
        secrets.add("12345678");
        let value = serde_json::json!({ KEY: [1234567890, 12, null, true, KEY] });
        assert_eq!(secrets.json(&value).to_string(), r#"{"****":["****",12,null,true,"****"]}"#);
    }

    #[test]
    fn keys_are_learned_from_requests() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "Bearer 0123456789".parse().unwrap());
        headers.insert("x-api-key", "abcdefgh".parse().unwrap());
        headers.insert("api-key", "none".parse().unwrap());
        headers.insert("x-other", "otherwise".parse().unwrap());
        headers.insert("x-tenant", "tenant-0123456789".parse().unwrap());
        headers.insert("cookie", "theme=dark; session=fedcba9876".parse().unwrap());
        headers.insert("content-type", "application/json".parse().unwrap());
        headers.insert("x-secret", http::HeaderValue::from_bytes("schlüssel".as_bytes()).unwrap());
        let mut secrets = Secrets::default();
        let uri = Uri::from_static("/v1?key=query%2Fkey&q=harmless-value&token=short&api_key=a%");
        secrets.learn(&headers, &uri);
        let text = "0123456789 abcdefgh none otherwise tenant-0123456789 fedcba9876 application/json schlüssel";
        let expected = "**** **** none otherwise **** **** application/json ****";
        assert_eq!(secrets.text(text), expected);
        let text = "query/key query%2fkey harmless-value short a%";
        assert_eq!(secrets.text(text), "**** **** harmless-value short a%");
    }

    #[test]
    fn masking_moves_piece_boundaries() {
        let mut secrets = Secrets::default();
        secrets.add("0123456789");
        let text = b"ab 0123456789 cd 0123456789";
        for (border, expected) in
            [(0, 0), (2, 2), (3, 3), (4, 7), (12, 7), (13, 7), (15, 9), (17, 11)]
        {
            let mut borders = [border];
            assert_eq!(secrets.bytes(text, &mut borders), "ab **** cd ****");
            assert_eq!(borders, [expected], "{border}");
        }
    }
}
