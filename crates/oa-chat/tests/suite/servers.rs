//! Endpoints and providers.

use oa_chat::{DEFAULT_BASE_URL, Error, ErrorKind, Provider};
use oa_types::BaseUrl;

#[test]
fn addresses_of_providers_are_valid() {
    for &provider in Provider::LOCAL {
        let address = provider.base_url().unwrap();
        assert_eq!(BaseUrl::new(address).unwrap().as_str(), address);
    }
    assert_eq!(Some(DEFAULT_BASE_URL), Provider::LmStudio.base_url());
}

#[cfg(feature = "tls")]
#[test]
fn a_broken_root_certificate_is_an_error_of_build() {
    // Base64 within the marks of PEM, and nothing that is a certificate.
    let pem = "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----";
    for (pem, expected) in
        [(pem, "a root certificate is invalid"), ("", "the PEM data contains no root certificate")]
    {
        let endpoint = oa_chat::Endpoint::builder().base_url("https://gpu/v1");
        let error = endpoint.root_certificates(pem).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn errors_become_records() {
    let wait = std::time::Duration::from_millis(1_500);
    let record = Error::unavailable("all servers are busy", Some(wait)).to_record();
    let json = serde_json::to_value(&record).unwrap();
    let expected = serde_json::json!({
        "kind": "unavailable",
        "message": "all servers are busy",
        "retry_after_ms": 1_500,
        "is_retryable": true,
    });
    assert_eq!(json, expected);
    assert_eq!(Error::new(ErrorKind::ContextOverflow, "").to_record().kind, "context_overflow");
}
