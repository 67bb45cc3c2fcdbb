//! The progress of a server that reads the prompt (QUIRKS row 122).

use std::time::Duration;

use oa_types::PromptProgress;
use serde::Deserialize;

/// The longest member that is read, in bytes: many times that of a server.
const LONGEST: usize = 1024;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Member {
    total: u32,
    cache: u32,
    processed: u32,
    time_ms: f64,
}

/// Reads the member `prompt_progress`; `None` if it is anything other than an object of numbers.
pub(crate) fn read(raw: &str) -> Option<Box<PromptProgress>> {
    if raw.len() > LONGEST || !raw.starts_with('{') {
        return None;
    }
    let Member { total, cache, processed, time_ms } = serde_json::from_str(raw).ok()?;
    let elapsed = Duration::try_from_secs_f64(time_ms / 1000.0).ok()?;
    Some(Box::new(PromptProgress::new(total.into(), cache.into(), processed.into(), elapsed)))
}

/// A progress in as much room as other deltas have: total, cached and processed tokens, and milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed([u32; 4]);

impl From<&PromptProgress> for Packed {
    fn from(progress: &PromptProgress) -> Self {
        let millis = u64::try_from(progress.elapsed.as_millis()).unwrap_or(u64::MAX);
        let numbers = [progress.total, progress.cached, progress.processed, millis];
        Self(numbers.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
    }
}

impl From<Packed> for PromptProgress {
    fn from(Packed(numbers): Packed) -> Self {
        let [total, cached, processed, millis] = numbers.map(u64::from);
        Self::new(total, cached, processed, Duration::from_millis(millis))
    }
}
