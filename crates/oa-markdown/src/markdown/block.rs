//! Blocks, independent of the width of the terminal.

use unicode_width::UnicodeWidthStr;

use super::inline;
use super::marker::Marker;
use crate::style::{Line, Span, Style};
use crate::wrap::{fold, wrap};

/// A block of Markdown.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Block {
    /// A line of code.
    Code(Span),
    /// Wrapped text, with a prefix for its first line and one for the others.
    Flow {
        /// The text.
        spans: Vec<Span>,
        /// The prefix of the first line.
        first: Vec<Span>,
        /// The prefix of all other lines.
        next: Vec<Span>,
    },
    /// An empty line.
    Gap,
    /// A rule.
    Rule,
    /// A table.
    Table {
        /// The rows of cells, starting with the header.
        rows: Vec<Vec<Vec<Span>>>,
        /// The alignment of the columns; missing ones are aligned left.
        aligned: Vec<Align>,
    },
}

impl Block {
    /// Returns the lines of the block in a terminal with this many columns.
    #[must_use]
    pub fn lines(&self, width: usize) -> Vec<Line> {
        match self {
            Self::Code(code) => {
                fold(std::slice::from_ref(code), &[Span::new("  ", Style::PLAIN)], width)
            }
            Self::Flow { spans, first, next } => wrap(spans, first, next, width),
            Self::Gap => vec![Line::default()],
            Self::Rule => vec![Line::new(&"─".repeat(width.clamp(1, 40)), Style::DIMMED)],
            Self::Table { rows, aligned } => table_lines(rows, aligned, width),
        }
    }
}

/// The alignment of text in a table column.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Align {
    /// In the middle.
    Center,
    /// At the left.
    #[default]
    Left,
    /// At the right.
    Right,
}

impl Align {
    /// Parses a cell of the line below the header.
    fn of(cell: &str) -> Self {
        match (cell.starts_with(':'), cell.ends_with(':')) {
            (true, true) => Self::Center,
            (false, true) => Self::Right,
            _ => Self::Left,
        }
    }

    /// Returns how many of the free columns come before the text.
    fn before(self, free: usize) -> usize {
        match self {
            Self::Center => free / 2,
            Self::Left => 0,
            Self::Right => free,
        }
    }
}

/// Creates a block from the lines of a text.
pub(super) fn flow(marker: &Marker, text: &str, base: Style) -> Block {
    let spaces = |count: usize| Span::new(&" ".repeat(count), Style::PLAIN);
    let (first, next, style) = match marker {
        Marker::Code => (vec![spaces(2)], vec![spaces(2)], base),
        Marker::Heading(level) => {
            let spans = inline::line(text, inline::heading(base, *level == 1));
            return Block::Flow { spans, first: vec![], next: vec![] };
        }
        Marker::Item { indent, sign } => {
            let first = vec![spaces(*indent), Span::new(&format!("{sign} "), base.dim())];
            (first, vec![spaces(indent + sign.width() + 1)], base)
        }
        Marker::Plain { indent } => (vec![spaces(*indent)], vec![spaces(*indent)], base),
        Marker::Quote(depth) => {
            let bar = vec![Span::new(&"│ ".repeat(*depth), Style::DIMMED)];
            (bar.clone(), bar, base.italic())
        }
    };
    Block::Flow { spans: inline::spans(text, style), first, next }
}

/// Creates blocks from lines that begin with `|`: a table if the second line separates a header.
pub(super) fn table(rows: &[String], base: Style) -> Vec<Block> {
    if !rows.get(1).is_some_and(|line| is_delimiter(line)) {
        return rows.iter().map(|row| flow(&Marker::Plain { indent: 0 }, row, base)).collect();
    }
    let row = |(place, line): (usize, &String)| {
        let style = if place == 0 { base.bold() } else { base };
        cells(line).iter().map(|cell| inline::line(cell, style)).collect()
    };
    let shown = rows.iter().enumerate().filter(|(place, _)| *place != 1);
    let aligned = cells(&rows[1]).iter().map(|cell| Align::of(cell)).collect();
    vec![Block::Table { rows: shown.map(row).collect(), aligned }]
}

/// Returns true if a line separates the header of a table.
fn is_delimiter(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

/// Returns the place of a table's header at the end of a paragraph, if the line below it separates a header.
pub(super) fn header_at(paragraph: &str, below: &str) -> Option<usize> {
    let at = paragraph.rfind('\n')? + 1;
    let header = &paragraph[at..];
    let is_header = is_delimiter(below)
        && header.starts_with('|')
        // Otherwise, it is no table in GFM either.
        && cells(header).len() == cells(below).len();
    is_header.then_some(at)
}

/// Splits a row at `|`, but not at `\|` and not in code.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let (mut is_escaped, mut is_code) = (false, false);
    for (at, c) in line.char_indices() {
        match c {
            '|' if is_escaped => {
                cell.pop();
                cell.push(c);
            }
            '|' if !is_code => {
                cells.push(std::mem::take(&mut cell).trim().to_owned());
            }
            '`' if !is_escaped => {
                // A backtick that no other one follows begins no code.
                is_code = !is_code && line[at + 1..].contains('`');
                cell.push(c);
            }
            c => cell.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    if !cell.trim().is_empty() {
        cells.push(cell.trim().to_owned());
    }
    cells
}

fn width_of(cell: &[Span]) -> usize {
    let text: String = cell.iter().map(|span| span.text.as_str()).collect();
    text.lines().map(UnicodeWidthStr::width).max().unwrap_or_default()
}

/// The number of columns between two cells: ` │ `.
const BETWEEN: usize = 3;
/// The maximum number of table columns that are laid out side by side.
const MOST_COLUMNS: usize = 32;

fn table_lines(rows: &[Vec<Vec<Span>>], aligned: &[Align], width: usize) -> Vec<Line> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let mut widths = vec![1; columns];
    for row in rows {
        for (cell, widest) in row.iter().zip(&mut widths) {
            *widest = width_of(cell).max(*widest);
        }
    }
    let between = BETWEEN * columns.saturating_sub(1);
    let room = width.saturating_sub(between);
    if columns == 0 || columns > MOST_COLUMNS || room < columns * 4 {
        return rows.iter().flat_map(|row| stacked(row, width)).collect();
    }
    // Shrink the widest column until all fit.
    while widths.iter().sum::<usize>() > room {
        let widest = widths.iter().copied().max().unwrap_or_default();
        let over = widths.iter().sum::<usize>() - room;
        let second = widths.iter().copied().filter(|w| *w < widest).max().unwrap_or(1);
        if let Some(column) = widths.iter_mut().find(|column| **column == widest) {
            *column = widest.saturating_sub(over).max(second.min(widest - 1)).max(1);
        }
    }
    let mut lines = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        lines.extend(side_by_side(row, &widths, aligned));
        if place == 0 {
            let rules: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.push(Line::new(&rules.join("─┼─"), Style::DIMMED));
        }
    }
    lines
}

fn side_by_side(row: &[Vec<Span>], widths: &[usize], aligned: &[Align]) -> Vec<Line> {
    let empty = Vec::new();
    let cells: Vec<Vec<Line>> = widths
        .iter()
        .enumerate()
        .map(|(place, width)| {
            // `wrap` has a minimum width; cut wider lines.
            let cell = row.get(place).unwrap_or(&empty);
            wrap(cell, &[], &[], *width).into_iter().map(|line| line.cut(*width)).collect()
        })
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1);
    (0..height)
        .map(|at| {
            let mut line = Line::default();
            for (place, (cell, width)) in cells.iter().zip(widths).enumerate() {
                if place > 0 {
                    line.spans.push(Span::new(" │ ", Style::DIMMED));
                }
                let part = cell.get(at).cloned().unwrap_or_default();
                let fill = width.saturating_sub(part.width());
                let is_empty = part.width() == 0;
                let align = if is_empty {
                    Align::Left
                } else {
                    aligned.get(place).copied().unwrap_or_default()
                };
                let before = align.before(fill);
                let spaces = |count: usize| Span::new(&" ".repeat(count), Style::PLAIN);
                if before > 0 {
                    line.spans.push(spaces(before));
                }
                line.spans.extend(part.spans);
                if fill > before && place + 1 < cells.len() {
                    line.spans.push(spaces(fill - before));
                }
            }
            line
        })
        .collect()
}

/// Returns the cells of a row below each other, for a terminal without room for columns.
fn stacked(row: &[Vec<Span>], width: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = row
        .iter()
        .enumerate()
        .flat_map(|(place, cell)| {
            let begin = if place == 0 { "" } else { "  " };
            let begin = [Span::new(begin, Style::PLAIN)];
            wrap(cell, &begin, &begin, width)
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line::default());
    }
    lines
}
