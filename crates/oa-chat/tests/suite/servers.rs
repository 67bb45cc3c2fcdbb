//! Endpoints and providers.

use oa_chat::{DEFAULT_BASE_URL, Provider, ServerProfile};
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
fn build_rejects_broken_root_certificates() {
    // Base64 within the marks of PEM, and nothing that is a certificate.
    let pem = "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----";
    for (pem, expected) in
        [(pem, "a root certificate is invalid"), ("", "the PEM data contains no root certificate")]
    {
        let endpoint = oa_chat::Endpoint::builder().base_url("https://gpu/v1");
        let error = endpoint.root_certificates(pem).build().unwrap_err();
        assert_eq!(error.kind(), oa_chat::ErrorKind::Config);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn profiles_may_begin_with_a_byte_order_mark() {
    let json = ServerProfile::new("http://gpu/v1", "any").to_json();
    let read = |json: &str| ServerProfile::from_json(json).map(|profile| profile.to_json());
    assert_eq!(read(&format!("\u{feff}{json}")).unwrap(), read(&json).unwrap());
}
