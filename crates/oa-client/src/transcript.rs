//! The conversation as bytes of requests.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use oa_types::wire::{Form, write_message};
use oa_types::{ContentBlock, Message, MessageRole, TextBlock};

use crate::manner::Manner;

/// How many bytes of messages are copied together into one segment. What is younger is copied into each
/// request.
const SEGMENT: usize = 16 * 1024;

/// Writes each message once, however many requests it is sent with.
///
/// A message's bytes begin with the comma before it. Neighbouring messages of the user are one message
/// here, since many servers want roles to alternate (QUIRKS row 88).
#[derive(Debug)]
pub(crate) struct Transcript {
    manner: Manner,
    /// One for each message.
    pieces: Vec<Piece>,
    segments: Vec<Segment>,
    /// The bytes of the pieces behind the last segment.
    open: Vec<u8>,
}

#[derive(Debug)]
struct Piece {
    revision: u64,
    bytes: Bytes,
    /// Whether these are the bytes of this message, and not of several.
    alone: bool,
}

#[derive(Debug)]
struct Segment {
    bytes: Bytes,
    /// The place of the first piece behind it.
    end: usize,
}

impl Transcript {
    pub(crate) fn new(manner: Manner) -> Self {
        Self { manner, pieces: Vec::new(), segments: Vec::new(), open: Vec::new() }
    }

    pub(crate) fn manner(&self) -> &Manner {
        &self.manner
    }

    /// Follows the conversation: writes what is new or has changed since the last time.
    pub(crate) fn follow(&mut self, history: &[Message], revisions: &[u64]) {
        let is_user = |place: usize| {
            history.get(place).is_some_and(|message: &Message| message.role == MessageRole::User)
        };
        let same = |(piece, revision): &(&Piece, &u64)| piece.revision == **revision;
        let mut kept = self.pieces.iter().zip(revisions).take_while(same).count();
        if kept < self.pieces.len() || is_user(kept) {
            // What follows a message of the user may have become, or been, one with it.
            while kept > 0 && is_user(kept - 1) {
                kept -= 1;
            }
        }
        let dropped = self.cut(kept).into_iter().filter(|piece| piece.alone);
        let dropped: HashMap<u64, Bytes> =
            dropped.map(|piece| (piece.revision, piece.bytes)).collect();
        let mut place = kept;
        while place < history.len() {
            let mut end = place + 1;
            while is_user(place) && is_user(end) {
                end += 1;
            }
            let bridged = self.manner.bridges_tool_and_user
                && is_user(place)
                && place
                    .checked_sub(1)
                    .is_some_and(|before| history[before].role == MessageRole::Tool);
            let opening = self.manner.opening.as_deref();
            let opening = opening.filter(|_| is_user(place) && !(0..place).any(is_user));
            let alone = end - place == 1 && !bridged && opening.is_none();
            let known = dropped.get(&revisions[place]).filter(|_| alone);
            let bytes = known.cloned().unwrap_or_else(|| {
                let mut list = List::new(self.manner.form);
                if bridged {
                    list.write(&Message::assistant(vec![TextBlock::new(BRIDGE).into()]));
                }
                match (&history[place..end], opening) {
                    ([message], None) => list.write(message),
                    (messages, opening) => {
                        let opening =
                            opening.map(|words| TextBlock::new(format!("{words}\n")).into());
                        let blocks = messages.iter().flat_map(|message| message.content.clone());
                        let blocks = opening.into_iter().chain(blocks).collect();
                        list.write(&Message::user_with_blocks(blocks));
                    }
                }
                list.into_bytes()
            });
            for &revision in &revisions[place..end - 1] {
                self.add(Piece { revision, bytes: Bytes::new(), alone });
            }
            self.add(Piece { revision: revisions[end - 1], bytes, alone });
            place = end;
        }
    }

    /// Returns the messages as segments to be shared, and what is younger.
    pub(crate) fn bytes(&self) -> (Arc<[Bytes]>, Bytes) {
        let segments = self.segments.iter().map(|segment| segment.bytes.clone());
        (segments.collect(), Bytes::copy_from_slice(&self.open))
    }

    fn add(&mut self, piece: Piece) {
        self.open.extend_from_slice(&piece.bytes);
        self.pieces.push(piece);
        if self.open.len() >= SEGMENT {
            self.close_segment();
        }
    }

    /// Makes a segment of what is open; the pieces become parts of it.
    fn close_segment(&mut self) {
        let bytes = Bytes::from(std::mem::take(&mut self.open));
        let begin = self.segments.last().map_or(0, |segment| segment.end);
        let mut at = 0;
        for piece in &mut self.pieces[begin..] {
            let end = at + piece.bytes.len();
            piece.bytes = bytes.slice(at..end);
            at = end;
        }
        self.segments.push(Segment { bytes, end: self.pieces.len() });
    }

    /// Takes away all pieces from a place on.
    fn cut(&mut self, place: usize) -> Vec<Piece> {
        let dropped = self.pieces.split_off(place);
        if !dropped.is_empty() {
            while self.segments.pop_if(|segment| segment.end > place).is_some() {}
            let begin = self.segments.last().map_or(0, |segment| segment.end);
            self.open.clear();
            for piece in &self.pieces[begin..] {
                self.open.extend_from_slice(&piece.bytes);
            }
        }
        dropped
    }
}

/// What is put between a tool's message and the user's, where a server wants something there.
const BRIDGE: &str = "I was interrupted.";

/// Messages as JSON, each with a comma before it.
struct List {
    form: Form,
    bytes: Vec<u8>,
}

impl List {
    fn new(form: Form) -> Self {
        Self { form, bytes: Vec::new() }
    }

    fn write(&mut self, message: &Message) {
        self.bytes.reserve(FRAME + size(message));
        if self.bytes.is_empty() {
            // A list is begun, and its bracket becomes the comma.
            self.bytes.push(b'[');
        }
        write_message(message, &self.form, &mut self.bytes);
    }

    fn into_bytes(mut self) -> Bytes {
        if self.bytes.len() <= 1 {
            return Bytes::new();
        }
        self.bytes[0] = b',';
        self.bytes.into()
    }
}

/// About how many bytes of JSON there are around a message's content.
const FRAME: usize = 64;

/// About how many bytes a message's text has in JSON, if that is most of it.
fn size(message: &Message) -> usize {
    let sizes = message.content.iter().map(|block| match block {
        ContentBlock::Text(block) => block.text.len(),
        ContentBlock::ToolResult(block) => block.content.as_str().map_or(0, str::len),
        _ => 0,
    });
    // Line breaks and quotes take two bytes.
    sizes.map(|size| size + size / 8).sum()
}
