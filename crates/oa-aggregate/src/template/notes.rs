//! Positions that the full reading of a payload records for a template.

use std::ops::Range;

use oa_json::JsonStr;

/// The strings of a payload that a template could follow.
#[derive(Debug, Default)]
pub(crate) struct Notes<'a> {
    pub(crate) text: Option<JsonStr<'a>>,
    pub(crate) thinking: Option<JsonStr<'a>>,
    pub(crate) arguments: Option<JsonStr<'a>>,
    /// The last item of the reasoning details.
    pub(crate) detail: Option<JsonStr<'a>>,
    /// True if thinking or a call is in two places, so that no single one decides.
    pub(crate) is_ambiguous: bool,
    /// The range of the last delta.
    pub(crate) delta: Option<Range<usize>>,
    pub(crate) members: MemberCounts,
}

/// The number of members of some names, of which a template follows at most one each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemberCounts {
    pub(crate) deltas: usize,
    pub(crate) ids: usize,
    pub(crate) indices: usize,
    pub(crate) models: usize,
    pub(crate) usages: usize,
}

impl MemberCounts {
    /// Each name once.
    pub(crate) const ONE_EACH: Self = Self { deltas: 1, ids: 1, indices: 1, models: 1, usages: 1 };

    /// Returns true if no name occurs twice.
    pub(crate) fn are_unique(self) -> bool {
        let Self { deltas, ids, indices, models, usages } = self;
        deltas.max(ids).max(indices).max(models).max(usages) <= 1
    }
}

impl Notes<'_> {
    /// Clears everything but the counts, before another choice or delta is read.
    pub(crate) fn forget_words(&mut self) {
        *self = Self { members: self.members, ..Self::default() };
    }
}
