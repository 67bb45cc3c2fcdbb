//! Record and replay of a transport's responses.

mod builder;
mod service;

mod body;

mod player;
mod recorder;
mod reel;

mod interaction;
mod question;
mod secrets;

mod file;
mod parts;
mod text;

mod diff;
mod error;

use tower::Layer;

pub use self::body::TapedBody;
pub use self::builder::{CassetteBuilder, CassetteMode};
pub use self::error::{CassetteError, CassetteErrorKind};
use self::reel::Reel;
pub use self::service::{Taped, TapedFuture};

/// Responses of a real server in a file: recorded once, then replayed without the server.
///
/// It goes [around](Self::around) any transport and is also a [`tower::Layer`]. Cheap to clone; clones share
/// the cassette.
///
/// # Recording
///
/// Responses are passed on as they arrive. The file is written atomically when the last clone of the cassette
/// and its services is dropped, or earlier by [`save`](Self::save). A test that panics leaves the file
/// unchanged; if the last clone may be dropped in another task, where a panic goes unnoticed, call
/// [`verify`](Self::verify) at the end of the test. A response dropped early by the client is recorded up to
/// that point and marked as cut. A request without a response, because the transport failed or the client did
/// not wait, is not recorded.
///
/// # Replaying
///
/// The transport is never called. A request is answered by the first unused interaction with the same method,
/// path with query, and body. JSON bodies are compared as values, so member order does not matter, and tool
/// call ids only by what they pair, because clients generate ids that a server omits. Scheme, host and headers
/// are not compared, so a cassette works on another machine and with another key or none.
/// [`ignore`](CassetteBuilder::ignore) and [`normalize`](CassetteBuilder::normalize) exclude more. Each
/// interaction is used once: the same request sent twice gets its two responses in order, and concurrent agents
/// get their own.
///
/// A request without a match is a transport error that shows the nearest interaction and the differences;
/// clients do not retry it. Dropping the last clone [verifies](Self::verify) the cassette.
///
/// # The file
///
/// JSON, for code reviews: `version`, and `interactions` in the order of the requests, each with a `request`
/// (`method`, `path`, `json`) and a `response` (`status`, `headers`, `body`). A body is a list of consecutive
/// parts: `{"data": X}` is the event `data: X` with its blank line, `{"json": X}` is X, a string is text, and
/// `{"base64": ".."}` is binary data. `borders` lists the byte offsets of pieces if they did not start at
/// events; `cut` is the reason why a response ends early. The file may be edited by hand.
///
/// # Secrets
///
/// No request headers are written, and only [kept](CassetteBuilder::keep_header) response headers. The values of all
/// request headers are masked as `****` in everything written, including escaped and base64 forms, except for a few
/// that say nothing about the caller (`Accept`, `Content-Type`, `User-Agent`) and values too short to be a key: less
/// than 16 bytes, or 8 in headers meant for keys. Also masked are [configured secrets](CassetteBuilder::secret),
/// whatever follows `Bearer` in any text, and query members whose names end in `key`, `token`, `secret`, `password` or
/// `signature`, everywhere if they have at least 8 bytes. A key that a model writes in pieces, spread over several
/// events, is not found: review what you commit.
///
/// # Limits
///
/// A cassette holds up to 1,024 requests and 32 MiB of bodies; a file may have 128 MiB. Anything beyond is
/// passed on and makes the recording fail.
///
/// # Examples
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::{BodyExt, Full};
/// use oa_testkit::{Cassette, MemoryServer, Reply};
/// use tower::Service;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// # let folder = std::env::temp_dir().join(format!("oa-testkit-doc-{}", std::process::id()));
/// # let path = folder.join("hello.json");
/// for run in ["recorded", "replayed"] {
///     let tape = Cassette::open(&path)?; // such as "tests/cassettes/hello.json"
/// #   let script = oa_testkit::Script::new();
/// #   let script = if run == "recorded" { script.reply(Reply::text("Hello")) } else { script };
/// #   let transport = MemoryServer::new(script);
///     let mut service = tape.around(transport); // which is not called in the second run
///
///     let body = Full::new(Bytes::from(r#"{"model": "any", "messages": []}"#));
///     let request = http::Request::post("http://model/v1/chat/completions").body(body)?;
///     let answer = service.call(request).await?.into_body().collect().await?.to_bytes();
///     assert!(answer.starts_with(b"{"), "{run}");
///
///     drop(service);
///     tape.verify();
/// }
/// # std::fs::remove_dir_all(folder)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Cassette {
    reel: Reel,
}

impl Cassette {
    /// Puts the cassette around a transport: a [`tower::Service`] from `http::Request` to
    /// `http::Response`. Bodies of requests are cloned to be recorded.
    pub fn around<S>(&self, transport: S) -> Taped<S> {
        Taped::new(transport, self.reel.clone())
    }

    /// Returns true if this replays, so the transport is never called.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        matches!(self.reel, Reel::Play(_))
    }

    /// Writes the recording so far; unfinished responses are marked as cut. Does nothing on replay, or if
    /// nothing was recorded since the last save.
    ///
    /// # Errors
    ///
    /// [`Io`](CassetteErrorKind::Io), and [`Limit`](CassetteErrorKind::Limit) if the recording is too large.
    /// The file is unchanged.
    pub fn save(&self) -> Result<(), CassetteError> {
        match &self.reel {
            Reel::Play(_) => Ok(()),
            Reel::Record(recording) => recording.save(),
        }
    }

    /// Describes the interactions, how they were used, and any problems so far.
    #[must_use]
    pub fn story(&self) -> String {
        self.reel.story()
    }

    /// Checks that everything was replayed and nothing else was requested; when recording, [saves](Self::save).
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if an interaction was not used, a request had no match, or the recording
    /// could not be saved.
    #[track_caller]
    pub fn verify(&self) {
        self.reel.verify();
    }
}

impl<S> Layer<S> for Cassette {
    type Service = Taped<S>;

    fn layer(&self, inner: S) -> Taped<S> {
        self.around(inner)
    }
}
