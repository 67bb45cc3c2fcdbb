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

/// The mode of a cassette.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum CassetteMode {
    /// Replays if the file exists, otherwise records. For writing tests.
    #[default]
    Auto,
    /// Records, and replaces the file if the test succeeds.
    Record,
    /// Replays and never uses the network: a missing file is an error. For CI.
    Replay,
}

/// A builder for a [`Cassette`].
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
    /// Opens a cassette: replays it if the file exists, otherwise records.
    ///
    /// # Errors
    ///
    /// The same as [`CassetteBuilder::open`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, CassetteError> {
        Self::builder(path).open()
    }

    /// Returns a builder for the cassette at `path`.
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

    /// Sets the mode. The default is [`CassetteMode::Auto`].
    pub fn mode(mut self, mode: CassetteMode) -> Self {
        self.mode = mode;
        self
    }

    /// Masks a secret wherever it appears in a body, URL or header, including JSON and URL escapes. Keys in
    /// request headers are masked automatically.
    pub fn secret(mut self, secret: impl AsRef<str>) -> Self {
        match secret.as_ref() {
            "" => self.refuse("a secret must not be empty"),
            secret => self.secrets.add(secret),
        }
        self
    }

    /// Excludes a member of the request's JSON from the comparison, given by a JSON pointer (RFC 6901) in which
    /// `*` matches every item of a list and every member of an object.
    ///
    /// It is still written to the file.
    pub fn ignore(mut self, pointer: impl AsRef<str>) -> Self {
        let text = pointer.as_ref();
        match Pointer::new(text) {
            Some(pointer) => self.blur.ignored.push(pointer),
            None => {
                self.refuse(format!("{text:?} is not a JSON pointer to a member, such as `/seed`"));
            }
        }
        self
    }

    /// Changes the JSON of recorded and new requests before they are compared, for example to remove a time or
    /// path inside a text.
    ///
    /// The file is not affected.
    pub fn normalize<F>(mut self, rewrite: F) -> Self
    where
        F: Fn(&mut Value) + Send + Sync + 'static,
    {
        self.blur.rewrites.push(Arc::new(rewrite));
        self
    }

    /// Records a response header in addition to `content-type`, `content-encoding` and `retry-after`.
    pub fn keep_header(mut self, name: impl AsRef<str>) -> Self {
        let name = name.as_ref();
        match HeaderName::try_from(name) {
            Ok(name) if SECRET.contains(&name) || name == header::SET_COOKIE => {
                self.refuse(format!("the header {name} holds a secret and is never recorded"));
            }
            Ok(name) => self.kept_headers.push(name),
            Err(_) => self.refuse(format!("{name:?} is not a valid header")),
        }
        self
    }

    /// Splits responses differently on replay than recorded: a stream's reader must not depend on how it is
    /// split.
    pub fn cut(mut self, cut: Cut) -> Self {
        self.cut = Some(cut);
        self
    }

    /// Opens the cassette.
    ///
    /// # Errors
    ///
    /// [`Setting`](CassetteErrorKind::Setting) for an invalid setting. On replay:
    /// [`Missing`](CassetteErrorKind::Missing), [`Io`](CassetteErrorKind::Io),
    /// [`Limit`](CassetteErrorKind::Limit), and [`Format`](CassetteErrorKind::Format) for a file that is not a
    /// cassette.
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

    /// Records the first invalid setting.
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
