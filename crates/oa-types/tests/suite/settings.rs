//! Settings are validated once, at the edge.

use std::collections::HashSet;

use oa_types::{BaseUrl, ErrorKind, ModelName, Temperature};

#[test]
fn trailing_slashes_are_removed() {
    for (given, kept) in [
        ("http://localhost:1234/v1", "http://localhost:1234/v1"),
        (" http://localhost:1234/v1// ", "http://localhost:1234/v1"),
        ("HTTPS://Host", "https://Host"),
        ("http://127.0.0.1", "http://127.0.0.1"),
        ("http://[::1]:8080/api/v1/", "http://[::1]:8080/api/v1"),
        ("http://[::1]/v1", "http://[::1]/v1"),
    ] {
        let url = BaseUrl::new(given).unwrap();
        assert_eq!(url.as_str(), kept);
        assert_eq!(url.is_https(), kept.starts_with("https"));
    }
}

#[test]
fn invalid_base_urls_are_rejected() {
    for given in [
        "",
        "host",
        "//host",
        "http://",
        "http:///path",
        "http://:80",
        "http://host:99999",
        "http://host:x",
        "http://host:",
        "http://h:+80",
        "http://h:-0",
        "http://a:1:2",
        "http://::1",
        "http://[::1",
        "http://[]",
        "http://[[::1]]",
        "http://[::1]x:80",
        "http://[::1]:+80",
        "http://a]:80",
        "ws://host",
        "file:///etc",
        "http://a b",
        "http://host\t/",
        "http://user:pass@host",
        "http://h?x",
        "http://h#x",
    ] {
        let error = BaseUrl::new(given).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{given}");
        assert!(!error.to_string().contains("pass@"), "{error}");
    }
}

#[test]
fn all_conversions_validate_alike() {
    let name = ModelName::new("qwen3:8b").unwrap();
    assert_eq!(" qwen3:8b".parse::<ModelName>().unwrap(), name);
    assert_eq!(ModelName::try_from("qwen3:8b").unwrap(), name);
    assert_eq!(name.as_ref(), "qwen3:8b");
    assert!("".parse::<ModelName>().is_err() && ModelName::try_from("").is_err());

    let url = BaseUrl::new("http://host/v1").unwrap();
    assert_eq!("http://host/v1/".parse::<BaseUrl>().unwrap(), url);
    assert_eq!(BaseUrl::try_from("http://host/v1").unwrap(), url);
    assert_eq!(url.as_ref(), "http://host/v1");
    assert!("host".parse::<BaseUrl>().is_err() && BaseUrl::try_from("host").is_err());
    assert!(HashSet::from([url.clone()]).contains(&url));
    assert!(HashSet::from([name.clone()]).contains(&name));
}

#[test]
fn names_and_temperatures_have_bounds() {
    assert_eq!(ModelName::new(" qwen3:8b ").unwrap().as_str(), "qwen3:8b");
    for name in ["", "  ", "a\nb", "a\0"] {
        assert!(ModelName::new(name).is_err(), "{name:?}");
    }
    assert_eq!(Temperature::new(2.0).map(Temperature::value).ok(), Some(2.0));
    for temperature in [-0.1, 2.1, f32::NAN, f32::INFINITY] {
        assert!(Temperature::new(temperature).is_err(), "{temperature}");
    }
}

/// Wherever a password or a key is in an address that is rejected, the error does not show it.
#[test]
fn rejected_urls_hide_passwords() {
    for secret in ["s3cret", "s3cret?1", "s3cret#1", "s3cret@1", &"s3cret".repeat(100)] {
        for url in [
            format!("http://me:{secret}@host/v1"),
            format!("http://{secret}@host/v1?a=b"),
            format!("http://host/v1?key={secret}"),
            format!("http://host/v1#{secret}"),
            format!("http://host/v1?mail=a@b&key={secret}"),
            format!("http://me:{secret}@host/v1?mail=a@b&key={secret}"),
        ] {
            let error = BaseUrl::new(&url).expect_err("it is rejected").to_string();
            assert!(!error.contains("s3cret"), "{url}: {error}");
        }
    }
    let error = BaseUrl::new("ftp://host/v1").expect_err("it is rejected").to_string();
    assert!(error.ends_with(": \"ftp://host/v1\""), "{error}");
}
