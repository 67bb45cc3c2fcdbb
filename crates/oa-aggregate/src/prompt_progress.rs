//! The progress of a server that reads the prompt (QUIRKS row 122).

use std::time::Duration;

use oa_types::PromptProgress;

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
