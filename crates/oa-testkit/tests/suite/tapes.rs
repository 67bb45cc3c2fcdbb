//! Shared parts of the cassette tests: folders, requests, and transports that must not be called.

use std::convert::Infallible;
use std::error::Error;
use std::fs;
use std::future::Ready;
use std::path::PathBuf;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use oa_testkit::{Cassette, CassetteError, CassetteErrorKind, CassetteMode, MemoryServer, Script};
use serde_json::{Value, json};
use tower::Service;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// A folder of one test, empty at first.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cassettes").join(name);
        // Of a run before, if there was one.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// The path of the test's cassette.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.join("tape.json")
    }

    pub(crate) fn open(&self, mode: CassetteMode) -> Cassette {
        Cassette::builder(self.path()).mode(mode).open().expect("a cassette")
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.path()).expect("a file")
    }

    /// The names of all that is in the folder.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("a folder");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
        names.sort();
        names
    }

    /// Records what a server answers to these questions.
    pub(crate) async fn record(&self, script: impl Into<Script>, questions: &[Value]) {
        let tape = self.open(CassetteMode::Record);
        let server = MemoryServer::new(script);
        for question in questions {
            let seen = ask(&tape, &server, question).await.expect("an answer");
            seen.body.expect("a body");
        }
    }
}

/// A transport whose answers a cassette must not ask for.
#[derive(Clone, Debug)]
pub(crate) struct Nobody;

impl<B> Service<Request<B>> for Nobody {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        panic!("the transport was asked whether it is ready");
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        panic!("the transport was called");
    }
}

/// A response as the client received it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) pieces: Vec<Bytes>,
    /// The end of the body.
    pub(crate) body: Result<(), BoxError>,
}

impl Seen {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.pieces.concat()).expect("text")
    }
}

/// A question with this prompt, and no more than that.
pub(crate) fn question(prompt: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": prompt }] })
}

/// A chat request of any client.
pub(crate) fn post(body: impl ToString) -> Request<Full<Bytes>> {
    Request::post("http://test/v1/chat/completions")
        .header("authorization", "Bearer secret-key")
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request")
}

/// Asks through a cassette and reads to the end.
pub(crate) async fn ask<S, R>(
    tape: &Cassette,
    transport: &S,
    body: &Value,
) -> Result<Seen, BoxError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone,
    S::Error: Into<BoxError> + 'static,
    S::Future: Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    send(tape, transport, post(body)).await
}

/// Sends a request through a cassette and reads to the end.
pub(crate) async fn send<S, R>(
    tape: &Cassette,
    transport: &S,
    request: Request<Full<Bytes>>,
) -> Result<Seen, BoxError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>> + Clone,
    S::Error: Into<BoxError> + 'static,
    S::Future: Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let mut service = tape.around(transport.clone());
    std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
    let (head, mut body) = service.call(request).await?.into_parts();
    let mut pieces = Vec::new();
    let body = loop {
        match body.frame().await {
            None => break Ok(()),
            Some(Err(error)) => break Err(error),
            Some(Ok(frame)) => pieces.push(frame.into_data().expect("data")),
        }
    };
    Ok(Seen { status: head.status.as_u16(), headers: head.headers, pieces, body })
}

/// The error of a cassette.
#[track_caller]
pub(crate) fn error_of<T: std::fmt::Debug>(result: Result<T, BoxError>) -> CassetteError {
    *result.expect_err("an error").downcast().expect("one of a cassette")
}

/// The kind of the error of a cassette.
#[track_caller]
pub(crate) fn kind_of<T: std::fmt::Debug>(result: Result<T, BoxError>) -> CassetteErrorKind {
    error_of(result).kind()
}

/// The panic of a closure.
#[track_caller]
pub(crate) fn panic_of(f: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).expect_err("a panic");
    *panic.downcast::<String>().expect("words")
}
