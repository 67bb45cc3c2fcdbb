//! Records requests in order, and their responses so far.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName};
use http::{Method, StatusCode, Uri};

use super::error::{CassetteError, CassetteErrorKind};
use super::interaction::{Interaction, RecordedResponse, borders_of, is_stream, natural};
use super::question::Question;
use super::secrets::Secrets;

/// A cassette being recorded.
pub(super) struct Recorder {
    kept_headers: Vec<HeaderName>,
    state: Mutex<State>,
}

struct State {
    bytes: usize,
    /// The reason why the recording is unusable, if any.
    problem: Option<String>,
    /// The number of changes, and how many of them are in the file.
    changes: usize,
    saved: usize,
    secrets: Secrets,
    takes: Vec<Take>,
}

/// A request and its response so far. Secrets are masked later, when all are known.
struct Take {
    answer: Option<Taken>,
    body: Bytes,
    method: Method,
    uri: Uri,
}

struct Taken {
    body: Vec<u8>,
    end: End,
    headers: HeaderMap,
    lengths: Vec<usize>,
    status: StatusCode,
}

/// The end of a response.
pub(super) enum End {
    /// It ended early, for this reason.
    Cut(String),
    /// It has not ended.
    Open,
    Whole,
}

impl Recorder {
    pub(super) fn new(kept_headers: Vec<HeaderName>, secrets: Secrets) -> Self {
        let (changes, saved, takes) = (0, 0, Vec::new());
        let state = State { bytes: 0, problem: None, changes, saved, secrets, takes };
        Self { kept_headers, state: Mutex::new(state) }
    }

    /// Starts a take and returns its number, from 0.
    pub(super) fn begin(&self, method: Method, uri: Uri, headers: &HeaderMap) -> usize {
        let mut state = self.state();
        state.secrets.learn(headers, &uri);
        if state.takes.len() == MAX_TAKES {
            state.spoil(format!("there are more than {MAX_TAKES} requests"));
            return MAX_TAKES;
        }
        state.takes.push(Take { answer: None, body: Bytes::new(), method, uri });
        state.takes.len() - 1
    }

    /// Records the body of a request.
    pub(super) fn asked(&self, number: usize, body: Bytes) {
        let mut state = self.state();
        state.count(body.len());
        if state.problem.is_none()
            && let Some(take) = state.takes.get_mut(number)
        {
            take.body = body;
        }
    }

    /// Marks the recording as unusable.
    pub(super) fn spoil(&self, problem: String) {
        self.state().spoil(problem);
    }

    /// Records the head of a response.
    pub(super) fn head(&self, number: usize, status: StatusCode, headers: &HeaderMap) {
        let kept = headers.iter().filter(|(name, _)| self.kept_headers.contains(name));
        let mut headers = HeaderMap::new();
        for (name, value) in kept {
            // Only the first value, because the kept headers have one.
            headers.entry(name).or_insert_with(|| value.clone());
        }
        let (body, lengths) = (Vec::new(), Vec::new());
        let mut state = self.state();
        state.changes += 1;
        if let Some(take) = state.takes.get_mut(number) {
            take.answer = Some(Taken { body, end: End::Open, headers, lengths, status });
        }
    }

    /// Records a piece of a response.
    pub(super) fn piece(&self, number: usize, piece: &[u8]) {
        let mut state = self.state();
        state.count(piece.len());
        state.changes += 1;
        if state.problem.is_none()
            && let Some(answer) = state.takes.get_mut(number).and_then(|take| take.answer.as_mut())
        {
            answer.body.extend_from_slice(piece);
            answer.lengths.push(piece.len());
        }
    }

    /// Records the end of a response. A client that dropped it may have seen that it was complete.
    pub(super) fn end(&self, number: usize, end: End) {
        let mut state = self.state();
        state.changes += 1;
        if let Some(answer) = state.takes.get_mut(number).and_then(|take| take.answer.as_mut()) {
            answer.end = if answer.said_done() { End::Whole } else { end };
        }
    }

    /// Returns the number of requests.
    pub(super) fn len(&self) -> usize {
        self.state().takes.len()
    }

    /// Describes the recording, one line per request.
    pub(super) fn lines(&self) -> Vec<String> {
        let state = self.state();
        let line = |take: &Take| {
            let came = match &take.answer {
                None => "no answer, not recorded".to_owned(),
                Some(answer) => format!("status {}", answer.status.as_u16()),
            };
            format!("{} -> {came}", take.question(&state.secrets).summary())
        };
        state.takes.iter().map(line).collect()
    }

    /// Passes all answered requests, with secrets masked, to `write` if there are changes.
    pub(super) fn save<F>(&self, write: F) -> Result<(), CassetteError>
    where
        F: FnOnce(&[Interaction]) -> Result<(), CassetteError>,
    {
        let mut state = self.state();
        if let Some(problem) = &state.problem {
            return Err(CassetteError::new(CassetteErrorKind::Limit, problem.clone()));
        }
        let takes = state.takes.iter();
        let interactions: Vec<_> =
            takes.filter_map(|take| take.interaction(&state.secrets)).collect();
        if interactions.is_empty() || state.saved == state.changes {
            return Ok(());
        }
        write(&interactions)?;
        state.saved = state.changes;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No panic under the lock leaves the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES {
            self.spoil(format!("there are more than {MAX_BYTES} bytes"));
        }
    }

    fn spoil(&mut self, problem: String) {
        self.problem.get_or_insert_with(|| format!("not recorded: {problem}"));
        // Free the memory of a recording that will not be written.
        self.takes = Vec::new();
    }
}

impl Take {
    fn question(&self, secrets: &Secrets) -> Question {
        Question::new(self.method.clone(), &self.uri, &self.body, secrets)
    }

    fn interaction(&self, secrets: &Secrets) -> Option<Interaction> {
        let question = self.question(secrets);
        self.answer.as_ref().map(|answer| Interaction { answer: answer.masked(secrets), question })
    }
}

impl Taken {
    /// Returns true if a stream has signaled its end, after which the client need not read on.
    fn said_done(&self) -> bool {
        is_stream(&self.headers) && self.body.trim_ascii_end().ends_with(b"data: [DONE]")
    }

    fn masked(&self, secrets: &Secrets) -> RecordedResponse {
        let mut borders: Vec<usize> = Vec::with_capacity(self.lengths.len());
        for length in &self.lengths {
            borders.push(borders.last().unwrap_or(&0) + length);
        }
        let body = secrets.bytes(&self.body, &mut borders);
        // Masking may have moved several borders to one place, and a border at either end splits nothing.
        borders.retain(|border| (1..body.len()).contains(border));
        borders.dedup();

        let mut headers = self.headers.clone();
        for value in headers.values_mut() {
            let masked = secrets.bytes(value.as_bytes(), &mut []);
            if let Ok(masked) = http::HeaderValue::from_bytes(&masked) {
                *value = masked;
            }
        }
        // Borders where every reader would split the body anyway are left out, so that a file stays short and
        // can be edited.
        let are_natural = borders == borders_of(&natural(&headers).pieces(&body));
        let borders = (!are_natural).then_some(borders);
        let cut = match &self.end {
            End::Cut(why) => Some(secrets.text(why)),
            End::Open => Some("the recording was saved before the answer ended".to_owned()),
            End::Whole => None,
        };
        RecordedResponse { body, borders, cut, headers, status: self.status }
    }
}

/// The largest size of all recorded bodies, in bytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;
const MAX_TAKES: usize = 1024;
