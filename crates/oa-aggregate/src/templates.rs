//! The forms of chunk that a stream is made of.

use std::iter;

use crate::chunk::Chunk;
use crate::form::{Target, Told};
use crate::hole::Hole;
use crate::template::{Frame, Match, Template};

/// How many forms are remembered: text and thinking, arguments of a call, choices that alternate.
const MOST: usize = 4;

/// The last few templates.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    list: Vec<Remembered>,
    /// The one that matched or was learned last.
    latest: usize,
    clock: u64,
    /// Strings without their escapes.
    words: String,
    detail: String,
}

#[derive(Debug)]
struct Remembered {
    template: Template,
    /// When it ceased to be the latest.
    used: u64,
}

impl Templates {
    /// Finds the template that a payload is like, the latest first.
    #[inline]
    pub(crate) fn find<'a>(&mut self, payload: &'a [u8]) -> Option<Match<'a>> {
        let latest = self.list.get_mut(self.latest)?;
        match latest.template.match_payload(payload) {
            Some(found) => Some(found),
            None => self.find_older(payload),
        }
    }

    #[inline(never)]
    fn find_older<'a>(&mut self, payload: &'a [u8]) -> Option<Match<'a>> {
        let latest = self.latest;
        let mut older = self.list.iter_mut().enumerate().filter(|(place, _)| *place != latest);
        let (place, found) = older.find_map(|(place, remembered)| {
            Some((place, remembered.template.match_payload(payload)?))
        })?;
        self.turn_to(place);
        Some(found)
    }

    /// What the payload says that was found last.
    #[inline]
    pub(crate) fn told<'a>(&'a mut self, found: Match<'a>) -> Told<'a> {
        let words = found.words.text_in(&mut self.words);
        // Most servers that send details say the same twice.
        let is_same = found.detail.raw == found.words.raw;
        let detail = if is_same { words } else { found.detail.text_in(&mut self.detail) };
        self.list[self.latest].template.told(words, detail, found)
    }

    /// Finds the template that a payload is like but for the delta, the latest first.
    pub(crate) fn find_frame<'a>(&mut self, payload: &'a [u8]) -> Option<Frame<'a>> {
        let mut places = iter::once(self.latest).chain(0..self.list.len());
        let (place, frame) = places.find_map(|place| {
            Some((place, self.list.get_mut(place)?.template.match_frame(payload)?))
        })?;
        self.turn_to(place);
        Some(frame)
    }

    /// Completes what was read of a payload whose frame was found last, and remembers it.
    pub(crate) fn learn_in_frame<'a>(
        &mut self,
        payload: &[u8],
        frame: Frame<'_>,
        chunk: &mut Chunk<'a>,
        target: &mut Target<'a>,
        skipped: &mut Vec<Hole>,
    ) {
        self.list[self.latest].template.complete(frame, chunk, target, skipped);
        self.learn(payload, chunk, target, skipped);
    }

    /// Remembers a payload that was read, in place of the one that was of use longest ago.
    pub(crate) fn learn(
        &mut self,
        payload: &[u8],
        chunk: &mut Chunk<'_>,
        target: &Target<'_>,
        skipped: &[Hole],
    ) {
        self.clock += 1;
        let Some(template) = Template::learn(payload, chunk, target, skipped, self.clock) else {
            return;
        };
        let remembered = Remembered { template, used: self.clock };
        if self.list.len() < MOST {
            self.list.reserve_exact(MOST - self.list.len());
            self.list.push(remembered);
            self.turn_to(self.list.len() - 1);
            return;
        }
        self.turn_to(self.latest);
        let oldest = self.list.iter().enumerate().min_by_key(|(_, remembered)| remembered.used);
        self.latest = oldest.map_or(0, |(place, _)| place);
        self.list[self.latest] = remembered;
    }

    /// Makes another one the latest: until now the one before was in use.
    fn turn_to(&mut self, place: usize) {
        self.clock += 1;
        self.list[self.latest].used = self.clock;
        self.latest = place;
    }
}
