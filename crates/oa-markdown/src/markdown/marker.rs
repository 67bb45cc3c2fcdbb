//! The markers at the beginning of lines, which distinguish blocks.

/// The marker at the beginning of a line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Marker {
    /// Indented code.
    Code,
    /// A headline of a level from 1 to 6.
    Heading(usize),
    /// A list item: its indent, and the sign shown for its marker.
    Item { indent: usize, sign: String },
    /// A line of a paragraph.
    Plain { indent: usize },
    /// A quote at this level of nesting.
    Quote(usize),
}

impl Marker {
    /// Returns true if a line with this marker continues the block that began with `self`.
    pub(super) fn goes_on_with(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Plain { .. } | Self::Item { .. } | Self::Quote(_), Self::Plain { .. }) => true,
            (Self::Quote(depth), Self::Quote(next)) => depth == next,
            _ => false,
        }
    }
}

/// The maximum indent and quote level that are shown, so that the text has room.
const DEEPEST: usize = 12;

/// The characters of indents and around markers. Other white space is text: Chinese and Japanese paragraphs begin with
/// ideographic spaces.
pub(super) const BLANKS: [char; 2] = [' ', '\t'];

/// The columns of indent that begin code, and those between tab stops.
const CODE: usize = 4;

/// Splits a non-blank line into its marker and its text.
pub(super) fn split(line: &str, is_in_list: bool) -> (Marker, &str) {
    let text = line.trim_start_matches(BLANKS);
    let columns = line[..line.len() - text.len()].chars().fold(0, after);
    let indent = columns.min(DEEPEST);
    if let Some(heading) = heading(text) {
        return heading;
    }
    if text.starts_with('>') {
        let mut rest = text;
        let mut depth = 0;
        while let Some(inner) = rest.strip_prefix('>') {
            // One space belongs to the marker: `> > a` is at level 2, and in `>   a` two spaces remain.
            (rest, depth) = (inner.strip_prefix(' ').unwrap_or(inner), depth + 1);
        }
        return (Marker::Quote(depth.min(DEEPEST / 2)), rest);
    }
    if let Some((sign, text)) = item(text) {
        return (Marker::Item { indent, sign }, text);
    }
    if columns >= CODE && !is_in_list {
        // A tab never crosses this column, because it is a tab stop.
        let mut column = 0;
        let code = line.trim_start_matches(|blank| {
            let is_indent = column < CODE;
            column = after(column, blank);
            is_indent
        });
        return (Marker::Code, code);
    }
    (Marker::Plain { indent: if is_in_list { indent } else { 0 } }, text)
}

/// Returns the column after a space or a tab.
fn after(column: usize, blank: char) -> usize {
    if blank == '\t' { (column / CODE + 1) * CODE } else { column + 1 }
}

fn heading(text: &str) -> Option<(Marker, &str)> {
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with(BLANKS)) {
        return None;
    }
    let title = rest.trim_matches(BLANKS).trim_end_matches('#').trim_end_matches(BLANKS);
    Some((Marker::Heading(level), title))
}

fn item(text: &str) -> Option<(String, &str)> {
    let (sign, rest) = if let Some(rest) = text.strip_prefix(['-', '*', '+']) {
        ("•".to_owned(), rest)
    } else {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        // A streamed line may end before the sign, and the next character may have several bytes.
        let after = rest.strip_prefix(['.', ')'])?;
        if !(1..=9).contains(&(text.len() - rest.len())) {
            return None;
        }
        (text[..text.len() - after.len()].to_owned(), after)
    };
    if !(rest.is_empty() || rest.starts_with(BLANKS)) {
        return None;
    }
    let rest = rest.trim_start_matches(BLANKS);
    let task = |mark: &str, sign: &str| {
        rest.strip_prefix(mark).map(|rest| (sign.to_owned(), rest.trim_start_matches(BLANKS)))
    };
    task("[ ] ", "☐")
        .or_else(|| task("[x] ", "☑"))
        .or_else(|| task("[X] ", "☑"))
        .or(Some((sign, rest)))
}

/// Returns the place of the sign with which a line begins a block; `None` if it is text.
pub(super) fn sign_of_block(line: &str) -> Option<usize> {
    let text = line.trim_start_matches(BLANKS);
    let begins = heading(text).is_some()
        || text.starts_with('>')
        || item(text).is_some()
        || is_rule(text)
        || Fence::opened_by(text).is_some();
    // Of a number, the sign is behind the digits.
    let number = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    begins.then_some(line.len() - text.len() + number)
}

/// Returns true if the line is a rule: three or more of `-`, `*` or `_`.
pub(super) fn is_rule(line: &str) -> bool {
    let marks = line.replace(BLANKS, "");
    marks.len() >= 3 && ['-', '*', '_'].iter().any(|mark| marks.chars().all(|c| c == *mark))
}

/// A code fence.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    /// True if it is the text of an item.
    is_in_item: bool,
    pub(super) language: String,
}

impl Fence {
    /// Returns the fence that a line opens.
    pub(super) fn opened_by(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(BLANKS);
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let rest = text.trim_start_matches(mark);
        let length = text.len() - rest.len();
        // As in `CommonMark`, a line like ```` ```a``` ```` is inline code in a paragraph.
        if length < 3 || (mark == '`' && rest.contains('`')) {
            return None;
        }
        let language = rest.split_whitespace().next().unwrap_or_default().to_owned();
        let indent = line.len() - text.len();
        Some(Self { mark, length, indent, is_in_item: false, language })
    }

    /// Returns the fence that the text of an item opens, and the markers of inner items before it: `- 1. ~~~`.
    pub(super) fn opened_in_item<'a>(line: &str, text: &'a str) -> Option<(&'a str, Self)> {
        let mut rest = text;
        while let Some((_, inner)) = item(rest) {
            rest = inner;
        }
        let fence = Self::opened_by(rest)?;
        let inner = text[..text.len() - rest.len()].trim_end_matches(BLANKS);
        Some((inner, Self { indent: line.len() - rest.len(), is_in_item: true, ..fence }))
    }

    /// Returns true if a line is the next item of a list, which ends the item of the fence, and so its code.
    pub(super) fn is_left_by(&self, line: &str) -> bool {
        let text = line.trim_start_matches(BLANKS);
        self.is_in_item && line.len() - text.len() < self.indent && item(text).is_some()
    }

    /// Returns true if a line closes the fence.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim_matches(BLANKS);
        text.len() >= self.length && text.chars().all(|c| c == self.mark)
    }

    /// Returns a line without the indent of the fence.
    pub(super) fn without_indent<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        &line[spaces.min(self.indent)..]
    }
}
