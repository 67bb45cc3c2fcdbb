//! Encrypted connections to a server with a generated certificate.

use oa_session::contract::block_on;
use oa_session::{Error, ErrorKind, SessionStore};
use oa_session_postgres::{PostgresOptions, PostgresStore};
use rcgen::{CertificateParams, KeyPair};
use services::{Postgres, or_skip};

use crate::{Place, append, create, turn};

/// A server that takes encrypted connections for `localhost`, and its certificate.
fn secure() -> Option<(Postgres, String)> {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate").pem();
    let settings = ["fsync=off", "ssl=on", "ssl_cert_file=server.crt", "ssl_key_file=server.key"];
    let key = key.serialize_pem();
    let files = [("server.crt", certificate.as_bytes()), ("server.key", key.as_bytes())];
    let server = or_skip(Postgres::start_with(&settings, &files))?;
    Some((server, certificate))
}

/// Names the server in another way, as one that is not on this machine.
fn options(server: &Postgres, parameters: &str) -> PostgresOptions {
    let url = server.url().replace("127.0.0.1", "localhost");
    PostgresOptions::new(&format!("{url}?hostaddr=127.0.0.1&{parameters}")).expect("it is a url")
}

fn connect(options: PostgresOptions) -> Result<PostgresStore, Error> {
    block_on(PostgresStore::connect_with(options))
}

#[test]
fn connection_is_encrypted_and_verified() {
    let Some((server, certificate)) = secure() else { return };
    for mode in ["require", "verify-ca", "verify-full"] {
        let trusting = options(&server, &format!("sslmode={mode}"))
            .root_certificates(&certificate)
            .unwrap()
            .schema(mode.replace('-', "_"));
        let store = connect(trusting).unwrap();
        let info = create(&store, "a");
        append(&store, &info, turn(0)).unwrap();
        assert_eq!(block_on(store.load(&info.id)).unwrap().messages, turn(0));
    }
    let sql = Place::on(server.url()).connect();
    let encrypted = "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE application_name = 'oa-session-postgres'";
    assert!(sql.column(encrypted).iter().all(|is_encrypted| is_encrypted == "t"));
}

#[test]
fn untrusted_servers_are_rejected() {
    let Some((server, certificate)) = secure() else { return };
    let error = connect(options(&server, "sslmode=require")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let said = error.to_string();
    assert!(said.contains("localhost") && said.contains("UnknownIssuer"), "{said}");
    // The certificate is for another name.
    let url = format!("{}?sslmode=require", server.url());
    let misnamed = PostgresOptions::new(&url).unwrap().root_certificates(&certificate).unwrap();
    let said = connect(misnamed).unwrap_err().to_string();
    assert!(said.contains("not valid for name"), "{said}");
}

#[test]
fn unencrypted_servers_are_rejected() {
    let Some(place) = Place::new() else { return };
    let url = format!("{}?sslmode=require", place.url);
    let error = connect(PostgresOptions::new(&url).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().ends_with("server does not support TLS"), "{error}");
}

#[test]
fn root_certificates_are_pem() {
    let options = || PostgresOptions::new("host=localhost").unwrap();
    for wrong in
        ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
    {
        let error = options().root_certificates(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong}");
    }
}
