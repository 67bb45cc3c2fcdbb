//! Characters that a server has cut in two: each half is escaped in another string (QUIRKS row 124).

use std::borrow::Cow;

use oa_json::Halves;

use crate::chunk::Fragment;
use crate::error::Error;
use crate::place::Place;
use crate::state::State;

/// U+FFFD, as which half a character is read.
const LOST: &str = "\u{fffd}";

impl State {
    /// Returns words with whole characters: begun with the half that the words before them ended with, and without a
    /// half at their own end, which is kept.
    #[inline]
    pub(super) fn join<'w>(
        &mut self,
        place: Place,
        words: &'w str,
        halves: Halves,
    ) -> Result<Cow<'w, str>, Error> {
        if self.half.is_none() && halves.are_none() {
            return Ok(Cow::Borrowed(words));
        }
        self.join_halves(place, words, halves)
    }

    #[cold]
    fn join_halves<'w>(
        &mut self,
        place: Place,
        words: &'w str,
        halves: Halves,
    ) -> Result<Cow<'w, str>, Error> {
        let (mut whole, mut rest) = (String::new(), words);
        if let Some((_, first)) = self.half.take_if(|(at, _)| *at == place) {
            let character = halves.start.and_then(|second| Halves::join((first, second)));
            match character.zip(words.strip_prefix(LOST)) {
                Some((character, behind)) => {
                    whole.push(character);
                    rest = behind;
                }
                None => whole.push_str(LOST),
            }
        }
        self.flush_half()?;
        if let Some((first, before)) = halves.end.zip(rest.strip_suffix(LOST)) {
            self.half = Some((place, first));
            rest = before;
        }
        whole.push_str(rest);
        Ok(Cow::Owned(whole))
    }

    /// Joins the arguments of a fragment with those before them.
    pub(super) fn join_arguments<'w>(
        &mut self,
        fragment: &'w Fragment<'_>,
    ) -> Result<Cow<'w, str>, Error> {
        let arguments = fragment.arguments.as_deref().unwrap_or_default();
        if arguments.is_empty() || (self.half.is_none() && fragment.halves.are_none()) {
            return Ok(Cow::Borrowed(arguments));
        }
        let call = self.calls.find(fragment, arguments).unwrap_or(self.calls.list.len());
        self.join_halves(Place::Arguments(call), arguments, fragment.halves)
    }

    /// Gives up waiting for the other half.
    pub(super) fn flush_half(&mut self) -> Result<(), Error> {
        match self.half.take() {
            None => Ok(()),
            // That of a call which is about to begin.
            half @ Some((Place::Arguments(call), _)) if call == self.calls.list.len() => {
                self.half = half;
                Ok(())
            }
            Some((Place::Text, _)) => self.speech.add_text(LOST, &mut self.budget),
            Some((Place::Thinking, _)) => self.speech.think(LOST, &mut self.budget),
            Some((Place::Arguments(call), _)) => self.add_to_call(call, &Fragment::default(), LOST),
        }
    }
}
