use std::collections::VecDeque;
use std::mem;

use oa_json::{ThinkingTags, held};
use oa_types::check_nesting;

use crate::call::{MalformedCall, Scanned, TextCall};
use crate::closing::Closing;
use crate::grammar::{
    AfterCall, BodyEnd, CallBody, Grammar, Match, ParsedCall, Position, TextBody,
};
use crate::head::{CallHead, NoMatch};
use crate::memory::held_by;

/// The maximum white space before a call that is held back and removed with it, in bytes.
const SPACE: usize = 64;

/// The number of copies of a call that a client holds: in the answer, in history, as the call to run, as its input,
/// and as the block shown.
const COPIES: usize = 5;

const TOO_LARGE: &str = "the call exceeds the memory limit";

/// The maximum size of the text kept of a malformed call, in bytes.
const RAW: usize = 4 * 1024;

/// Limits on the memory that a model's answer can make a scanner use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum size of one call after its opening mark, in bytes. A longer call is malformed, and the rest of the
    /// answer is dropped. 4 MiB by default.
    pub argument_bytes: usize,
    /// The maximum number of calls in one answer. The next call is malformed, and the rest of the answer is dropped.
    /// 128 by default.
    pub calls: usize,
    /// The maximum memory for the calls of one answer, in bytes. Each call counts five times, because a client holds
    /// that many copies, and lists and objects take many times the size of their text. A call that does not fit is
    /// malformed. 64 MiB by default.
    pub held_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { argument_bytes: 4 << 20, calls: 128, held_bytes: 64 << 20 }
    }
}

/// A scanner that finds calls in the text of one answer while it arrives.
///
/// Feed it text with [`push`](Self::push), take items with [`next_item`](Self::next_item) until it returns `None`, end
/// the answer with [`finish`](Self::finish), and take the remaining items. Text is emitted immediately, except for a
/// possible start of a call, which is at most [`MOST_HELD`](Self::MOST_HELD) bytes. The items do not depend on how the
/// text was split.
///
/// ```
/// use std::sync::Arc;
/// use oa_fallback::{Dialect, React, Scanned};
///
/// let mut scanner = React::new().scanner(Arc::new([]));
/// let mut text = String::new();
/// let mut calls = Vec::new();
/// for piece in ["Thought: a su", "m.\nAct", "ion: add(a=1, b", "=2)\nObservation: 7"] {
///     scanner.push(piece);
///     while let Some(item) = scanner.next_item() {
///         match item {
///             Scanned::Text(piece) => text.push_str(piece),
///             Scanned::Call(call) => calls.push(call),
///             other => panic!("{other:?}"),
///         }
///     }
/// }
/// scanner.finish();
/// assert!(scanner.next_item().is_none());
/// assert_eq!(text, "Thought: a sum.");
/// assert_eq!((&*calls[0].name, &calls[0].input["b"]), ("add", &2.into()));
/// ```
#[derive(Debug)]
pub struct Scanner {
    grammar: Box<dyn Grammar>,
    limits: Limits,
    state: State,
    /// Text that may be the start of a call.
    held: String,
    /// True if there was only white space so far: in the answer, and in the line.
    at_start: bool,
    at_line_start: bool,
    /// The end of thinking that began in the prompt, unless it was found.
    thinking: Option<Closing>,
    /// The call being read: its head and the part of its body that has arrived.
    raw: String,
    /// The offset of the body in `raw`.
    head: usize,
    calls: usize,
    /// The memory taken by the calls, in bytes.
    taken: usize,
    /// The text that items borrow.
    text: String,
    queue: VecDeque<Event>,
    /// The number of bytes of text found.
    length: usize,
}

#[derive(Debug)]
enum State {
    /// After a call: another one may follow.
    Between,
    Body(Box<dyn CallBody>),
    /// The rest of the answer is dropped.
    Done,
    /// Inside text that is decoded.
    Encoded(Box<dyn TextBody>),
    /// The rest of the answer is text.
    Plain,
    Text,
    /// Inside thinking, which is text up to its closing tag: calls in it are drafts.
    Thinking(Closing),
}

/// The part of an answer that is still to come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rest {
    /// The answer was truncated, and the rest is lost.
    Lost,
    /// The answer has ended.
    None,
    /// More may come.
    Some,
}

#[derive(Debug)]
enum Event {
    Call(TextCall),
    Malformed(MalformedCall),
    /// A range of the text that items borrow.
    Text(usize, usize),
}

impl Scanner {
    /// The maximum number of bytes held back before it is certain whether a call begins.
    pub const MOST_HELD: usize = 512;

    /// The maximum number of bytes that a grammar sees.
    const WINDOW: usize = Self::MOST_HELD - SPACE;

    /// Creates a scanner for one answer.
    #[must_use]
    pub fn new(grammar: Box<dyn Grammar>) -> Self {
        Self::with_limits(grammar, Limits::default())
    }

    /// Creates a scanner with other limits.
    #[must_use]
    pub fn with_limits(grammar: Box<dyn Grammar>, limits: Limits) -> Self {
        Self {
            grammar,
            limits,
            state: State::Text,
            held: String::new(),
            at_start: true,
            at_line_start: true,
            thinking: Some(Closing::new(ThinkingTags::THINK.close)),
            raw: String::new(),
            head: 0,
            calls: 0,
            taken: 0,
            text: String::new(),
            queue: VecDeque::new(),
            length: 0,
        }
    }

    /// Reads more text.
    pub fn push(&mut self, text: &str) {
        // Queued items point into `text`, so it can be reused only when all of them were taken.
        if self.queue.is_empty() {
            self.text.clear();
        }
        if self.held.is_empty() {
            return self.scan(text, Rest::Some);
        }
        // Held text is scanned again from its start. It is short, so the time stays linear.
        let mut joined = mem::take(&mut self.held);
        joined.push_str(text);
        self.scan(&joined, Rest::Some);
    }

    /// Ends the answer. Further text is ignored.
    pub fn finish(&mut self) {
        self.end(Rest::None);
    }

    /// Ends an answer that was truncated by a length limit or a broken stream. A call without a closing mark may have
    /// lost text, so it is malformed.
    pub fn finish_cut_off(&mut self) {
        self.end(Rest::Lost);
    }

    /// Returns the next item; `None` if more text is needed or the answer has ended.
    pub fn next_item(&mut self) -> Option<Scanned<'_>> {
        Some(match self.queue.pop_front()? {
            Event::Call(call) => Scanned::Call(call),
            Event::Malformed(call) => Scanned::Malformed(call),
            Event::Text(start, end) => Scanned::Text(&self.text[start..end]),
        })
    }

    /// Returns the number of bytes held back because they may be the start of a call.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Returns true if all further text will be dropped, so that the caller can stop reading the answer.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    fn end(&mut self, to_come: Rest) {
        let held = mem::take(&mut self.held);
        self.scan(&held, to_come);
        if let State::Body(body) = mem::replace(&mut self.state, State::Done) {
            // Some calls end with the answer, such as one after `Action Input:`. If the rest was lost, the
            // end is a guess: `San` may have been `San Jose`.
            let mut readings = self.read(&*body, BodyEnd::Open);
            if to_come == Rest::Lost {
                for reading in &mut readings {
                    if let ParsedCall::Valid { name, .. } = reading {
                        *reading = ParsedCall::malformed(
                            Some(name),
                            "the answer was cut off inside the call",
                        );
                    }
                }
            }
            self.queue(readings);
        }
        self.state = State::Done;
    }

    fn scan(&mut self, input: &str, to_come: Rest) {
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            at += match &mut self.state {
                State::Between => self.between(rest, to_come),
                State::Body(body) => {
                    let end = body.push(rest);
                    self.body(rest, end)
                }
                State::Done => return,
                State::Encoded(body) => {
                    let start = self.text.len();
                    let end = body.push(rest, &mut self.text);
                    if end.is_some() {
                        self.state = self.behind();
                    }
                    self.queue_text(start);
                    floor(rest, end.unwrap_or(rest.len()))
                }
                State::Plain => {
                    self.emit(rest);
                    rest.len()
                }
                State::Text => self.text(rest, to_come),
                State::Thinking(closing) => {
                    let end = closing.push(rest);
                    self.think(rest, end)
                }
            };
        }
    }

    /// Emits thinking up to its end. Returns the number of bytes processed.
    fn think(&mut self, rest: &str, end: Option<usize>) -> usize {
        let length = end.unwrap_or(rest.len());
        self.emit(&rest[..length]);
        if end.is_some() {
            self.state = State::Text;
            // The answer itself begins here, as it would if the server had taken the thinking out of it.
            (self.at_start, self.at_line_start) = (true, true);
            self.thinking = Some(Closing::new(ThinkingTags::THINK.close));
        }
        length
    }

    /// Emits text up to a possible call. Returns the number of bytes processed.
    fn text(&mut self, rest: &str, to_come: Rest) -> usize {
        if self.at_start {
            let blank = rest.bytes().take(SPACE).take_while(u8::is_ascii_whitespace).count();
            if blank == SPACE {
                // Text in any case, see below. Longer white space would be read again for each of its pieces.
                return self.emit_text(&rest[..SPACE]);
            }
            let begin = &rest[blank..];
            if let Some(tags) = ThinkingTags::at_start_of(begin) {
                let length = blank + tags.open.len();
                self.emit(&rest[..length]);
                self.state = State::Thinking(Closing::new(tags.close));
                return length;
            }
            let is_begin = !begin.is_empty() && ThinkingTags::may_start_with(begin);
            if to_come == Rest::Some && is_begin {
                return self.hold(rest);
            }
        }
        // In this order: text in which no call can begin; white space before a call; then the grammar.
        let absorbs = self.grammar.after_call() == AfterCall::Cut;
        let is_space = |byte: &u8| absorbs && byte.is_ascii_whitespace();
        let bytes = rest.as_bytes();
        let stops = |byte: &u8| is_space(byte) || self.grammar.may_begin(*byte);
        // Text is emitted up to the first byte at which a call, or the white space before one, may begin.
        let sure = bytes.iter().position(stops).unwrap_or(bytes.len());
        if sure > 0 {
            return self.emit_text(&rest[..sure]);
        }
        let space = bytes.iter().take(SPACE).take_while(|byte| is_space(byte)).count();
        match bytes.get(space) {
            // A call may follow in the next piece. Of longer white space, the first 64 bytes are always text.
            None if to_come == Rest::Some && space < SPACE => return self.hold(rest),
            Some(byte) if self.grammar.may_begin(*byte) && space < SPACE => {}
            _ => return self.emit_text(&rest[..space]),
        }
        let (blank, behind) = rest.split_at(space);
        let position = Position {
            after_call: false,
            at_start: self.at_start,
            at_line_start: self.at_line_start || blank.contains('\n'),
        };
        let (found, length) = self.begin(behind, position, to_come);
        match found {
            Ok(Match::Call(body)) => self.open(body, &behind[..length]),
            Ok(Match::Encoded(body)) => self.decode(body),
            Ok(found) => {
                self.emit(blank);
                if matches!(found, Match::Answer) {
                    self.state = State::Plain;
                }
            }
            Err(NoMatch::Incomplete) => return self.hold(rest),
            Err(NoMatch::Mismatch) => {
                // A call may still begin at the next character, as in `[[TOOL:add]`.
                let first = behind.chars().next().map_or(0, char::len_utf8);
                return self.emit_text(&rest[..space + first]);
            }
        }
        space + length
    }

    /// Looks for another call after a call. Returns the number of bytes processed.
    fn between(&mut self, rest: &str, to_come: Rest) -> usize {
        let space = rest.bytes().take_while(u8::is_ascii_whitespace).count();
        if space > 0 {
            // Dropped, but a line break in it lets the next call begin at the start of a line.
            self.note(&rest[..space]);
            return space;
        }
        let position =
            Position { after_call: true, at_start: false, at_line_start: self.at_line_start };
        let (found, length) = self.begin(rest, position, to_come);
        match found {
            Ok(Match::Call(body)) => self.open(body, &rest[..length]),
            Ok(Match::Encoded(body)) => self.decode(body),
            Ok(Match::Skip) => {}
            Err(NoMatch::Incomplete) => return self.hold(rest),
            Ok(Match::Answer) | Err(NoMatch::Mismatch) => self.state = State::Done,
        }
        length
    }

    /// Asks the grammar, which sees [`WINDOW`](Self::WINDOW) bytes at most. Returns [`NoMatch::Incomplete`] only if
    /// more text may come.
    fn begin(
        &self,
        text: &str,
        position: Position,
        to_come: Rest,
    ) -> (Result<Match, NoMatch>, usize) {
        let is_cut = text.len() >= Self::WINDOW;
        let window = &text[..floor(text, Self::WINDOW)];
        // If the rest is lost, the head does not take the end of the text for the end of the answer: a name
        // that was cut off could be read as the name of another tool.
        let mut head = CallHead::new(window, to_come == Rest::None && !is_cut);
        let found = match self.grammar.begin(&mut head, position) {
            Err(NoMatch::Incomplete) if is_cut || to_come != Rest::Some => Err(NoMatch::Mismatch),
            // A match of length 0 would be found again forever.
            Ok(Match::Skip | Match::Answer | Match::Encoded(_)) if head.at() == 0 => {
                Err(NoMatch::Mismatch)
            }
            found => found,
        };
        (found, head.at())
    }

    fn hold(&mut self, rest: &str) -> usize {
        self.held.push_str(rest);
        rest.len()
    }

    /// Begins to decode text.
    fn decode(&mut self, body: Box<dyn TextBody>) {
        (self.at_start, self.at_line_start) = (false, false);
        self.state = State::Encoded(body);
    }

    /// Begins to read a call, which may be complete already.
    fn open(&mut self, mut body: Box<dyn CallBody>, head: &str) {
        self.raw.clear();
        self.raw.push_str(head);
        self.head = head.len();
        if self.calls >= self.limits.calls {
            return self.refuse(None, self.too_many());
        }
        let has_ended = body.push("").is_some();
        self.state = State::Body(body);
        if has_ended {
            self.close();
        }
    }

    /// Adds text to the body of a call, up to its end. Returns the number of bytes processed.
    fn body(&mut self, rest: &str, end: Option<usize>) -> usize {
        // Grammars are foreign code, and may return an end that is no character boundary or is too large.
        let length = floor(rest, end.unwrap_or(rest.len()));
        // All copies of the call have to fit.
        let most = self.limits.argument_bytes.min(self.left() / COPIES);
        let left = most.saturating_sub(self.raw.len() - self.head);
        if length > left {
            self.raw.push_str(&rest[..floor(rest, left)]);
            self.refuse(self.name(), format!("the call is longer than {most} bytes"));
            return rest.len();
        }
        self.raw.push_str(&rest[..length]);
        if end.is_some() {
            self.close();
        }
        length
    }

    /// Reads a complete body.
    fn close(&mut self) {
        let behind = self.behind();
        if let State::Body(body) = mem::replace(&mut self.state, behind) {
            let readings = self.read(&*body, BodyEnd::Closed);
            self.queue(readings);
        }
    }

    /// Returns the state after a call.
    fn behind(&self) -> State {
        match self.grammar.after_call() {
            AfterCall::Cut => State::Between,
            AfterCall::Keep => State::Text,
        }
    }

    /// Reads the body of a call, unless its value may exceed the memory that is left.
    fn read(&self, body: &dyn CallBody, end: BodyEnd) -> Vec<ParsedCall> {
        let text = &self.raw[self.head..];
        if held_by(text) > self.left() {
            let name = Self::name_by(body, text);
            return vec![ParsedCall::malformed(name.as_deref(), TOO_LARGE)];
        }
        body.read(text, end)
    }

    /// Returns the memory left for calls, in bytes.
    fn left(&self) -> usize {
        // Cannot underflow: a call is counted only if it fits, and `malformed` keeps at most what is left.
        self.limits.held_bytes - self.taken
    }

    /// Queues the calls parsed from a body.
    fn queue(&mut self, mut readings: Vec<ParsedCall>) {
        self.at_start = false;
        self.at_line_start = false;
        if readings.is_empty() {
            readings.push(ParsedCall::malformed(None, "it contains no call"));
        }
        for reading in readings {
            if self.calls >= self.limits.calls {
                return self.refuse(None, self.too_many());
            }
            self.calls += 1;
            match reading {
                // The name alone is too large to be repeated in the error.
                ParsedCall::Valid { name, .. } if name.len() > self.left() / COPIES => {
                    self.malformed(None, TOO_LARGE.to_owned());
                }
                ParsedCall::Valid { name, input } => {
                    let bytes = COPIES * (name.len() + held::by_members(&input));
                    let fits = if bytes > self.left() { Err(TOO_LARGE.to_owned()) } else { Ok(()) };
                    if let Err(error) = check_nesting(&input).and(fits) {
                        self.malformed(Some(name), error);
                        continue;
                    }
                    self.taken += bytes;
                    let call = TextCall { name, input, offset: self.length };
                    self.queue.push_back(Event::Call(call));
                }
                ParsedCall::Malformed { name, error } => self.malformed(name, error),
            }
        }
        self.raw = String::new();
    }

    fn too_many(&self) -> String {
        format!("more than {} calls in one answer", self.limits.calls)
    }

    /// Returns the name of the call being read, if its start contains it.
    fn name(&self) -> Option<String> {
        let State::Body(body) = &self.state else { return None };
        Self::name_by(&**body, &self.raw[self.head..])
    }

    fn name_by(body: &dyn CallBody, text: &str) -> Option<String> {
        let readings = body.read(&text[..floor(text, RAW)], BodyEnd::Open);
        match readings.into_iter().next()? {
            ParsedCall::Valid { name, .. } => Some(name),
            ParsedCall::Malformed { name, .. } => name,
        }
    }

    /// Emits a malformed call and drops the rest of the answer.
    fn refuse(&mut self, name: Option<String>, error: String) {
        self.malformed(name, error);
        self.raw = String::new();
        self.state = State::Done;
    }

    fn malformed(&mut self, name: Option<String>, error: String) {
        let most = RAW.min(self.left() / COPIES);
        let raw = self.raw[..floor(&self.raw, most)].to_owned();
        self.taken += COPIES * raw.len();
        let name = name.filter(|name| name.len() <= RAW);
        let call = MalformedCall { name, error, raw, offset: self.length };
        self.queue.push_back(Event::Malformed(call));
    }

    /// Emits text up to the end of thinking that began in the prompt. Returns the number of bytes processed.
    fn emit_text(&mut self, text: &str) -> usize {
        let end = self.thinking.as_mut().and_then(|thinking| thinking.push(text));
        let length = end.unwrap_or(text.len());
        self.emit(&text[..length]);
        if end.is_some() {
            // The answer begins here, as behind thinking that began in the answer.
            (self.at_start, self.at_line_start, self.thinking) = (true, true, None);
        }
        length
    }

    fn emit(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.note(text);
        let start = self.text.len();
        self.text.push_str(text);
        self.queue_text(start);
    }

    /// Queues the text that was added from `start` on.
    fn queue_text(&mut self, start: usize) {
        if start == self.text.len() {
            return;
        }
        self.length += self.text.len() - start;
        match self.queue.back_mut() {
            Some(Event::Text(_, end)) => *end = self.text.len(),
            _ => self.queue.push_back(Event::Text(start, self.text.len())),
        }
    }

    /// Updates the position in the answer and in the line after emitting a text.
    fn note(&mut self, text: &str) {
        self.at_start = self.at_start && is_blank(text);
        self.at_line_start = match text.rfind('\n') {
            Some(at) => is_blank(&text[at..]),
            None => self.at_line_start && is_blank(text),
        };
    }
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_whitespace())
}

/// Returns the last character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
