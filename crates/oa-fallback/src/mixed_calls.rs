use std::collections::{HashMap, VecDeque};

use oa_types::ContentBlock;
use serde_json::{Map, Value};

/// Merges the calls found in the text of an answer with those that the server parsed itself.
///
/// Some servers send a call twice: they stream its text, and send the call when it is complete (QUIRKS row 131). The
/// merged answer has it once. Two calls are the same if their names are equal, and their arguments, too, apart from what
/// parsers disagree about: `"3"` or `3`, JSON or a string of it, white space around strings, `null` members, and the order
/// of members.
///
/// Which calls are the same is certain only at the end of the answer. Until then, a call with the name of one that was
/// shown in the other form is not shown, so that nobody sees a call twice.
///
/// Reads the arguments of each call once. Holds the names of the calls and, while it merges, their arguments once more.
///
/// ```
/// use oa_fallback::MixedCalls;
/// use oa_types::ToolUseBlock;
/// use serde_json::json;
///
/// let mut calls = MixedCalls::new();
/// // The scanner finds a call. It becomes the first block, and is shown as call 0.
/// let found = vec![ToolUseBlock::new("x1", "forecast", json!({ "days": 3 })).into()];
/// assert_eq!(calls.add_found("forecast", 0), Some(0));
/// // The server sends two calls, both after that block. The first may be the same call.
/// let sent = [("call_a", "3"), ("call_b", "5")];
/// let sent = sent.map(|(id, days)| ToolUseBlock::new(id, "forecast", json!({ "days": days })).into());
/// assert_eq!(calls.add_sent(0, "forecast", 1), None);
/// assert_eq!(calls.add_sent(1, "forecast", 1), Some(1));
///
/// let merged = calls.merge(found, sent.into());
/// let ids: Vec<_> = merged.iter().filter_map(|block| Some(&*block.as_tool_use()?.id)).collect();
/// assert_eq!(ids, ["x1", "call_b"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct MixedCalls {
    /// The number of calls that were shown.
    shown: usize,
    /// By name, the calls of each form that were shown and not repeated yet.
    open: HashMap<String, Open>,
    sent: Vec<Sent>,
    /// The places of the blocks of found calls that were not shown.
    hidden: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Open {
    found: usize,
    sent: usize,
}

/// A call that the server sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Its number among these.
    call: usize,
    /// Its number among the calls that are shown; of a call that is not, that of the next one.
    number: usize,
    is_shown: bool,
    /// The number of blocks before it.
    place: usize,
}

impl MixedCalls {
    /// Creates an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a call found in the text, whose block has this place among the blocks found. Returns its number among the
    /// calls to show, from 0; `None` if it is not shown.
    pub fn add_found(&mut self, name: &str, place: usize) -> Option<usize> {
        let open = self.open.entry(name.to_owned()).or_default();
        if open.sent > 0 {
            open.sent -= 1;
            self.hidden.push(place);
            return None;
        }
        open.found += 1;
        Some(self.show())
    }

    /// Adds a call found in the text that cannot run. Returns its number.
    pub fn add_malformed(&mut self) -> usize {
        self.show()
    }

    /// Adds a call that the server sends, with its number among these and the number of blocks found before it. Returns
    /// its number among the calls to show, as [`number_of`](Self::number_of) does from then on.
    pub fn add_sent(&mut self, call: usize, name: &str, place: usize) -> Option<usize> {
        let open = self.open.entry(name.to_owned()).or_default();
        let is_shown = open.found == 0;
        self.sent.push(Sent { call, number: self.shown, is_shown, place });
        if is_shown {
            open.sent += 1;
            self.show();
        } else {
            open.found -= 1;
        }
        self.number_of(call)
    }

    /// Returns the number of a call of the server among the calls to show; `None` if it is not shown.
    #[must_use]
    pub fn number_of(&self, call: usize) -> Option<usize> {
        self.find(call).filter(|sent| sent.is_shown).map(|sent| sent.number)
    }

    /// Counts a call to show; returns its number.
    fn show(&mut self) -> usize {
        self.shown += 1;
        self.shown - 1
    }

    fn find(&self, call: usize) -> Option<&Sent> {
        self.sent.iter().find(|sent| sent.call == call)
    }

    /// Returns false for the place of a found call that is not shown.
    #[must_use]
    pub fn shows(&self, place: usize) -> bool {
        !self.hidden.contains(&place)
    }

    /// Returns the blocks found with the calls that the server sent, by number, where each began. Of a call in both
    /// forms, the one that was shown stays.
    #[must_use]
    pub fn merge(self, found: Vec<ContentBlock>, sent: Vec<ContentBlock>) -> Vec<ContentBlock> {
        let pairs = repeated(&found, &sent);
        let mut found: Vec<_> = found.into_iter().map(Some).collect();
        let place = |call| match self.find(call) {
            Some(sent) => (sent.place, sent.number),
            None => (usize::MAX, call),
        };
        let sent = sent.into_iter().enumerate();
        let mut sent: Vec<_> = sent.map(|(call, block)| (place(call), Some(block))).collect();
        for (in_text, call) in pairs {
            if self.shows(in_text) {
                sent[call].1 = None;
            } else {
                found[in_text] = None;
            }
        }
        sent.sort_by_key(|(place, _)| *place);
        // From the last to the first, so that places stay valid.
        for ((place, _), block) in sent.into_iter().rev() {
            found.insert(place.min(found.len()), block);
        }
        found.into_iter().flatten().collect()
    }
}

/// Returns the places of each call that is in both lists, in the order of the second. Each block is in at most one pair.
fn repeated(found: &[ContentBlock], sent: &[ContentBlock]) -> Vec<(usize, usize)> {
    if sent.is_empty() {
        return Vec::new();
    }
    let mut places: HashMap<(&str, String), VecDeque<usize>> = HashMap::new();
    for (key, place) in keys(found) {
        places.entry(key).or_default().push_back(place);
    }
    keys(sent)
        .filter_map(|(key, place)| Some((places.get_mut(&key)?.pop_front()?, place)))
        .collect()
}

/// Returns name and arguments of each call, and the place of its block.
fn keys(blocks: &[ContentBlock]) -> impl Iterator<Item = ((&str, String), usize)> {
    blocks.iter().enumerate().filter_map(|(place, block)| {
        let call = block.as_tool_use()?;
        Some(((&*call.name, normal(&call.input, true).to_string()), place))
    })
}

/// Returns the form of a value that any parser of the same text would give. Only strings of the call itself are read as
/// JSON, not those within such JSON.
fn normal(value: &Value, reads_strings: bool) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| normal(item, reads_strings)).collect(),
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().filter(|(_, value)| !value.is_null()).collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            let normal =
                |(name, value): (&String, &Value)| (name.clone(), normal(value, reads_strings));
            members.into_iter().map(normal).collect::<Map<_, _>>().into()
        }
        Value::Number(number) => match number.as_f64() {
            // From 2^53 on, a float no longer stands for one integer.
            Some(whole) if whole.fract() == 0.0 && whole.abs() < 2_f64.powi(53) => {
                (whole as i64).into()
            }
            _ => value.clone(),
        },
        Value::String(text) => {
            let text = text.trim();
            match serde_json::from_str(text) {
                Ok(read) if reads_strings => normal(&read, false),
                _ => text.into(),
            }
        }
        Value::Bool(_) | Value::Null => value.clone(),
    }
}
