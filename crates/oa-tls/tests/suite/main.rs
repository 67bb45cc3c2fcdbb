//! Certificates that are read, rejected and trusted.

use std::error::Error;
use std::sync::Arc;

use oa_tls::{Roots, Trust};

fn certificate(name: &str) -> Result<String, rcgen::Error> {
    Ok(rcgen::generate_simple_self_signed([name.to_owned()])?.cert.pem())
}

#[test]
fn certificates_are_read_from_pem() {
    let both = certificate("a.test").unwrap() + &certificate("b.test").unwrap();
    let mut roots = Roots::from_pem(both.as_bytes()).unwrap();
    roots.extend(Roots::from_pem(certificate("c.test").unwrap().as_bytes()).unwrap());
    assert_eq!(format!("{roots:?}"), "Roots(3)");
}

#[test]
fn invalid_certificates_are_rejected() {
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    for none in ["", "not PEM", key.as_str()] {
        let error = Roots::from_pem(none.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "the PEM data contains no root certificate");
        assert!(error.source().is_none());
    }
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for bad in [broken.to_owned(), certificate("a.test").unwrap() + broken] {
        let error = Roots::from_pem(bad.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "a root certificate is invalid");
        assert!(error.source().is_some());
    }
}

#[test]
fn configuration_is_loaded_once() {
    let roots = Roots::from_pem(certificate("a.test").unwrap().as_bytes()).unwrap();
    let trust = Trust::new(roots, b"postgresql");
    assert!(trust.loaded().is_none());
    let config = trust.load().unwrap();
    assert_eq!(config.alpn_protocols, [b"postgresql"]);
    assert!(Arc::ptr_eq(&config, &trust.loaded().unwrap()));
}
