//! One tool call being assembled.

use oa_types::wire::{bare_name, control_token};
use oa_types::{ToolUseBlock, ToolUseError};
use serde_json::{Map, Value};

use crate::arguments::Arguments;
use crate::budget::{Budget, COPIES_OF_CALL};
use crate::chunk::Fragment;
use crate::place::Span;
use crate::quirks::ArgumentRepair;

/// The number of bytes of broken arguments that are kept for the model and the user.
pub(crate) const RAW_BYTES: usize = 16 << 10;

/// Returns the length of a member as JSON.
pub(crate) fn json_length(member: &str, value: &Value) -> usize {
    member.len() + value.to_string().len()
}

#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) index: Option<i64>,
    /// The server's id, by which fragments find the call.
    pub(crate) id: Option<String>,
    /// The id that the call has in place of the server's, once it has one.
    pub(crate) made_up: Option<String>,
    /// Set once the start of the call is among the deltas. From then on, id and name stay as they are.
    pub(crate) has_started: bool,
    /// Set once its name is settled and the server has sent no id: the next fragment may bring one.
    pub(crate) waits_for_id: bool,
    pub(crate) name: Option<String>,
    pub(crate) arguments: Arguments,
    pub(crate) legacy: bool,
    /// It is in a message, which has whole calls.
    pub(crate) is_in_message: bool,
    /// A control token has ended the name.
    name_ended: bool,
    /// A part of the arguments was dropped because of the limit.
    pub(crate) is_too_long: bool,
    /// The members that only the server understands.
    pub(crate) extra: Map<String, Value>,
}

impl Call {
    pub(crate) fn new(fragment: &Fragment<'_>) -> Self {
        Self { index: fragment.index, legacy: fragment.legacy, ..Self::default() }
    }

    /// Returns true if a fragment adds only a piece of arguments to this call.
    #[inline]
    pub(crate) fn knows_all_but_arguments(&self, fragment: &Fragment<'_>) -> bool {
        // As in `take`: an id is set once, and a known name is not extended.
        fragment.extra.is_none()
            && (fragment.id.is_none() || self.id.is_some())
            && (fragment.name.is_none() || fragment.name.as_deref() == self.name.as_deref())
    }

    /// Returns true if a fragment with these arguments is all of this call, in the same words. Without any argument,
    /// equal words say too little: a server that gives all calls one id may have sent two of them.
    pub(crate) fn is_repeated_by(&mut self, fragment: &Fragment<'_>, arguments: &str) -> bool {
        fragment.name.as_deref().map(bare_name) == self.name.as_deref()
            && self.arguments.slice(0, self.arguments.len()) == arguments
            && self.arguments.is_whole()
            && !arguments.bytes().filter(|byte| !byte.is_ascii_whitespace()).eq(*b"{}")
    }

    /// Returns what a message's call adds to the arguments of this one, if these are only their beginning, or `{}` in
    /// their place (QUIRKS row 126).
    pub(crate) fn rest_of<'f>(&mut self, fragment: &'f Fragment<'_>) -> Option<&'f str> {
        let name = fragment.name.as_deref().map(bare_name);
        let whole = fragment.arguments.as_deref()?.trim();
        let rest = match self.arguments.begun() {
            "{}" => Some(whole).filter(|whole| whole.starts_with('{') && *whole != "{}"),
            begun => whole.strip_prefix(begun).filter(|rest| !rest.is_empty()),
        };
        rest.filter(|_| self.name.is_none() || self.name.as_deref() == name)
    }

    /// Returns the length of the members that these replace.
    pub(crate) fn length_of_known(&self, new: &Map<String, Value>) -> usize {
        let known = new.keys().filter_map(|member| Some((member, self.extra.get(member)?)));
        known.map(|(member, value)| json_length(member, value)).sum()
    }

    /// Returns true if the start can be reported: the name is known and cannot grow, and the id has arrived or is not
    /// worth waiting for. Some servers send it one fragment late.
    pub(crate) fn can_start(&mut self) -> bool {
        let is_settled = self.name.is_some() && (self.name_ended || !self.arguments.is_empty());
        // `replace` sets the flag once the name is settled without an id: the next fragment starts the call.
        is_settled && (self.id.is_some() || std::mem::replace(&mut self.waits_for_id, true))
    }

    /// Marks the start of the call as reported. A name before any arguments ends here.
    pub(crate) fn start(&mut self) {
        self.has_started = true;
        // The caller has been told the name, so a later piece must not change it.
        self.name_ended |= self.arguments.is_empty();
    }

    /// Returns the id and the name of a call that has started.
    pub(crate) fn identity(&self) -> (&str, &str) {
        let id = self.made_up.as_ref().or(self.id.as_ref());
        (id.map_or("", String::as_str), self.name.as_deref().unwrap_or_default())
    }

    /// Takes a fragment except for its id, and a piece of arguments, and returns the start and end of the piece.
    #[inline]
    pub(crate) fn take(&mut self, fragment: &Fragment<'_>, arguments: &str) -> Span {
        self.take_name(fragment);
        for (member, value) in fragment.extra.iter().flat_map(|extra| &**extra) {
            self.extra.insert(member.clone(), value.clone());
        }
        self.arguments.push(arguments)
    }

    /// A name is set once; another piece is appended only while there are no arguments, and no control
    /// token of the model has ended it (QUIRKS row 110).
    fn take_name(&mut self, fragment: &Fragment<'_>) {
        let Some(piece) = fragment.name.as_deref() else {
            return;
        };
        let mut known = 0;
        match &mut self.name {
            None => self.name = Some(piece.to_owned()),
            Some(name) if name == piece || self.name_ended || !self.arguments.is_empty() => return,
            Some(name) => {
                // Some servers send the whole name so far in each fragment (QUIRKS row 6).
                if piece.starts_with(&**name) {
                    name.clear();
                }
                // The token may be split over two pieces.
                known = name.len() - usize::from(name.ends_with('<'));
                name.push_str(piece);
            }
        }
        if let Some(name) = &mut self.name
            && let Some(end) = control_token(&name[known..])
        {
            name.truncate(name[..known + end].trim_end().len());
            // A name that was only a control token is none; the next pieces may be the name.
            self.name_ended = !name.is_empty();
        }
        self.name = self.name.take().filter(|name| !name.is_empty());
    }

    /// Returns true if a piece of a name comes too late to be one: arguments have begun (QUIRKS row 119).
    pub(crate) fn is_late(&self, piece: &str) -> bool {
        let is_other = self.name.as_deref().is_some_and(|name| name != bare_name(piece));
        is_other && !self.name_ended && !self.arguments.is_empty()
    }

    /// Returns the finished block; `cut` is the reason why a call without arguments is not a call.
    pub(crate) fn finish(
        self,
        cut: Option<&'static str>,
        repair: ArgumentRepair,
        budget: &mut Budget,
    ) -> Result<ToolUseBlock, ToolUseError> {
        // Every call has one by now.
        let id = self.made_up.or(self.id).unwrap_or_default();
        let resolution = match cut {
            _ if self.is_too_long => Err("the arguments are longer than the limit".to_owned()),
            Some(why) if self.arguments.is_blank() => Err(why.to_owned()),
            _ => self.arguments.resolve(repair, budget),
        };
        let why = match (resolution, &self.name) {
            (Ok(input), Some(name)) => {
                let mut block = ToolUseBlock::new(id, name, Value::Object(input));
                block.extra = self.extra.into();
                return Ok(block);
            }
            (Ok(_), None) => "the call has no tool name".to_owned(),
            (Err(why), _) => why,
        };
        let raw = self.arguments.excerpt(RAW_BYTES.min(budget.left() / COPIES_OF_CALL));
        // It fits, because it is cut to the room that is left.
        let _ = budget.hold(COPIES_OF_CALL * raw.len());
        let mut error = ToolUseError::new(why, raw);
        (error.id, error.name) = (Some(id), self.name);
        Err(error)
    }
}
