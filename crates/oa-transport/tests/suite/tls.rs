use oa_testkit::{Reply, Script, SocketServer};
use oa_transport::{ErrorKind, Transport};
use tokio::net::TcpStream;

use crate::{ask, hear, say, serve, url, whole};

#[tokio::test]
async fn a_port_that_speaks_no_tls() {
    let (address, _task) = serve(async |mut stream: TcpStream, _| {
        // Servers take a greeting of TLS for a bad request.
        tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 1024]).await.unwrap();
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

#[tokio::test]
async fn plain_http_is_the_same_with_the_feature() {
    let server = SocketServer::start(Script::new().otherwise(Reply::text("hello"))).await.unwrap();
    ask(&Transport::new(), &url(&server)).await.unwrap();
}
