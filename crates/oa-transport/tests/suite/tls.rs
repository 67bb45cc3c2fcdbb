use std::sync::Arc;
use std::time::Duration;

use oa_testkit::{Reply, Script, SocketServer};
use oa_transport::{ErrorKind, TimeoutKind, Transport};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier};

use crate::{ask, hear, post, say, serve, url, whole};

#[tokio::test]
async fn plain_http_server_is_a_tls_error() {
    let (address, _task) = serve(async |mut stream: TcpStream, _| {
        // A server without TLS takes the TLS greeting for a bad request.
        let greeting = stream.read(&mut [0; 1024]).await.unwrap();
        assert!(greeting > 0);
        say(&mut stream, "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await;
        hear(&mut stream).await;
    })
    .await;
    let error = ask(&Transport::new(), &format!("https://{address}/")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls, "{}", whole(&error));
    assert_eq!(
        error.to_string(),
        format!("cannot encrypt the connection to {address}: it does not speak TLS")
    );
}

/// Some servers without TLS wait for the rest of what they take for a request.
#[tokio::test]
async fn silent_plain_http_server_times_out() {
    let (address, _task) = serve(
        async |mut stream: TcpStream, _| {
            while stream.read(&mut [0; 1024]).await.unwrap_or(0) > 0 {}
        },
    )
    .await;
    let transport = Transport::builder().connect_timeout(Duration::from_millis(50)).build();
    let error = ask(&transport, &format!("https://{address}/")).await.unwrap_err();
    assert_eq!((error.kind(), error.timeout()), (ErrorKind::Tls, Some(TimeoutKind::Connect)));
    assert_eq!(
        error.to_string(),
        format!(
            "cannot encrypt the connection to {address}: timed out after 50ms; it may not speak TLS"
        )
    );
}

#[tokio::test]
async fn plain_http_needs_no_tls() {
    let server = SocketServer::start(Script::new().otherwise(Reply::text("hello"))).await.unwrap();
    ask(&Transport::new(), &url(&server)).await.unwrap();
}

/// A server with a self-signed certificate for `localhost`.
async fn secure() -> (String, String) {
    secure_by(CertificateParams::new(["localhost".to_owned()]).expect("a name")).await
}

/// A server with a self-signed certificate that answers every request on a connection with its number.
async fn secure_by(params: CertificateParams) -> (String, String) {
    let key = KeyPair::generate().expect("a certificate and a socket are made");
    let certificate = params.self_signed(&key).expect("a certificate and a socket are made");
    let pem = certificate.pem();
    let key =
        PrivateKeyDer::try_from(key.serialize_der()).expect("a certificate and a socket are made");
    let config = config()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a certificate and a socket are made");
    (serve_with(config).await, pem)
}

fn config() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("they are supported")
}

async fn serve_with(config: ServerConfig) -> String {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener =
        TcpListener::bind("127.0.0.1:0").await.expect("a certificate and a socket are made");
    let port = listener.local_addr().expect("a certificate and a socket are made").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut buffer = vec![0; 4096];
                for number in 1.. {
                    match stream.read(&mut buffer).await {
                        Ok(0) | Err(_) => return,
                        Ok(_) => {}
                    }
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("https://localhost:{port}/")
}

/// In TLS 1.3, the server says so only after the handshake.
#[tokio::test]
async fn required_client_certificate_is_named() {
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots),
        Arc::new(ring::default_provider()),
    );
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = config().with_client_cert_verifier(verifier.build().unwrap());
    let config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let url = serve_with(config).await;
    let transport = Transport::builder().root_certificates(certificate.pem()).unwrap().build();
    let error = ask(&transport, &url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls, "{}", whole(&error));
    let why = ": it requires a client certificate, which is not supported";
    assert!(error.to_string().ends_with(why), "{}", whole(&error));
}

/// Bytes that are no record of the encryption, within the body.
#[tokio::test]
async fn undecryptable_bodies_are_broken() {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = config().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let was_read = Arc::new(Notify::new());
    let go_on = Arc::clone(&was_read);
    let (address, _task) = serve(move |stream: TcpStream, _| {
        let (acceptor, go_on) = (acceptor.clone(), Arc::clone(&go_on));
        async move {
            let mut stream = acceptor.accept(stream).await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let begin = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegin";
            stream.write_all(begin.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            go_on.notified().await;
            let (mut plain, _) = stream.into_inner();
            say(&mut plain, [&[0x17, 3, 3, 0, 20][..], &[7; 20]].concat()).await;
            hear(&mut plain).await;
        }
    })
    .await;
    let transport = Transport::builder().root_certificates(certificate.pem()).unwrap().build();
    let url = format!("https://localhost:{}/", address.port());
    let mut body = post(&transport, &url).await.unwrap().into_body();
    assert_eq!(body.chunk().await.unwrap().unwrap(), "begin");
    was_read.notify_one();
    let error = body.chunk().await.unwrap_err();
    assert_eq!((error.kind(), error.received()), (ErrorKind::Broken, Some(5)), "{}", whole(&error));
    assert!(error.to_string().ends_with("after 5 bytes: the encryption failed"), "{error}");
}

#[tokio::test]
async fn added_root_certificates_are_trusted() {
    let (url, pem) = secure().await;
    let transport = Transport::builder().root_certificates(&pem).unwrap().build();
    for number in ["1", "2", "3"] {
        let body = ask(&transport, &url).await.unwrap();
        assert_eq!(body, number, "the connection is used again");
    }
}

#[tokio::test]
async fn unknown_issuers_are_rejected() {
    let (url, _) = secure().await;
    let (_, other) = secure().await;
    let transport = Transport::builder().root_certificates(&other).unwrap().build();
    let error = ask(&transport, &url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls);
    let why = ": the issuer of its certificate is unknown; trust it with root_certificates";
    assert!(error.to_string().ends_with(why), "{}", whole(&error));
}

#[tokio::test]
async fn certificate_errors_name_the_cause() {
    let params = |name: &str| CertificateParams::new([name.to_owned()]).expect("a name");
    let mut expired = params("localhost");
    (expired.not_before, expired.not_after) =
        (date_time_ymd(1999, 1, 1), date_time_ymd(2001, 1, 1));
    let mut early = params("localhost");
    (early.not_before, early.not_after) = (date_time_ymd(4000, 1, 1), date_time_ymd(4001, 1, 1));
    for (params, why) in [
        (expired, ": its certificate has expired"),
        (early, ": its certificate is not valid yet, or the clock of this machine is wrong"),
        (params("example.com"), ": its certificate is for another host"),
    ] {
        let (url, pem) = secure_by(params).await;
        let transport = Transport::builder().root_certificates(&pem).unwrap().build();
        let error = ask(&transport, &url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tls);
        assert!(error.to_string().ends_with(why), "{}", whole(&error));
    }
}

#[test]
fn invalid_root_certificates_are_rejected() {
    for pem in [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
        // Valid base64 that is not a certificate.
        "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n",
    ] {
        let error = Transport::builder().root_certificates(pem).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidCertificate, "{pem:?}");
    }
}
