//! Record and replay: a transport's answers in a file.

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

/// Recorded answers of a real server, in a file: recorded once, replayed for ever, without a server.
///
/// It goes [around](Self::around) any transport, and is a [`tower::Layer`] too. Cheap to clone; all
/// clones are one cassette.
///
/// # Recording
///
/// Answers are passed on as they arrive. When the last clone of the cassette and of its services is
/// dropped the file is written, whole or not at all (or before that, by [`save`](Self::save)). A test
/// that panics keeps the file as it was; where that last clone may be in a task of its own, whose
/// panic nobody sees, call [`verify`](Self::verify) at the end of the test. What a client dropped
/// early is recorded up to there and marked as cut; a request without any answer, because the
/// transport failed or the client did not wait, leaves nothing.
///
/// # Replaying
///
/// The transport is never called. A request is answered by the first interaction that was not used
/// yet and is equal in method, path with query, and body; bodies of JSON are equal as values, so that
/// the order of members does not matter, and ids of tool calls as what they pair, because clients make up
/// those that a server leaves out. Scheme, host and headers are not compared, so that a cassette works
/// on another machine, with another key or none.
/// [`ignore`](CassetteBuilder::ignore) and [`normalize`](CassetteBuilder::normalize) say what else is
/// not. Each interaction is used once, so that the same question asked twice gets its two answers in
/// their order, and agents that work at the same time get their own.
///
/// A request that nothing meets is an error of the transport, which tells what came nearest and what
/// differs, and which clients do not retry. When the last clone is dropped the cassette is [verified](Self::verify).
///
/// # The file
///
/// JSON, for reviews: `version`, and `interactions` in the order in which they were asked, each a
/// `request` (`method`, `path`, `json`) and a `response` (`status`, `headers`, `body`). A body is a
/// list of parts that stand one behind the other: `{"data": X}` is the event `data: X` with its blank
/// line, `{"json": X}` is X, a string is that text, and `{"base64": ".."}` is bytes that are no text.
/// `borders` tells where the pieces began, in bytes, if it was not at events; `cut` why the answer
/// ends early. It may be edited by hand.
///
/// # Secrets
///
/// No header of a request is written, and of answers only those that are
/// [kept](CassetteBuilder::keep_header). The values of all headers of a request are masked as `****` in
/// all that is written, escaped or in base64 too, but for a few that say nothing about the caller
/// (`Accept`, `Content-Type`, `User-Agent`) and for values that are too short to be a key: less than 16
/// bytes, or 8 in a header that exists to carry one. So are
/// [configured secrets](CassetteBuilder::secret), what stands behind `Bearer` in any text, and
/// members of a query such as `key` and `token`. A key that a model says piece by piece, spread over
/// several events, is not found: look at what you commit.
///
/// # Limits
///
/// A cassette holds 1,024 requests and 32 MiB of bodies; a file may have 128 MiB. More than that is
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

    /// Returns whether this replays, and so never calls its transport.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        matches!(self.reel, Reel::Play(_))
    }

    /// Writes what was recorded so far; answers under way are marked as cut. If nothing was answered
    /// since the last time, and on replay, this does nothing.
    ///
    /// # Errors
    ///
    /// [`Io`](CassetteErrorKind::Io), and [`Limit`](CassetteErrorKind::Limit) if there is more than a
    /// cassette holds. The file is as it was.
    pub fn save(&self) -> Result<(), CassetteError> {
        match &self.reel {
            Reel::Play(_) => Ok(()),
            Reel::Record(recording) => recording.save(),
        }
    }

    /// Tells which interactions there are, what became of them, and what is wrong so far.
    #[must_use]
    pub fn story(&self) -> String {
        self.reel.story()
    }

    /// Checks that all was replayed and nothing else was asked; when recording, [saves](Self::save).
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if an interaction was never asked or a request met none, or the
    /// recording could not be saved.
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
