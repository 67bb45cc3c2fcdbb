//! The rules by which requests are accepted.

mod laws;

use http::request::Parts;
use http::{Request, StatusCode};
use oa_access::{Access, Denial, origin_as_sent};

fn request(method: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri("/runs");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).expect("the headers are valid").into_parts().0
}

fn local() -> Access {
    let mut access = Access::new();
    access.only_local_hosts();
    access
}

#[test]
fn only_local_names_are_accepted() {
    let from = |host| local().check(&request("GET", &[("host", host)]));
    for host in [
        "localhost",
        "LOCALHOST:80",
        "a.localhost",
        "127.0.0.1:8000",
        "127.9.9.9",
        "[::1]",
        "[::1]:1",
    ] {
        assert_eq!(from(host), Ok(()), "{host}");
    }
    for host in [
        "",
        "a.example",
        "localhost.a.example",
        "127.0.0.1.a:80",
        "::1",
        "[::1]x",
        "localhost:x",
        "0.0.0.0",
    ] {
        assert_eq!(from(host), Err(Denial::Host), "{host}");
    }
    assert_eq!(local().check(&request("GET", &[])), Err(Denial::Host));
    let twice = [("host", "localhost"), ("host", "a.example")];
    assert_eq!(local().check(&request("GET", &twice)), Err(Denial::Host));
}

/// Requests of HTTP/2 have the host in their URI.
#[test]
fn authority_of_the_uri_is_the_host() {
    let uri = |uri| Request::get(uri).body(()).expect("the URI is valid").into_parts().0;
    assert_eq!(local().check(&uri("http://localhost:8080/runs")), Ok(()));
    assert_eq!(local().check(&uri("http://a.example/runs")), Err(Denial::Host));
}

#[test]
fn allowed_origins_are_names_of_the_server() {
    let mut access = local();
    assert!(access.allow_origin("https://App.example/"));
    assert_eq!(access.check(&request("GET", &[("host", "app.example")])), Ok(()));
    assert_eq!(access.check(&request("GET", &[("host", "b.example")])), Err(Denial::Host));
}

#[test]
fn foreign_origins_may_only_read() {
    let from = |method, origin| {
        let mut access = Access::new();
        access.allow_origin("https://app.example");
        access.check(&request(method, &[("host", "localhost:80"), ("origin", origin)]))
    };
    for origin in ["http://localhost:80", "https://localhost:80", "https://app.example"] {
        assert_eq!(from("POST", origin), Ok(()), "{origin}");
    }
    for origin in ["https://a.example", "null", "", "localhost:80", "http://localhost", "://"] {
        assert_eq!(from("POST", origin), Err(Denial::Origin), "{origin}");
        assert_eq!(from("DELETE", origin), Err(Denial::Origin), "{origin}");
        assert_eq!(from("GET", origin), Ok(()), "{origin}");
    }
    let twice = [("host", "a"), ("origin", "http://a"), ("origin", "http://b")];
    assert_eq!(Access::new().check(&request("POST", &twice)), Err(Denial::Origin));
    let mut open = Access::new();
    assert!(open.allow_origin("*") && open.allows_any_origin());
    assert_eq!(open.check(&request("POST", &twice)), Ok(()));
}

/// An origin that matches no request would block every page without an error.
#[test]
fn origins_that_no_browser_sends_are_refused() {
    for (origin, sent) in [
        (" HTTPS://App.example:443/ ", "https://app.example"),
        ("http://app.example:80", "http://app.example"),
        ("http://app.example:443", "http://app.example:443"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("http://app.example:65535", "http://app.example:65535"),
        ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ("app+x.1://localhost:80", "app+x.1://localhost:80"),
    ] {
        assert_eq!(origin_as_sent(origin).as_deref(), Some(sent), "{origin}");
    }
    for origin in [
        "",
        "null",
        "app.example",
        "://app.example",
        "https://",
        "https:///",
        "https://:443",
        "https://:8080",
        "https://app.example:",
        "https://app.example:port",
        "https://app.example:65536",
        "https://app.example:08080",
        "1://app.example",
        "http://::1",
        "https://app.example/path",
        "https://app.example?x",
        "https://app.example#x",
        "https://user@app.example",
        "https://*.example",
        "*://app.example",
        "http, https://app.example",
        "https://a.example, https://b.example",
    ] {
        let mut access = Access::new();
        assert!(!access.allow_origin(origin), "{origin}");
        assert!(access.origins().is_empty() && !access.allows_any_origin(), "{origin}");
    }
}

#[test]
fn bearer_token_must_match_exactly() {
    let mut access = Access::new();
    access.set_token("sk-0123456789");
    let with = |value| access.check(&request("GET", &[("authorization", value)]));
    for value in ["Bearer sk-0123456789", "bearer  sk-0123456789 "] {
        assert_eq!(with(value), Ok(()), "{value}");
    }
    for value in ["Bearer sk-012345678", "Bearer sk-01234567890", "Basic sk-0123456789", "x", ""] {
        assert_eq!(with(value), Err(Denial::Token), "{value}");
    }
    assert_eq!(access.check(&request("OPTIONS", &[])), Err(Denial::Token));
    let twice = [("authorization", "Bearer sk-0123456789"), ("authorization", "Bearer x")];
    assert_eq!(access.check(&request("GET", &twice)), Err(Denial::Token));
    assert!(!format!("{access:?}").contains("sk-"), "{access:?}");
}

/// No header can carry the line break.
#[test]
fn token_may_come_from_a_file() {
    let mut access = Access::new();
    access.set_token(" sk-0123456789\r\n");
    let with = |value| access.check(&request("GET", &[("authorization", value)]));
    assert_eq!(with("Bearer sk-0123456789"), Ok(()));
    assert_eq!(with("Bearer sk-012345678"), Err(Denial::Token));
}

/// Such as that of a variable that is not set.
#[test]
fn no_request_carries_an_empty_token() {
    for token in ["", "\n"] {
        let mut access = Access::new();
        access.set_token(token);
        for value in ["Bearer ", "Bearer  ", "Bearer", "Bearer x", ""] {
            let request = request("GET", &[("authorization", value)]);
            assert_eq!(access.check(&request), Err(Denial::Token), "{value:?}");
        }
    }
}

/// A client asks its user for a token only after 401.
#[test]
fn denials_have_a_status_and_words() {
    for (denial, status, words) in [
        (Denial::Host, StatusCode::FORBIDDEN, "localhost"),
        (Denial::Origin, StatusCode::FORBIDDEN, "origin"),
        (Denial::Token, StatusCode::UNAUTHORIZED, "token"),
    ] {
        assert_eq!(denial.status(), status);
        assert!(denial.to_string().contains(words), "{denial}");
        assert_eq!(denial.to_string(), denial.reason());
    }
}

#[test]
fn rules_can_be_inspected() {
    let mut access = Access::new();
    assert!(!access.has_token() && !access.allows_any_origin() && access.origins().is_empty());
    access.set_token("sk-0123456789");
    assert!(access.allow_origin("https://App.example/"));
    assert!(access.has_token() && !access.allows_any_origin());
    assert_eq!(access.origins(), ["https://app.example"]);
}
