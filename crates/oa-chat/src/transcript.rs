//! The conversation, serialized for requests.

use std::collections::HashMap;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use oa_fallback::plain_message;
use oa_types::wire::{ResultImages, has_result_images, images_apart, write_message};
use oa_types::{ContentBlock, Message, MessageRole, TextBlock};

use crate::wire_format::{WireFormat, instructions_of};

/// The size of a segment, in bytes. Newer messages are copied into each request.
const SEGMENT: usize = 16 * 1024;

/// Serializes each message once, however many requests contain it.
///
/// A message's bytes begin with the comma before it. Adjacent messages of one role are merged, because many servers
/// require roles to alternate (QUIRKS row 88): user messages, and answers without calls with the answer that follows,
/// which can be adjacent after a program has edited the conversation.
///
/// The system message of a conversation comes first and has no bytes here: it is sent as part of the system prompt, or
/// at the start of the first user message.
#[derive(Debug)]
pub(crate) struct Transcript {
    format: WireFormat,
    /// One for each message.
    pieces: Vec<Piece>,
    segments: Vec<Segment>,
    /// The bytes of the pieces after the last segment.
    open: Vec<u8>,
    /// True if images of results were written as messages of their own.
    is_apart: bool,
}

#[derive(Debug)]
struct Piece {
    revision: u64,
    /// Its length in bytes.
    length: usize,
    /// True if these are the bytes of this message alone.
    alone: bool,
    /// True for the last message of those that are merged into one.
    is_last: bool,
}

#[derive(Debug)]
struct Segment {
    bytes: Bytes,
    /// The index of the first piece after it.
    end: usize,
}

impl Transcript {
    pub(crate) fn new(format: WireFormat) -> Self {
        let (pieces, segments, open) = (Vec::new(), Vec::new(), Vec::new());
        Self { format, pieces, segments, open, is_apart: false }
    }

    /// Serializes a conversation once, without following it.
    pub(crate) fn of(format: WireFormat, history: &[Message]) -> Self {
        let revisions: Vec<u64> = (0..).take(history.len()).collect();
        let mut this = Self::new(format);
        this.follow(history, &revisions);
        this
    }

    pub(crate) fn format(&self) -> &WireFormat {
        &self.format
    }

    /// Follows the conversation: serializes messages that are new or have changed.
    pub(crate) fn follow(&mut self, history: &[Message], revisions: &[u64]) {
        let WireFormat { messages, dialect, .. } = &self.format;
        // In a dialect, results are text.
        let is_inline = messages.result_images == ResultImages::Inline && dialect.is_none();
        let known = self.known(revisions);
        // Messages that were written unchanged had no images, so only new ones are checked.
        let is_plain = !self.is_apart && !history.iter().skip(known).any(has_result_images);
        if is_inline || is_plain {
            return self.follow_sent(history, revisions, known);
        }
        let apart = images_apart(history, revisions, messages);
        self.is_apart = apart.is_some();
        match apart {
            Some((history, revisions)) => {
                self.follow_sent(&history, &revisions, self.known(&revisions));
            }
            None => self.follow_sent(history, revisions, known),
        }
    }

    /// Returns the number of messages, from the first, that were written with the same revisions.
    fn known(&self, revisions: &[u64]) -> usize {
        let same = |(piece, revision): &(&Piece, &u64)| piece.revision == **revision;
        self.pieces.iter().zip(revisions).take_while(same).count()
    }

    /// Follows the messages that were sent, some of which are already serialized.
    fn follow_sent(&mut self, history: &[Message], revisions: &[u64], known: usize) {
        // In a dialect, results are user messages.
        let in_text = self.format.dialect.is_some();
        let is_user = |place: usize| {
            history.get(place).is_some_and(|message: &Message| match message.role {
                MessageRole::User => true,
                MessageRole::Tool => in_text,
                _ => false,
            })
        };
        let is_one_with_next = |place: usize| match (history.get(place), history.get(place + 1)) {
            (Some(answer), Some(next)) if answer.role == MessageRole::Assistant => {
                next.role == MessageRole::Assistant && !has_calls(answer)
            }
            _ => is_user(place) && is_user(place + 1),
        };
        let mut kept = known;
        // The message before a change may have been merged, or may now be merged, with the one after it.
        while kept > 0 && (is_one_with_next(kept - 1) || !self.pieces[kept - 1].is_last) {
            kept -= 1;
        }
        let dropped = (kept < self.pieces.len()).then(|| self.cut(kept));
        let first = history.iter().position(|message| message.role != MessageRole::System);
        let mut place = kept;
        while place < history.len() {
            let mut end = place + 1;
            while is_one_with_next(end - 1) {
                end += 1;
            }
            let before = if Some(place) == first {
                self.before_all(history, is_user(place))
            } else {
                let bridges = self.format.bridges_tool_and_user
                    && is_user(place)
                    && history[place - 1].role == MessageRole::Tool;
                bridges.then(|| Before::Message(text_message(MessageRole::Assistant, BRIDGE)))
            };
            // Bytes that another message went into are useless when that one changes: a neighbor, or the call
            // from which a result without a name got it.
            let alone = end - place == 1
                && before.is_none()
                && !(in_text && has_nameless_result(&history[place]));
            let start = self.open.len();
            let known = dropped.as_ref().filter(|_| alone);
            match known.and_then(|dropped| dropped.get(&revisions[place])) {
                Some(bytes) => self.open.extend_from_slice(bytes),
                None => self.write(history, place..end, before),
            }
            for &revision in &revisions[place..end - 1] {
                self.pieces.push(Piece { revision, length: 0, alone, is_last: false });
            }
            let length = self.open.len() - start;
            let revision = revisions[end - 1];
            self.pieces.push(Piece { revision, length, alone, is_last: true });
            if self.open.len() >= SEGMENT {
                let bytes = Bytes::from(mem::take(&mut self.open));
                self.segments.push(Segment { bytes, end: self.pieces.len() });
            }
            place = end;
        }
    }

    /// Returns the messages as shared segments, and the newer bytes.
    pub(crate) fn bytes(&self) -> (Arc<[Bytes]>, Arc<[u8]>) {
        let segments = match &self.segments[..] {
            [] => Arc::default(),
            segments => segments.iter().map(|segment| segment.bytes.clone()).collect(),
        };
        (segments, self.open.as_slice().into())
    }

    /// Returns what precedes the first message: the instructions, if the user message carries them, or a short user
    /// message, if one has to come first.
    fn before_all(&self, history: &[Message], is_user: bool) -> Option<Before> {
        let WireFormat { opening, user_instructs, lets_assistant_begin, .. } = &self.format;
        let brought = history.first().filter(|_| *user_instructs).and_then(instructions_of);
        let mut words = String::new();
        for part in opening.as_deref().into_iter().chain(brought.as_deref()) {
            words.push_str(if words.is_empty() { "" } else { "\n\n" });
            words.push_str(part);
        }
        match words {
            words if is_user && !words.is_empty() => Some(Before::Words(words)),
            words if !words.is_empty() => {
                Some(Before::Message(text_message(MessageRole::User, &words)))
            }
            _ if is_user || *lets_assistant_begin => None,
            _ => Some(Before::Message(text_message(MessageRole::User, BEGIN))),
        }
    }

    /// Writes a message, or several of one role as one, preceded by `before`.
    fn write(&mut self, history: &[Message], places: Range<usize>, before: Option<Before>) {
        let Self { format, open, .. } = self;
        if history[places.start].role == MessageRole::System {
            return;
        }
        let plain: Vec<Message>;
        let messages = match &format.dialect {
            None => &history[places],
            Some(text) => {
                let plainly = |place: usize| {
                    let (earlier, message) = (&history[..place], &history[place]);
                    plain_message(&*text.dialect, message, earlier).into_owned()
                };
                plain = places.map(plainly).collect();
                &plain[..]
            }
        };
        let is_first = open.is_empty();
        open.reserve(messages.iter().map(|message| FRAME + size(message)).sum());
        if is_first {
            // Begin a list; its bracket is replaced by a comma below.
            open.push(b'[');
        }
        let words = match before {
            Some(Before::Message(message)) => {
                write_message(&message, &format.messages, open);
                None
            }
            Some(Before::Words(words)) => Some(words),
            None => None,
        };
        match (messages, words) {
            ([message], None) => write_message(message, &format.messages, open),
            (messages, words) => {
                write_message(&joined(messages, words.as_deref()), &format.messages, open);
            }
        }
        match &mut open[..] {
            [_] => open.clear(),
            [first, ..] if is_first => *first = b',',
            _ => {}
        }
    }

    /// Removes all pieces from an index on and returns them by revision.
    #[cold]
    fn cut(&mut self, place: usize) -> HashMap<u64, Bytes> {
        let mut dropped = HashMap::new();
        let whole = self.segments.partition_point(|segment| segment.end <= place);
        let begin = whole.checked_sub(1).map_or(0, |last| self.segments[last].end);
        let open = Bytes::from(mem::take(&mut self.open));
        let mut cut = self.segments.drain(whole..).map(|segment| segment.bytes).chain([open]);
        // Segments hold whole pieces, so `rest` is empty exactly where the next one begins. A merged message
        // has length 0: its bytes are those of the last message of its group.
        let mut rest = Bytes::new();
        for (number, piece) in self.pieces.iter().enumerate().skip(begin) {
            if rest.is_empty() && piece.length > 0 {
                rest = cut.next().unwrap_or_default();
            }
            let bytes = rest.split_to(piece.length);
            if number < place {
                self.open.extend_from_slice(&bytes);
            } else if piece.alone {
                dropped.insert(piece.revision, bytes);
            }
        }
        drop(cut);
        self.pieces.truncate(place);
        dropped
    }
}

/// Merges messages of one role, after a system prompt that the user message carries.
fn joined(messages: &[Message], opening: Option<&str>) -> Message {
    let opening = opening.map(|words| TextBlock::new(format!("{words}\n")).into());
    let mut whole = Message::user_with_blocks(opening.into_iter().collect());
    for message in messages {
        whole.role = message.role;
        // Blocks of an answer are pieces of one text; blocks of the user are separate lines.
        if message.role == MessageRole::Assistant && !whole.text().is_empty() {
            whole.content.push(TextBlock::new("\n").into());
        }
        whole.content.extend_from_slice(&message.content);
        for (name, value) in message.extra.iter() {
            whole.extra.insert(name.clone(), value.clone());
        }
    }
    whole
}

fn has_nameless_result(message: &Message) -> bool {
    let is_nameless = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(result) if result.name.is_none());
    message.content.iter().any(is_nameless)
}

fn has_calls(message: &Message) -> bool {
    message.content.iter().any(|block| matches!(block, ContentBlock::ToolUse(_)))
}

/// The text or message in front of a message, or of several merged ones.
enum Before {
    /// A message of another role.
    Message(Message),
    /// Text at the start of the message.
    Words(String),
}

fn text_message(role: MessageRole, text: &str) -> Message {
    Message::new(role, vec![TextBlock::new(text).into()])
}

/// The assistant message between a tool message and a user message, for servers that require one.
const BRIDGE: &str = "I was interrupted.";

/// The user message before the first assistant message, for servers that require one.
const BEGIN: &str = "Begin.";

/// The approximate size of the JSON around a message's content, in bytes.
const FRAME: usize = 64;

/// Returns the approximate size of a message in JSON, in bytes, if it is mostly text.
fn size(message: &Message) -> usize {
    let sizes = message.content.iter().map(|block| match block {
        ContentBlock::Text(block) => block.text.len(),
        ContentBlock::ToolResult(block) => block.content.as_str().map_or(0, str::len),
        _ => 0,
    });
    // Line breaks and quotes take two bytes.
    sizes.map(|size| size + size / 8).sum()
}
