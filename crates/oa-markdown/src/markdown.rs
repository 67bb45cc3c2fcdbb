//! Rendering of streaming Markdown for a terminal.

mod block;
mod inline;
mod marker;

use crate::style::{Color, Span, Style, floor_char_boundary};

pub use self::block::{Align, Block};

use self::marker::{BLANKS, Fence, Marker};

/// Turns Markdown into [`Block`]s as it arrives.
///
/// [`push`](Self::push) text, take the complete blocks, and show [`live`](Self::live) below them: the block that may
/// still change. [`finish`](Self::finish) ends the text. The blocks do not depend on how the text is split.
///
/// Blocks are distinguished by lines, in the way that models write them. Within a block, the syntax is `CommonMark`,
/// except that line breaks in a paragraph are kept, because models write them deliberately. Memory is bounded: a line
/// or a block that becomes too long is ended.
///
/// ```
/// use oa_markdown::{Markdown, Style};
///
/// let mut markdown = Markdown::new(Style::PLAIN);
/// let mut blocks = markdown.push("# Rain\n\nDrops of **wa");
/// assert_eq!(blocks.len(), 1); // the headline
/// blocks.extend(markdown.push("ter**."));
/// blocks.extend(markdown.finish());
/// let lines: Vec<_> = blocks.iter().flat_map(|block| block.lines(40)).map(|line| line.plain()).collect();
/// assert_eq!(lines, ["Rain", "", "Drops of water."]);
/// ```
#[derive(Clone, Debug)]
pub struct Markdown {
    base: Style,
    /// The incomplete line.
    pending: String,
    state: State,
}

#[derive(Clone, Debug)]
struct State {
    chunk: Option<Chunk>,
    fence: Option<Fence>,
    /// True if an empty line comes before the next block.
    has_gap: bool,
    /// True if any block was made.
    has_begun: bool,
    /// True if indented lines belong to a list item.
    is_in_list: bool,
}

/// Consecutive lines that form one block.
#[derive(Clone, Debug)]
enum Chunk {
    Table(Vec<String>),
    Text { marker: Marker, text: String },
}

/// The maximum length of a line and of a block, in bytes, and of a table, in rows.
const LONGEST_LINE: usize = 8 * 1024;
const LONGEST_TEXT: usize = 16 * 1024;
const LONGEST_TABLE: usize = 256;

impl Markdown {
    /// Creates a renderer with this style for plain text.
    #[must_use]
    pub fn new(base: Style) -> Self {
        let state =
            State { chunk: None, fence: None, has_gap: false, has_begun: false, is_in_list: false };
        Self { base, pending: String::new(), state }
    }

    /// Adds text, and returns the blocks completed by it.
    pub fn push(&mut self, text: &str) -> Vec<Block> {
        self.pending.push_str(text);
        let mut blocks = Vec::new();
        let mut done = 0;
        loop {
            let rest = &self.pending[done..];
            let (line, next) = match rest.find('\n') {
                // A longer line is cut at the same place whether or not its end has arrived, so that blocks
                // do not depend on how the text is split.
                Some(end) if end < LONGEST_LINE => (&rest[..end], end + 1),
                _ if rest.len() >= LONGEST_LINE => {
                    let end = floor_char_boundary(rest, LONGEST_LINE);
                    (&rest[..end], end)
                }
                _ => break,
            };
            self.state.line(line, self.base, &mut blocks);
            done += next;
        }
        self.pending.drain(..done);
        blocks
    }

    /// Returns the blocks in progress, which follow the complete ones.
    #[must_use]
    pub fn live(&self) -> Vec<Block> {
        // The live blocks are those that the text would have if it ended here. The copy is small: complete
        // blocks are not part of it.
        self.clone().finish()
    }

    /// Ends the text, and returns the remaining blocks.
    #[must_use]
    pub fn finish(mut self) -> Vec<Block> {
        let mut blocks = Vec::new();
        if !self.pending.is_empty() {
            self.state.line(&self.pending, self.base, &mut blocks);
        }
        self.state.flush(self.base, &mut blocks);
        blocks
    }
}

impl State {
    fn line(&mut self, line: &str, base: Style, out: &mut Vec<Block>) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        // The order of these checks is the precedence: nothing has a meaning within a fence, a blank line
        // ends any block, and `- - -` is a rule and not a list item.
        if let Some(fence) = &self.fence {
            if fence.is_closed_by(line) {
                self.fence = None;
                return;
            }
            if !fence.is_left_by(line) {
                let code = Span::new(fence.without_indent(line), base.color(Color::Cyan));
                self.emit(Block::Code(code), out);
                return;
            }
            self.fence = None;
        }
        if line.trim().is_empty() {
            self.flush(base, out);
            self.has_gap = self.has_begun;
            return;
        }
        if let Some(fence) = Fence::opened_by(line) {
            self.flush(base, out);
            if !fence.language.is_empty() {
                self.emit(Block::Code(Span::new(&fence.language, base.dim())), out);
            }
            self.fence = Some(fence);
            return;
        }
        if marker::is_rule(line) {
            self.flush(base, out);
            self.emit(Block::Rule, out);
            return;
        }
        if line.trim_start_matches(BLANKS).starts_with('|') {
            // A line with `|` within a paragraph belongs to the paragraph, unless the next line makes it the header
            // of a table.
            if let Some(Chunk::Text { text, .. }) = &mut self.chunk
                && let Some(at) = block::header_at(text, line)
            {
                let header = text.split_off(at);
                text.truncate(at - 1);
                self.flush(base, out);
                self.row(&header, base, out);
            }
            if !matches!(self.chunk, Some(Chunk::Text { .. })) {
                return self.row(line, base, out);
            }
        }
        let (marker, text) = marker::split(line, self.is_in_list);
        if let Marker::Item { .. } = marker
            && let Some((inner, fence)) = Fence::opened_in_item(line, text)
        {
            return self.item_of_code(&marker, inner, fence, base, out);
        }
        self.text(marker, text, base, out);
    }

    /// Begins an item whose text is a fence, behind the markers of inner items.
    fn item_of_code(
        &mut self,
        marker: &Marker,
        inner: &str,
        fence: Fence,
        base: Style,
        out: &mut Vec<Block>,
    ) {
        self.flush(base, out);
        self.is_in_list = true;
        let mut item = block::flow(marker, inner, base);
        if let Block::Flow { spans, .. } = &mut item {
            spans.push(Span::new(&fence.language, base.dim()));
        }
        self.emit(item, out);
        self.fence = Some(fence);
    }

    fn row(&mut self, line: &str, base: Style, out: &mut Vec<Block>) {
        match &mut self.chunk {
            Some(Chunk::Table(rows)) => rows.push(line.to_owned()),
            _ => self.chunk = Some(Chunk::Table(vec![line.to_owned()])),
        }
        if matches!(&self.chunk, Some(Chunk::Table(rows)) if rows.len() >= LONGEST_TABLE) {
            self.flush(base, out);
        }
    }

    fn text(&mut self, marker: Marker, text: &str, base: Style, out: &mut Vec<Block>) {
        match &mut self.chunk {
            Some(Chunk::Text { marker: begun, text: held }) if begun.goes_on_with(&marker) => {
                held.push('\n');
                held.push_str(text);
            }
            _ => {
                self.flush(base, out);
                match marker {
                    Marker::Item { .. } => self.is_in_list = true,
                    Marker::Plain { indent: 0 } | Marker::Heading(_) => self.is_in_list = false,
                    Marker::Code => {
                        let code = Span::new(text, base.color(Color::Cyan));
                        return self.emit(Block::Code(code), out);
                    }
                    Marker::Plain { .. } | Marker::Quote(_) => {}
                }
                self.chunk = Some(Chunk::Text { marker, text: text.to_owned() });
            }
        }
        let ends = match &self.chunk {
            Some(Chunk::Text { marker, text }) => {
                // A headline is one line, so it is complete at once.
                matches!(marker, Marker::Heading(_)) || text.len() >= LONGEST_TEXT
            }
            _ => false,
        };
        if ends {
            self.flush(base, out);
        }
    }

    /// Ends the block in progress.
    fn flush(&mut self, base: Style, out: &mut Vec<Block>) {
        match self.chunk.take() {
            None => {}
            Some(Chunk::Table(rows)) => {
                for block in block::table(&rows, base) {
                    self.emit(block, out);
                }
            }
            Some(Chunk::Text { marker, text }) => self.emit(block::flow(&marker, &text, base), out),
        }
    }

    fn emit(&mut self, block: Block, out: &mut Vec<Block>) {
        if std::mem::take(&mut self.has_gap) {
            out.push(Block::Gap);
        }
        self.has_begun = true;
        out.push(block);
    }
}

#[cfg(test)]
mod tests;
