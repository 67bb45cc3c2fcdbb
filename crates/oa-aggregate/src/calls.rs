//! The calls of an answer, and the rules by which a fragment finds its call.

use oa_json::held;
use oa_types::MadeUpIds;
use oa_types::wire::bare_name;

use crate::arguments::WholeArguments;
use crate::budget::{Budget, COPIES_OF_CALL};
use crate::call::Call;
use crate::chunk::Fragment;
use crate::error::Error;
use crate::place::Span;

/// The calls of one answer, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) list: Vec<Call>,
}

impl Calls {
    /// Finds the call of a fragment with this piece of arguments, or none if it begins a new one.
    ///
    /// An index is a key, not a position (QUIRKS row 4); it may be missing (2, 3), the same for every
    /// call (1), or sent with an id that changes in each fragment (10).
    #[inline]
    pub(crate) fn find(&mut self, fragment: &Fragment<'_>, arguments: &str) -> Option<usize> {
        if fragment.legacy {
            return self.list.iter().position(|call| call.legacy);
        }
        match fragment.index {
            Some(index) => self.find_by_index(index, fragment, arguments),
            None => self.find_without_index(fragment, arguments),
        }
    }

    fn find_by_index(&mut self, index: i64, fragment: &Fragment<'_>, text: &str) -> Option<usize> {
        let id = fragment.id.as_deref();
        let is_named = fragment.name.is_some();
        // The latest, because a server that gives all calls one index sends them one after the other.
        let latest = self.list.iter().rposition(|call| !call.legacy && call.index == Some(index));
        let Some(latest) = latest else {
            // A known id under a different index still means the same call, unless the fragment has a name and does
            // not repeat the whole call (QUIRKS row 127).
            let known = self.position_of_id(id?)?;
            return (!is_named || self.list[known].is_repeated_by(fragment, text)).then_some(known);
        };
        let call = &mut self.list[latest];
        // Nothing speaks against the call of this index, except a second name without an id once the
        // arguments are complete: `{"name":"f","arguments":"{}"}` twice is two calls. Before that, the server
        // repeats the name in each fragment (QUIRKS row 6).
        if id.is_none() || call.id.is_none() || id == call.id.as_deref() {
            let begins =
                id.is_none() && is_named && call.name.is_some() && call.arguments.is_whole();
            return (!begins).then_some(latest);
        }
        // The id is not that of the call. A known one decides; a new one begins a call if there is a name
        // (QUIRKS row 1), and otherwise means nothing (row 10).
        id.and_then(|id| self.position_of_id(id)).or_else(|| (!is_named).then_some(latest))
    }

    fn find_without_index(&mut self, fragment: &Fragment<'_>, text: &str) -> Option<usize> {
        let id = fragment.id.as_deref();
        if let Some(known) = id.and_then(|id| self.position_of_id(id)) {
            return Some(known);
        }
        let last = self.list.iter().rposition(|call| !call.legacy)?;
        let call = &mut self.list[last];
        // Without index and id, a fragment continues the last call (QUIRKS row 3), unless it names another
        // tool, or the same one again after complete arguments. A new id means nothing without a name (row 10),
        // unless the arguments go on after their end.
        let begins = match (&fragment.name, &call.name) {
            (Some(_), _) if id.is_some() => true,
            (Some(new), Some(old)) => bare_name(new) != old || call.arguments.is_whole(),
            _ => id.is_some() && !text.trim().is_empty() && call.arguments.is_whole(),
        };
        (!begins).then_some(last)
    }

    /// Counts what a call takes from a fragment beside arguments: `new_piece` is the name, unless the call has it.
    #[inline]
    pub(crate) fn hold(
        &self,
        call: usize,
        fragment: &Fragment<'_>,
        new_piece: Option<&str>,
        budget: &mut Budget,
    ) -> Result<(), Error> {
        let new_id = fragment.id.as_deref().filter(|_| self.list[call].id.is_none());
        if new_id.is_none() && new_piece.is_none() && fragment.extra.is_none() {
            return Ok(());
        }
        self.hold_words(call, new_id, new_piece, fragment, budget)
    }

    #[inline(never)]
    fn hold_words(
        &self,
        call: usize,
        new_id: Option<&str>,
        new_piece: Option<&str>,
        fragment: &Fragment<'_>,
        budget: &mut Budget,
    ) -> Result<(), Error> {
        // Ids are also kept in lists of their own, to be compared.
        budget.hold((COPIES_OF_CALL + 3) * new_id.map_or(0, str::len))?;
        // A name that grows by pieces may take twice its length.
        budget.hold((COPIES_OF_CALL + 2) * new_piece.map_or(0, str::len))?;
        for (member, value) in fragment.extra.iter().flat_map(|extra| &**extra) {
            let bytes = |value| COPIES_OF_CALL * (held::member(member) + held::by_value(value));
            budget.hold(bytes(value))?;
            if let Some(replaced) = self.list[call].extra.get(member) {
                budget.release(bytes(replaced));
            }
        }
        Ok(())
    }

    /// Adds a fragment and its piece of arguments to a call, and returns the place of the piece.
    ///
    /// An id is set once, and never that of another call: results could not be told apart (QUIRKS row 11).
    #[inline]
    pub(crate) fn take(&mut self, call: usize, fragment: &Fragment<'_>, arguments: &str) -> Span {
        if self.list[call].id.is_none()
            && let Some(id) = fragment.id.as_deref()
            && self.position_of_id(id).is_none()
        {
            self.list[call].id = Some(id.to_owned());
        }
        self.list[call].take(fragment, arguments)
    }

    /// Returns the calls of a message, each with the earlier call that it repeats or continues, and with the arguments
    /// that this one lacks.
    ///
    /// A call is known by its id. A server may also make up another id for the message, or write the same arguments in
    /// another way, so calls of the same content are one, unless the message names both by their ids. Comparing takes at
    /// most `room` bytes.
    pub(crate) fn in_message<'f>(
        &mut self,
        fragments: impl Iterator<Item = &'f Fragment<'f>>,
        room: usize,
    ) -> Vec<(&'f Fragment<'f>, Option<usize>, &'f str)> {
        let before = self.list.len();
        let (mut named, mut grown) = (vec![false; before], vec![false; before]);
        let (mut others, mut found) = (Vec::new(), Vec::new());
        for fragment in fragments.filter(|fragment| fragment.name.is_some()) {
            let id = fragment.id.as_deref();
            let has_id = |call: &usize| id.is_some() && self.list[*call].id.as_deref() == id;
            match (0..before).find(|call| !named[*call] && has_id(call)) {
                Some(call) => {
                    named[call] = true;
                    let rest = self.list[call].rest_of(fragment).unwrap_or_default();
                    grown[call] = !rest.is_empty();
                    found.push((fragment, Some(call), rest));
                }
                None => others.push(fragment),
            }
        }
        for fragment in others {
            let name = fragment.name.as_deref().map(bare_name);
            let text = fragment.arguments.as_deref().unwrap_or_default();
            let arguments = WholeArguments::new(text, room);
            let known = (0..before).find(|&call| {
                let is_free = !grown[call] && (fragment.id.is_none() || !named[call]);
                let call = &mut self.list[call];
                is_free && call.name.as_deref() == name && call.arguments.is(&arguments, room)
            });
            let is_begun = |call: &mut Call| call.rest_of(fragment).is_some();
            let call = known
                .or_else(|| self.find(fragment, text).filter(|&call| !named[call]))
                .or_else(|| (0..before).find(|&at| !named[at] && is_begun(&mut self.list[at])));
            if let Some(call) = call {
                (named[call], grown[call]) = (true, known.is_none());
            }
            let rest = call.and_then(|call| self.list[call].rest_of(fragment)).unwrap_or(text);
            found.push((fragment, call, if known.is_some() { "" } else { rest }));
        }
        found
    }

    /// Settles the id of a call: the server's, or else one that is made up. An id that was made up before the server
    /// sent it for another call is kept, and the other call gets one that is made up, too.
    pub(crate) fn settle_id(&mut self, call: usize, ids: &mut MadeUpIds) {
        let Call { id, made_up, .. } = &self.list[call];
        let is_free =
            |id: &str| !self.list.iter().any(|other| other.made_up.as_deref() == Some(id));
        if made_up.is_some() || id.as_deref().is_some_and(is_free) {
            return;
        }
        let made_up = ids.find(|id| self.position_of_id(id).is_none());
        self.list[call].made_up = made_up;
    }

    fn position_of_id(&self, id: &str) -> Option<usize> {
        self.list.iter().position(|call| call.id.as_deref() == Some(id))
    }
}
