//! The shared state of an open cassette. Dropping the last owner verifies or saves it.

use std::error::Error as StdError;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, thread};

use super::error::CassetteError;
use super::file;
use super::player::Player;
use super::recorder::Recorder;
use crate::chop::Cut;

/// An open cassette.
#[derive(Clone, Debug)]
pub(super) enum Reel {
    Play(Arc<Playing>),
    Record(Arc<Recording>),
}

pub(super) struct Playing {
    /// The split of responses on replay, if not the recorded one.
    pub(super) cut: Option<Cut>,
    pub(super) player: Player,
    path: PathBuf,
    told: AtomicBool,
}

pub(super) struct Recording {
    pub(super) recorder: Recorder,
    path: PathBuf,
    told: AtomicBool,
}

impl Reel {
    pub(super) fn play(path: PathBuf, player: Player, cut: Option<Cut>) -> Self {
        Self::Play(Arc::new(Playing { cut, path, player, told: AtomicBool::new(false) }))
    }

    pub(super) fn record(path: PathBuf, recorder: Recorder) -> Self {
        Self::Record(Arc::new(Recording { path, recorder, told: AtomicBool::new(false) }))
    }

    pub(super) fn story(&self) -> String {
        match self {
            Self::Play(playing) => playing.story(),
            Self::Record(recording) => recording.story(),
        }
    }

    #[track_caller]
    pub(super) fn verify(&self) {
        match self {
            Self::Play(playing) => playing.verify(),
            Self::Record(recording) => recording.verify(),
        }
    }
}

impl Playing {
    fn story(&self) -> String {
        let mut story = story("replaying", &self.path, &self.player.lines());
        let problems = self.player.problems();
        if !problems.is_empty() {
            story.push_str("wrong:\n");
        }
        for problem in problems.iter().take(MAX_LINES) {
            // The message of a miss has several lines.
            let _ = writeln!(story, "  - {}", problem.trim_end().replace('\n', "\n    "));
        }
        story
    }

    #[track_caller]
    fn verify(&self) {
        if !self.player.problems().is_empty() {
            self.told.store(true, Ordering::Release);
            panic!("the cassette was not replayed as recorded\n{}", self.story());
        }
    }
}

impl Recording {
    pub(super) fn save(&self) -> Result<(), CassetteError> {
        self.recorder.save(|interactions| file::write(&self.path, interactions))
    }

    fn story(&self) -> String {
        story("recording", &self.path, &self.recorder.lines())
    }

    #[track_caller]
    fn verify(&self) {
        if let Err(error) = self.save() {
            self.told.store(true, Ordering::Release);
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            panic!("{error}{cause}\n{}", self.story());
        }
    }
}

/// Returns false after a failed test, whose file must not change, while panicking, since a second panic would
/// abort the process, and if the story was already shown.
fn may_speak(told: &AtomicBool) -> bool {
    !thread::panicking() && !told.load(Ordering::Acquire)
}

impl Drop for Playing {
    fn drop(&mut self) {
        if may_speak(&self.told) {
            self.verify();
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if may_speak(&self.told) {
            self.verify();
        }
    }
}

fn story(doing: &str, path: &Path, lines: &[String]) -> String {
    let mut story = format!("{doing} {}:\n", path.display());
    for (index, line) in lines.iter().take(MAX_LINES).enumerate() {
        let _ = writeln!(story, "  {}. {line}", index + 1);
    }
    match lines.len() {
        0 => story.push_str("  nothing\n"),
        1..=MAX_LINES => {}
        more => {
            let _ = writeln!(story, "  … and {} more", more - MAX_LINES);
        }
    }
    story
}

// Cassettes may be fields of clients, where the whole story would be too long.

impl fmt::Debug for Playing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Playing")
            .field("path", &self.path)
            .field("interactions", &self.player.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("path", &self.path)
            .field("interactions", &self.recorder.len())
            .finish_non_exhaustive()
    }
}

const MAX_LINES: usize = 100;
