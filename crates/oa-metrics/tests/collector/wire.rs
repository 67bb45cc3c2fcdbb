//! Both ends of the path through the collector, on plain sockets: the exporter's blocking client, and the receiver.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// The longest that a test waits for the other side.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends what the exporter exports. It runs on the exporter's own thread, where no runtime is.
#[derive(Debug)]
pub(crate) struct Sender;

#[async_trait::async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let authority = request.uri().authority().ok_or("an address is missing")?;
        let mut stream = TcpStream::connect(authority.as_str())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "POST {} HTTP/1.1\r\nhost: {authority}\r\n", request.uri().path())?;
        for (name, value) in request.headers() {
            write!(stream, "{name}: {}\r\n", value.to_str()?)?;
        }
        write!(stream, "content-length: {}\r\nconnection: close\r\n\r\n", request.body().len())?;
        stream.write_all(request.body())?;
        let (status, body) = read(&mut BufReader::new(stream))?;
        let status = status.split(' ').nth(1).ok_or("a status is missing")?;
        Ok(Response::builder().status(status).body(body.into())?)
    }
}

/// The receiver of what the collector passes on.
#[derive(Debug)]
pub(crate) struct Posts(TcpListener);

impl Posts {
    pub(crate) fn listen() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("{error}")))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits for the next request, and returns its body.
    pub(crate) fn next(&self) -> Vec<u8> {
        self.accept().unwrap_or_else(|error| panic!("the collector passes nothing on: {error}"))
    }

    fn accept(&self) -> Result<Vec<u8>, HttpError> {
        let (stream, _) = self.0.accept()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(stream);
        let (_, body) = read(&mut reader)?;
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        reader.get_mut().write_all(answer.as_bytes())?;
        Ok(body)
    }
}

/// Reads a message: its first line and its body.
fn read(reader: &mut impl BufRead) -> Result<(String, Vec<u8>), HttpError> {
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((first, body))
}
