//! Endpoints and providers.

use std::time::Duration;

use oa_chat::{
    ChatRequest, DEFAULT_BASE_URL, Endpoint, ErrorKind, Provider, RetryConfig, ServerProfile,
    model_names, retry_with_backoff,
};
use oa_testkit::{Framing, MemoryServer, Reply, Script, SocketServer};
use oa_types::{BaseUrl, Message};
use serde_json::json;
use tower::ServiceExt as _;

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
        // Also beside a valid one, before it or after it.
        for pems in [vec![pem], vec![pem, CERTIFICATE], vec![CERTIFICATE, pem]] {
            let endpoint = Endpoint::builder().base_url("https://gpu/v1");
            let endpoint =
                pems.into_iter().fold(endpoint, |endpoint, pem| endpoint.root_certificates(pem));
            let error = endpoint.build().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert_eq!(error.to_string(), expected);
        }
    }
    let valid = Endpoint::builder().base_url("https://gpu/v1").root_certificates(CERTIFICATE);
    valid.root_certificates(CERTIFICATE).build().unwrap();
}

/// A self-signed certificate for `localhost`, whose key is gone.
#[cfg(feature = "tls")]
const CERTIFICATE: &str = "\
    -----BEGIN CERTIFICATE-----\n\
    MIIBgDCCASWgAwIBAgIUD6tIZEsiqugS7azFTuh+UIyoQU0wCgYIKoZIzj0EAwIw\n\
    FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNzExNTUzNloYDzIxMjYxMTAz\n\
    MTE1NTM2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO\n\
    PQMBBwNCAAT2f7bpdJexQGU+lPpVO/oWLlz7uS4c2yPCIMu74BIp6lzgIq7hO4pF\n\
    Klv2hZQwJPA3ZW5+7ElXvEMkCtV6oOkNo1MwUTAdBgNVHQ4EFgQUM/ncNp3vGEQq\n\
    gpct7zB80B2Hgj8wHwYDVR0jBBgwFoAUM/ncNp3vGEQqgpct7zB80B2Hgj8wDwYD\n\
    VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAsjsyPw8qyDv4BdeBD0AD\n\
    Xfv8UyXSnFCQwIUbSeAL2IACIQCnEPSRQ6yTWV8GX9iS40kw4i4khxhcltPC0QyJ\n\
    zbg6Hg==\n\
    -----END CERTIFICATE-----\n";

#[test]
fn profiles_may_begin_with_a_byte_order_mark() {
    let json = ServerProfile::new("http://gpu/v1", "any").to_json();
    let read = |json: &str| ServerProfile::from_json(json).map(|profile| profile.to_json());
    assert_eq!(read(&format!("\u{feff}{json}")).unwrap(), read(&json).unwrap());
}

/// Gateways describe each of their models at length.
#[tokio::test]
async fn lists_of_models_are_bounded() {
    async fn list(count: usize) -> oa_chat::Result<usize> {
        let about = "x".repeat(3_000);
        let models = (0..count).map(|number| json!({ "id": number.to_string(), "about": about }));
        let list = json!({ "data": models.collect::<Vec<_>>() }).to_string();
        let reply = Reply::body(200, "application/json", list);
        let server = MemoryServer::new(Script::new().get("/v1/models", reply));
        let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server).build()?;
        Ok(endpoint.list_models(Default::default()).await?.len())
    }
    assert_eq!(list(1_000).await.unwrap(), 1_000);
    let error = list(1_500).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stream);
    assert!(error.to_string().ends_with("longer than 4 MiB"), "{error}");
}

/// The address of a request, copied from the docs of a server.
#[tokio::test]
async fn whole_addresses_are_explained() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::error(404, "no")));
    let base_url = "http://gpu:8000/v1/chat/completions";
    let endpoint = Endpoint::builder().base_url(base_url).transport(server).build().unwrap();
    let request = ChatRequest::new("any", vec![Message::user("Go.")]);
    let error = endpoint.oneshot(request).await.unwrap_err().to_string();
    assert!(
        error.ends_with("(base_url must end before /chat/completions, which is appended)"),
        "{error}"
    );
}

/// Only the path can have one: `v100` is a graphics card.
#[tokio::test]
async fn hosts_are_no_versions() {
    for (base_url, lacks_version) in [
        ("http://gpu:8000", true),
        ("http://v100:8000", true),
        ("http://v100:8000/api", true),
        ("http://v100:8000/v1", false),
        ("http://gpu/v1beta/openai", false),
    ] {
        let server = MemoryServer::new(Script::new().otherwise(Reply::error(404, "no")));
        let endpoint = Endpoint::builder().base_url(base_url).transport(server).build().unwrap();
        let request = ChatRequest::new("any", vec![Message::user("Go.")]);
        let error = endpoint.oneshot(request).await.unwrap_err().to_string();
        let hint = format!("(base_url is {base_url}; most servers need /v1 at the end)");
        assert_eq!(error.contains(&hint), lacks_version, "{error}");
    }
}

#[test]
fn models_without_a_name_are_left_out() {
    let list = br#"{"data": [{"id": ""}, {"id": "a"}, null, {"id": "", "name": "b"}, {"id": 5}]}"#;
    assert_eq!(model_names(list).unwrap(), ["a", "b"]);
}

/// A bare list is Together's: helixml/helix #386.
#[test]
fn lists_of_models_have_several_forms() {
    let names = |list: &str| model_names(list.as_bytes());
    let both = Some(vec!["a".to_owned(), "b".to_owned()]);
    for list in [
        r#"[{"id":"a"},{"id":"b"}]"#,
        r#"["a","b"]"#,
        r#"{"data":["a","b"]}"#,
        r#"{"data":null,"models":[{"name":"a"},{"name":"b"}]}"#,
    ] {
        assert_eq!(names(list), both, "{list}");
    }
    for none in [r#"{"object":"list","data":null}"#, r#"{"data":[]}"#, "[]"] {
        assert_eq!(names(none), Some(Vec::new()), "{none}");
    }
    for other in [r#"{"error":"no"}"#, r#"{"data":"a"}"#, "{}", "null", r#""a""#] {
        assert_eq!(names(other), None, "{other}");
    }
}

/// Its value would take a hundred times the memory of its text.
#[test]
fn heavy_lists_of_models_are_not_read() {
    let list = |count: usize| format!(r#"{{"data":[{}]}}"#, vec![r#"{"":0}"#; count].join(","));
    assert_eq!(model_names(list(10_000).as_bytes()), Some(Vec::new()));
    assert_eq!(model_names(list(500_000).as_bytes()), None);
}

/// Without TLS, an address with `https` is known to be one, and a request to it fails at once and for good.
#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn https_needs_the_feature_tls() {
    let endpoint = Endpoint::builder().provider(Provider::OpenAi).build().unwrap();
    assert_eq!(endpoint.base_url(), "https://api.openai.com/v1");
    let error = endpoint.list_models(Default::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(!error.is_retryable());
    let expected = "cannot connect to api.openai.com:443: enable the feature `tls` to use https";
    assert_eq!(error.to_string(), expected);
}

/// A list that broke off was not delivered, so it is worth another request. One that lacks only its end can be read.
#[tokio::test]
async fn broken_lists_can_be_retried() {
    let list = json!({ "data": [{ "id": "tiny" }] }).to_string();
    let reply = || Reply::body(200, "application/json", list.clone()).framing(Framing::Chunked);
    let once = RetryConfig::new(1).initial_delay(Duration::from_millis(1));
    for broken in [reply().close_after(0), reply().close_after(9), reply().reset_after(9)] {
        let whole = reply();
        let flaky = Reply::by(move |request| match request.number() {
            1 | 2 => broken.clone(),
            _ => whole.clone(),
        });
        let server = SocketServer::start(Script::new().get("/v1/models", flaky)).await.unwrap();
        let endpoint = Endpoint::builder().base_url(server.base_url()).build().unwrap();
        let list = || endpoint.list_models(Default::default());
        let error = list().await.unwrap_err();
        assert!(error.kind() == ErrorKind::Stream && error.is_retryable(), "{error}");
        assert!(error.to_string().contains(" broke off after "), "{error}");
        assert_eq!(retry_with_backoff(&once, list).await.unwrap(), ["tiny"]);
    }
    let endless = Script::new().get("/v1/models", reply().close_after(list.len()));
    let server = SocketServer::start(endless).await.unwrap();
    let endpoint = Endpoint::builder().base_url(server.base_url()).build().unwrap();
    assert_eq!(endpoint.list_models(Default::default()).await.unwrap(), ["tiny"]);
}
