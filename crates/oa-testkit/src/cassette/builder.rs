use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use http::header::{self, HeaderName};
use serde_json::Value;

use super::error::{CassetteError, CassetteErrorKind};
use super::player::Player;
use super::question::{Blur, Pointer};
use super::recorder::Recorder;
use super::reel::Reel;
use super::secrets::Secrets;
use super::{Cassette, file};
use crate::chop::Cut;
use crate::requests::SECRET;

/// Whether a cassette is recorded or replayed.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum CassetteMode {
    /// Replays if the file exists, else records. For the desk of whoever writes the test.
    #[default]
    Auto,
    /// Records, and replaces the file if the test comes to its end.
    Record,
    /// Replays, and never touches the network: a file that is missing is an error. For CI.
    Replay,
}

/// How a [`Cassette`] is opened.
#[must_use = "builders do nothing unless opened"]
pub struct CassetteBuilder {
    blur: Blur,
    cut: Option<Cut>,
    kept_headers: Vec<HeaderName>,
    mode: CassetteMode,
    path: PathBuf,
    problem: Option<String>,
    secrets: Secrets,
}

impl Cassette {
    /// Opens a cassette: to replay it if the file exists, else to record it.
    ///
    /// # Errors
    ///
    /// As those of [`CassetteBuilder::open`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, CassetteError> {
        Self::builder(path).open()
    }

    /// Says how a cassette is to be opened.
    pub fn builder(path: impl Into<PathBuf>) -> CassetteBuilder {
        CassetteBuilder::new(path.into())
    }
}

impl CassetteBuilder {
    fn new(path: PathBuf) -> Self {
        Self {
            blur: Blur::default(),
            cut: None,
            kept_headers: vec![header::CONTENT_ENCODING, header::CONTENT_TYPE, header::RETRY_AFTER],
            mode: CassetteMode::Auto,
            path,
            problem: None,
            secrets: Secrets::default(),
        }
    }

    /// Sets whether to record or to replay. Without this it is [`CassetteMode::Auto`].
    pub fn mode(mut self, mode: CassetteMode) -> Self {
        self.mode = mode;
        self
    }

    /// Masks this wherever it stands in a body, a URL or a header, also escaped as JSON or URLs escape
    /// it. Keys from the headers of requests are masked without this.
    pub fn secret(mut self, secret: impl AsRef<str>) -> Self {
        match secret.as_ref() {
            "" => self.refuse("an empty secret"),
            secret => self.secrets.add(secret),
        }
        self
    }

    /// Leaves a member of the request's JSON out of the comparison: what this JSON pointer (RFC 6901)
    /// points to, where `*` is every item of a list and every member of an object.
    ///
    /// It is written to the file all the same.
    pub fn ignore(mut self, pointer: impl AsRef<str>) -> Self {
        let text = pointer.as_ref();
        match Pointer::new(text) {
            Some(pointer) => self.blur.ignored.push(pointer),
            None => self.refuse(format!("{text:?} is no JSON pointer to a member, as `/seed` is")),
        }
        self
    }

    /// Changes the JSON of requests before they are compared, recorded ones and asked ones: for a time
    /// or a path within a text.
    ///
    /// What is written to the file is not changed.
    pub fn normalize<F>(mut self, rewrite: F) -> Self
    where
        F: Fn(&mut Value) + Send + Sync + 'static,
    {
        self.blur.rewrites.push(Arc::new(rewrite));
        self
    }

    /// Records a header of answers beside `content-type`, `content-encoding` and `retry-after`.
    pub fn keep_header(mut self, name: impl AsRef<str>) -> Self {
        let name = name.as_ref();
        match HeaderName::try_from(name) {
            Ok(name) if SECRET.contains(&name) || name == header::SET_COOKIE => {
                self.refuse(format!("the header {name} is a secret"));
            }
            Ok(name) => self.kept_headers.push(name),
            Err(_) => self.refuse(format!("{name:?} is no header")),
        }
        self
    }

    /// Cuts answers elsewhere on replay than they were: whoever reads a stream should see the same
    /// whatever its pieces are.
    pub fn cut(mut self, cut: Cut) -> Self {
        self.cut = Some(cut);
        self
    }

    /// Opens the cassette.
    ///
    /// # Errors
    ///
    /// [`Setting`](CassetteErrorKind::Setting) for what cannot work. When there is something to
    /// replay: [`Missing`](CassetteErrorKind::Missing), [`Io`](CassetteErrorKind::Io),
    /// [`Limit`](CassetteErrorKind::Limit), and [`Format`](CassetteErrorKind::Format) for a file that
    /// is no cassette.
    pub fn open(self) -> Result<Cassette, CassetteError> {
        if let Some(problem) = self.problem {
            return Err(CassetteError::new(CassetteErrorKind::Setting, problem));
        }
        let recorded = match self.mode {
            CassetteMode::Auto => match file::read(&self.path) {
                Err(error) if error.kind() == CassetteErrorKind::Missing => None,
                read => Some(read?),
            },
            CassetteMode::Record => None,
            CassetteMode::Replay => Some(file::read(&self.path)?),
        };
        let reel = match recorded {
            Some(interactions) => {
                let player = Player::new(interactions, self.blur, self.secrets);
                Reel::play(self.path, player, self.cut)
            }
            None => Reel::record(self.path, Recorder::new(self.kept_headers, self.secrets)),
        };
        Ok(Cassette { reel })
    }

    /// Remembers the first thing that cannot work.
    fn refuse(&mut self, problem: impl Into<String>) {
        self.problem.get_or_insert_with(|| problem.into());
    }
}

impl fmt::Debug for CassetteBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CassetteBuilder")
            .field("path", &self.path)
            .field("mode", &self.mode)
            .field("blur", &self.blur)
            .field("cut", &self.cut)
            .field("kept_headers", &self.kept_headers)
            .finish_non_exhaustive()
    }
}
