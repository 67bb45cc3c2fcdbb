//! The conversation as bytes of requests.

use std::collections::HashMap;

use bytes::Bytes;
use oa_types::wire::{Form, write_message};
use oa_types::{ContentBlock, Message, MessageRole};

/// How many bytes of messages are copied together into one segment. What is younger is copied into each
/// request.
const SEGMENT: usize = 16 * 1024;

/// Writes each message once, however many requests it is sent with.
///
/// A message's bytes begin with the comma before it. Neighbouring messages of the user are one message
/// here, since many servers want roles to alternate (QUIRKS row 88).
#[derive(Debug, Default)]
pub(crate) struct Transcript {
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
            let alone = end - place == 1;
            let bytes = if alone {
                let known = dropped.get(&revisions[place]).cloned();
                known.unwrap_or_else(|| written(&history[place]))
            } else {
                let blocks = history[place..end].iter().flat_map(|message| message.content.clone());
                written(&Message::user_with_blocks(blocks.collect()))
            };
            for &revision in &revisions[place..end - 1] {
                self.add(Piece { revision, bytes: Bytes::new(), alone });
            }
            self.add(Piece { revision: revisions[end - 1], bytes, alone });
            place = end;
        }
    }

    /// Returns the messages as segments to be shared, and what is to be copied behind them.
    pub(crate) fn bytes(&self) -> (Vec<Bytes>, &[u8]) {
        (self.segments.iter().map(|segment| segment.bytes.clone()).collect(), &self.open)
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

/// A message's JSON with a comma before it; nothing if the message says nothing.
fn written(message: &Message) -> Bytes {
    // A list is begun, and its bracket becomes the comma.
    let mut bytes = Vec::with_capacity(FRAME + size(message));
    bytes.push(b'[');
    write_message(message, &Form::default(), &mut bytes);
    if bytes.len() == 1 {
        return Bytes::new();
    }
    bytes[0] = b',';
    bytes.into()
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
