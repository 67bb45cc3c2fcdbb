//! The lower part of the terminal, which is redrawn, and the permanent lines above it.

use std::collections::VecDeque;
use std::fmt::Write;

use oa_markdown::{Line, fold};

/// The screen while the model works: permanent lines scroll up, and a few rows at the bottom change.
///
/// It returns escape sequences and writes nothing. Each row takes one line of the terminal, so the position of the
/// cursor is known without a query.
#[derive(Debug)]
pub struct Screen {
    width: usize,
    height: usize,
    has_styles: bool,
    /// The row of the cursor, counted from the first row that changes.
    cursor: usize,
    shown: Vec<String>,
    at: (usize, usize),
    /// The last permanent lines, which are redrawn after a resize.
    kept: VecDeque<Line>,
}

/// The maximum number of lines that are redrawn.
const KEPT: usize = 200;

impl Screen {
    /// Creates the screen of a terminal whose cursor is at the beginning of a line.
    #[must_use]
    pub fn new(width: usize, height: usize, has_styles: bool) -> Self {
        let (width, height) = (width.max(1), height.max(2));
        Self { width, height, has_styles, cursor: 0, shown: vec![], at: (0, 0), kept: [].into() }
    }

    /// Returns the number of usable columns. The last one stays free, because terminals wrap after it in different
    /// ways.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.width.saturating_sub(1).max(1)
    }

    /// Records lines that were written by other code.
    pub fn note(&mut self, lines: impl IntoIterator<Item = Line>) {
        for line in lines {
            if self.kept.len() == KEPT {
                self.kept.pop_front();
            }
            self.kept.push_back(line);
        }
    }

    /// Returns the sequence that draws permanent lines, and below them changing rows, with the cursor at a row and
    /// column of these. If not all rows fit, the last are shown.
    #[must_use]
    pub fn draw(&mut self, stay: Vec<Line>, rows: &[Line], cursor: (usize, usize)) -> String {
        // Too many rows would scroll the first one off the screen, where the cursor cannot go back to it.
        let left_out = rows.len().saturating_sub(self.height - 1);
        let cut = |line: &Line| line.clone().cut(self.columns()).ansi(self.has_styles);
        let shown: Vec<_> = rows[left_out..].iter().map(cut).collect();
        let at = (cursor.0.saturating_sub(left_out), cursor.1.min(self.columns()));
        if stay.is_empty() && shown == self.shown && at == self.at {
            return String::new();
        }
        let mut out = String::from(BEGIN);
        self.to_first_row(&mut out);
        // Permanent lines overwrite the changing rows, which are written again below them. The terminal
        // scrolls as usual, so its history has each permanent line once:
        //
        //     before     after
        //     row 1      line 1    <- to_first_row
        //     row 2      row 1
        //                row 2
        for line in &stay {
            out.push_str(&line.clone().cut(self.columns()).ansi(self.has_styles));
            out.push_str("\r\n");
        }
        self.note(stay);
        self.write_rows(&mut out, shown, at);
        out.push_str(END);
        out
    }

    /// Returns the sequence that removes the changing rows, and puts the cursor where they began.
    #[must_use]
    pub fn clear(&mut self) -> String {
        let mut out = String::new();
        self.to_first_row(&mut out);
        self.write_rows(&mut out, vec![], (0, 0));
        out
    }

    /// Returns the sequence that redraws everything after the terminal's size has changed.
    ///
    /// Some terminals rewrap the lines on the screen and some do not, so its content is unknown.
    #[must_use]
    pub fn resize(&mut self, width: usize, height: usize) -> String {
        (self.width, self.height) = (width.max(1), height.max(2));
        // The sequence ends at the beginning of a row, below the lines that stay, and shows no changing rows.
        self.cursor = 0;
        self.at = (0, 0);
        self.shown.clear();
        let columns = self.columns();
        let lines: Vec<_> =
            self.kept.iter().flat_map(|line| fold(&line.spans, &[], columns)).collect();
        let mut out = format!("{BEGIN}\x1b[2J\x1b[H");
        for line in &lines[lines.len().saturating_sub(self.height - 1)..] {
            out.push_str(&line.clone().cut(columns).ansi(self.has_styles));
            out.push_str("\r\n");
        }
        out.push_str(END);
        out
    }

    /// Sets the size while nothing is drawn.
    pub(super) fn set_size(&mut self, width: usize, height: usize) {
        (self.width, self.height) = (width.max(1), height.max(2));
    }

    fn to_first_row(&self, out: &mut String) {
        out.push('\r');
        if self.cursor > 0 {
            // Writing to a string does not fail.
            let _ = write!(out, "\x1b[{}A", self.cursor);
        }
        out.push_str("\x1b[J");
    }

    fn write_rows(&mut self, out: &mut String, rows: Vec<String>, at: (usize, usize)) {
        if !rows.is_empty() {
            out.push_str(NO_WRAP);
            out.push_str(&rows.join("\r\n"));
            out.push_str(WRAP);
        }
        let last = rows.len().saturating_sub(1);
        // The cursor is at the end of the last row. Its moves are relative, because nobody knows its position
        // on the screen.
        let up = last - at.0.min(last);
        out.push('\r');
        if up > 0 {
            let _ = write!(out, "\x1b[{up}A");
        }
        if at.1 > 0 {
            let _ = write!(out, "\x1b[{}C", at.1);
        }
        self.cursor = last - up;
        (self.shown, self.at) = (rows, at);
    }
}

/// Wraps an update, so that terminals that support it show all of it at once; others ignore it.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
/// Around rows that change: terminals disagree about the width of some characters, such as emoji of several parts. A
/// row that wrapped in one of them would take two lines, and the first could not be reached any more.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

#[cfg(test)]
mod tests;
