//! Replays interactions: tracks which request used which, and which had no match.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::header::HeaderMap;
use http::{Method, Uri};

use super::diff::diff;
use super::error::{CassetteError, CassetteErrorKind};
use super::interaction::{Interaction, RecordedResponse};
use super::question::{Blur, Question};
use super::secrets::Secrets;
use crate::requests::count;

/// A cassette being replayed.
pub(super) struct Player {
    blur: Blur,
    secrets: Secrets,
    state: Mutex<State>,
    tracks: Vec<Track>,
}

/// An interaction, and the part of its request that is compared.
struct Track {
    compared: Question,
    interaction: Interaction,
}

struct State {
    asked: usize,
    problems: Vec<String>,
    /// The number of the request that used each interaction.
    used: Vec<Option<usize>>,
}

impl Player {
    pub(super) fn new(interactions: Vec<Interaction>, blur: Blur, secrets: Secrets) -> Self {
        let track = |interaction: Interaction| Track {
            compared: blur.apply(&interaction.question, &secrets),
            interaction,
        };
        let tracks: Vec<_> = interactions.into_iter().map(track).collect();
        let state = State { asked: 0, problems: Vec::new(), used: vec![None; tracks.len()] };
        Self { blur, secrets, state: Mutex::new(state), tracks }
    }

    /// Returns the first unused interaction that matches the request.
    pub(super) fn ask(
        &self,
        method: Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<RecordedResponse, CassetteError> {
        // The key of this request is learned for this request only: the recording has masks in its place,
        // whatever the key is.
        let mut secrets = self.secrets.clone();
        secrets.learn(headers, uri);
        let question = Question::new(method, uri, body, &secrets);
        // Run the user's closures without the lock.
        let compared = self.blur.apply(&question, &secrets);
        let recorded = self.recorded(&compared, &secrets);
        let mut state = self.state();
        state.asked += 1;
        let asked = state.asked;
        let mut tracks = self.tracks.iter().zip(&recorded).zip(&mut state.used);
        // In the order of the recording, so that equal requests get their answers in that order.
        let free = tracks.find(|((_, recorded), used)| used.is_none() && ***recorded == compared);
        if let Some(((track, _), used)) = free {
            *used = Some(asked);
            return Ok(track.interaction.answer.clone());
        }
        let miss = format!("request {asked} {}", self.miss(&compared, &recorded, &state.used));
        if state.problems.len() < MAX_PROBLEMS {
            state.problems.push(miss.clone());
        }
        Err(CassetteError::new(CassetteErrorKind::Miss, miss))
    }

    /// Returns the compared parts of the recorded requests. If none equals the request, the request's own secrets are
    /// masked in them too: a placeholder such as `not-needed` may be its key, and a word of the recording.
    fn recorded(&self, compared: &Question, secrets: &Secrets) -> Vec<Cow<'_, Question>> {
        let is_known = self.tracks.iter().any(|track| track.compared == *compared);
        let recorded = self.tracks.iter().map(|track| match is_known {
            true => Cow::Borrowed(&track.compared),
            false => Cow::Owned(self.blur.apply(&track.interaction.question, secrets)),
        });
        recorded.collect()
    }

    pub(super) fn len(&self) -> usize {
        self.tracks.len()
    }

    /// Describes the interactions, one per line.
    pub(super) fn lines(&self) -> Vec<String> {
        let state = self.state();
        let tracks = self.tracks.iter().zip(&state.used);
        let line = |(track, used): (&Track, &Option<usize>)| {
            let summary = track.interaction.question.summary();
            match used {
                Some(request) => format!("{summary} -> request {request}"),
                None => format!("{summary} -> never requested"),
            }
        };
        tracks.map(line).collect()
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let state = self.state();
        let unused = state.used.iter().enumerate().filter(|(_, used)| used.is_none());
        let unused =
            unused.map(|(index, _)| format!("interaction {} was never requested", index + 1));
        state.problems.iter().cloned().chain(unused).collect()
    }

    /// Explains why nothing matches a request.
    fn miss(
        &self,
        compared: &Question,
        recorded: &[Cow<'_, Question>],
        used: &[Option<usize>],
    ) -> String {
        let tracks = || recorded.iter().zip(used).enumerate();
        if let Some((index, (_, Some(by)))) =
            tracks().find(|(_, (recorded, _))| ***recorded == *compared)
        {
            return format!(
                "is the same as interaction {}, which request {by} already used: it was \
                 recorded once but requested again",
                index + 1
            );
        }
        let lines = compared.lines();
        let free = || tracks().filter(|(_, (_, used))| used.is_none());
        // The first of the most similar ones.
        let nearest = free()
            .map(|(index, (recorded, _))| (likeness(&recorded.lines(), &lines), index))
            .max_by_key(|(likeness, index)| (*likeness, std::cmp::Reverse(*index)));
        match nearest {
            None => {
                let all = count(self.tracks.len(), "interaction");
                format!("is one more than the {all} recorded: {}", compared.summary())
            }
            Some((_, index)) => format!(
                "matches no interaction; the nearest is {} of {} (- recorded, + requested):\n{}",
                index + 1,
                self.tracks.len(),
                diff(&recorded[index].lines(), &lines),
            ),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No panic under the lock leaves the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns how many of a thousand lines two texts share, in any order.
fn likeness(one: &[String], other: &[String]) -> usize {
    let (mut one, mut other): (Vec<_>, Vec<_>) = (one.iter().collect(), other.iter().collect());
    one.sort_unstable();
    other.sort_unstable();
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < one.len() && j < other.len() {
        match one[i].cmp(other[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Equal => (i, j, shared) = (i + 1, j + 1, shared + 1),
            std::cmp::Ordering::Greater => j += 1,
        }
    }
    2_000 * shared / (one.len() + other.len()).max(1)
}

const MAX_PROBLEMS: usize = 20;
