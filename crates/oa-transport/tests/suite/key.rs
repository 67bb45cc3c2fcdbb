use std::error::Error as _;

use http::header::AUTHORIZATION;
use oa_transport::{ApiKey, ErrorKind, RequestBody};

#[test]
fn keys_are_masked_in_debug_output() {
    let key = ApiKey::new("sk-geheim").unwrap();
    assert_eq!(format!("{key:?}"), "ApiKey(****)");
    assert_eq!(key.header_value(), "Bearer sk-geheim");
    assert!(key.header_value().is_sensitive());
    let request = http::Request::post("http://host/")
        .header(AUTHORIZATION, key.header_value())
        .body(RequestBody::new("geheim"))
        .unwrap();
    assert!(!format!("{request:?}").contains("geheim"));
}

#[test]
fn keys_invalid_in_headers_are_rejected() {
    for key in
        ["", "geheim\n", "ge heim", "geheim\0", "geh\u{e9}im", "geheim\u{2013}", "geheim\u{7f}"]
    {
        let error = ApiKey::new(key).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidKey);
        assert!(error.source().is_none());
        assert!(!format!("{error} {error:?}").contains("geh"), "{error:?}");
    }
}
