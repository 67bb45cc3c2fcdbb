//! A tool that lets the model read full results in pages.

use std::fmt::Write;
use std::iter;

use oa_tools::{FnTool, ToolContext, ToolError, tool};
use serde_json::Value;

use crate::store::{READ_RESULT, ResultStore};
use crate::truncation::TruncationPolicy;

/// Creates the tool `read_result(id, from_line?, lines?, search?)`, which reads from the [`ResultStore`] in the state
/// of its batch.
///
/// It returns numbered lines and says how to continue. A page has at most as many characters as `truncation` keeps,
/// but at least 400. A line of more than 500 characters counts as several lines. `search` is plain text and ignores
/// case: it returns the matching lines, each with the line before and after it. The tool's category is `read`.
///
/// ```
/// use oa_executor::{ResultStore, TruncationPolicy, read_result};
/// use oa_tools::{State, Tool, ToolContext};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), oa_tools::ToolError> {
/// let store = ResultStore::new();
/// let id = store.keep("call_1", &json!("one\ntwo\nthree"));
/// let cx = ToolContext::new("call_2", "read_result").with_state(State::new().with(store));
/// let tool = read_result(TruncationPolicy::default());
/// let read = tool.call(json!({ "id": id, "from_line": 2 }), cx).await?;
/// assert_eq!(read, "Result \"call_1\", lines 2 to 3 of 3:\n2: two\n3: three");
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn read_result(truncation: TruncationPolicy) -> FnTool {
    let page = truncation.limit().unwrap_or(DEFAULT_PAGE).max(SMALLEST_PAGE);
    tool(
        READ_RESULT,
        "Reads a result that was truncated or cleared, by line numbers or by a search",
    )
    .param("id", "string")
    .describe("id", "The id that the note in the result names")
    // No minimum: a model that counts from zero reads the first line.
    .param("from_line", "integer")
    .describe("from_line", "The number of the first line; 1 by default")
    .optional("from_line")
    .param("lines", "integer")
    .describe("lines", "The number of lines; by default as many as fit")
    .optional("lines")
    .param("search", "string")
    .describe("search", "Plain text: returns the lines that contain it, from from_line on")
    .optional("search")
    .category("read")
    // A result may have megabytes.
    .build_blocking_with_context(move |input, cx| read(&input, &cx, page).map(Value::String))
}

fn read(input: &Value, cx: &ToolContext, page: usize) -> Result<String, ToolError> {
    let store = cx.require_state::<ResultStore>()?;
    let number = |name: &str| {
        let number = input.get(name).and_then(Value::as_u64);
        number.map(|number| usize::try_from(number).unwrap_or(usize::MAX).max(1))
    };
    let id = input.get("id").and_then(Value::as_str).unwrap_or_default();
    let Some(text) = store.get(id) else { return Err(unknown(id, &store.ids())) };
    let request = Request {
        id,
        from: number("from_line").unwrap_or(1),
        lines: number("lines").unwrap_or(usize::MAX),
        page,
    };
    let search = input.get("search").and_then(Value::as_str).filter(|words| !words.is_empty());
    match search {
        Some(words) if words.chars().count() > LONGEST_SEARCH => {
            let message = format!("search must have at most {LONGEST_SEARCH} characters");
            Err(ToolError::new(message).retryable(false))
        }
        Some(words) => request.search(&text, words),
        None => request.read(&text),
    }
}

fn unknown(id: &str, ids: &[String]) -> ToolError {
    let mut message = format!("no result is stored under the id {}", quoted(id));
    let last: Vec<String> = ids.iter().rev().take(FEW).map(|id| quoted(id)).collect();
    if last.is_empty() {
        message.push_str("; call its tool again if you need it");
    } else {
        let last = last.join(", ");
        write!(message, "; the latest ones are {last}").expect("a String takes all text");
    }
    ToolError::new(message).retryable(false)
}

struct Request<'a> {
    id: &'a str,
    from: usize,
    lines: usize,
    /// The maximum length of a page, in characters.
    page: usize,
}

impl Request<'_> {
    fn read(&self, text: &str) -> Result<String, ToolError> {
        let mut shown = Shown::new(self.page);
        let (mut total, mut last) = (0, self.from.saturating_sub(1));
        for (place, piece) in pieces(text, self.width()).enumerate() {
            total = place + 1;
            // A line that does not fit leaves `last` where it is, so that no shorter line after it is shown.
            // All lines are walked through in any case, for the total.
            let is_next = total == last.saturating_add(1) && total - self.from < self.lines;
            if is_next && shown.push(total, ':', piece.text) {
                last = total;
            }
        }
        self.check_start(total)?;
        let Self { id, from, .. } = self;
        let mut page = format!("Result {}, lines {from} to {last} of {total}:", quoted(id));
        page.push_str(&shown.text);
        if last < total {
            write!(page, "\n[Continue with from_line {}.]", last + 1).expect("it takes all text");
        }
        Ok(page)
    }

    fn search(&self, text: &str, words: &str) -> Result<String, ToolError> {
        let words_lower = words.to_lowercase();
        let contains = |text: &str| text.to_lowercase().contains(&words_lower);
        let length = words_lower.chars().count();
        let mut shown = Shown::new(self.page);
        // The matches of the whole result, and those from `from` on.
        let (mut total, mut matches, mut found) = (0, 0, 0);
        let mut more = None;
        let mut before: Option<&str> = None;
        // The number of the last line that is shown, and true if it is a match.
        let (mut last, mut was_match) = (0, false);
        // Like `grep -C 1`: `5- before`, `6: match`, `7- after`, and `--` where lines are left out. Counting
        // goes on after the page is full.
        for piece in pieces(text, self.width()) {
            total += 1;
            // Words that a long line was cut in belong to the piece that they begin in.
            let is_cut = || {
                let end = piece.after.char_indices().nth(length.saturating_sub(1));
                let end = end.map(|(end, _)| end);
                let next = end.map_or(piece.after, |end| &piece.after[..end]);
                !next.is_empty() && !contains(next) && contains(&format!("{}{next}", piece.text))
            };
            let contains_words = contains(piece.text) || is_cut();
            matches += usize::from(contains_words);
            let is_match = contains_words && total >= self.from;
            found += usize::from(is_match);
            if more.is_some() {
                continue;
            }
            if is_match {
                let text = &mut shown;
                let has_room = found <= self.lines
                    // The line before may be shown already, as a match or as the line after one.
                    && text.match_at(total, piece.text, before.filter(|_| last + 1 < total), last);
                if has_room {
                    (last, was_match) = (total, true);
                } else {
                    more = Some(total);
                }
            } else if was_match && last + 1 == total {
                was_match = false;
                if shown.push(total, '-', piece.text) {
                    last = total;
                }
            }
            before = Some(piece.text);
        }
        self.check_start(total)?;
        let (id, words) = (quoted(self.id), quoted(words));
        match (matches, found) {
            (0, _) if total == 1 => {
                return Ok(format!("Result {id}: the only line does not contain {words}."));
            }
            (0, _) => {
                return Ok(format!("Result {id}: none of the {total} lines contains {words}."));
            }
            (_, 0) => {
                let from = self.from;
                return Ok(format!(
                    "Result {id}: {matches} of {total} lines contain {words}, but none from line {from} on."
                ));
            }
            _ => {}
        }
        let mut page = format!("Result {id}: {matches} of {total} lines contain {words}:");
        page.push_str(&shown.text);
        if let Some(more) = more {
            write!(page, "\n[Continue with from_line {more} and the same search.]")
                .expect("it takes all text");
        }
        Ok(page)
    }

    /// The maximum length of a line, in characters, so that each fits on a page.
    /// A page therefore shows at least one line, so that reading on always makes progress.
    fn width(&self) -> usize {
        LONGEST_LINE.min(self.page.saturating_sub(FRAME + NUMBER))
    }

    fn check_start(&self, total: usize) -> Result<(), ToolError> {
        if self.from <= total.max(1) {
            return Ok(());
        }
        let Self { id, from, .. } = self;
        let lines = if total == 1 { "line" } else { "lines" };
        let message =
            format!("the result {} has {total} {lines}, and from_line is {from}", quoted(id));
        Err(ToolError::new(message).retryable(false))
    }
}

/// The lines of a page.
struct Shown {
    text: String,
    /// The number of characters left on the page.
    left: usize,
}

impl Shown {
    fn new(page: usize) -> Self {
        Self { text: String::new(), left: page.saturating_sub(FRAME) }
    }

    /// Adds a line if it fits.
    fn push(&mut self, number: usize, mark: char, line: &str) -> bool {
        self.push_text(&format!("\n{number}{mark} {line}"))
    }

    fn push_text(&mut self, text: &str) -> bool {
        let rest = self.left.checked_sub(text.chars().count());
        if let Some(left) = rest {
            self.left = left;
            self.text.push_str(text);
        }
        rest.is_some()
    }

    /// Adds a match, after the line before it if both fit. `last` is the number of the last line shown.
    fn match_at(&mut self, number: usize, line: &str, before: Option<&str>, last: usize) -> bool {
        if before.is_some() && self.match_after(number, line, before, last) {
            return true;
        }
        // Without the line before, there may be a gap that was none with it.
        self.match_after(number, line, None, last)
    }

    /// Adds a match, the line before it if there is one, and a separator if lines are left out. Adds nothing if they
    /// do not all fit.
    fn match_after(
        &mut self,
        number: usize,
        line: &str,
        before: Option<&str>,
        last: usize,
    ) -> bool {
        let (text, left) = (self.text.len(), self.left);
        let has_gap = last > 0 && last + 1 + usize::from(before.is_some()) < number;
        let has_room = (!has_gap || self.push_text("\n--"))
            && before.is_none_or(|before| self.push(number - 1, '-', before))
            && self.push(number, ':', line);
        if !has_room {
            self.text.truncate(text);
            self.left = left;
        }
        has_room
    }
}

/// A line, or a part of a long one.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    /// The rest of its line.
    after: &'a str,
}

fn pieces(text: &str, width: usize) -> impl Iterator<Item = Piece<'_>> {
    text.lines().flat_map(move |line| {
        let mut rest = Some(line);
        iter::from_fn(move || {
            let line = rest.take()?;
            let end = line.char_indices().nth(width).map(|(end, _)| end);
            let (text, after) = end.map_or((line, None), |end| {
                let (text, after) = line.split_at(end);
                (text, Some(after))
            });
            rest = after;
            Some(Piece { text, after: after.unwrap_or_default() })
        })
    })
}

/// Returns a text in quotes, truncated if it is long.
fn quoted(text: &str) -> String {
    let is_long = text.chars().nth(LONGEST_QUOTE).is_some();
    let plain = |char: char| if char.is_control() { ' ' } else { char };
    let text: String = text.chars().take(LONGEST_QUOTE).map(plain).collect();
    format!("\"{text}{}\"", if is_long { "…" } else { "" })
}

const DEFAULT_PAGE: usize = 10_000;
const SMALLEST_PAGE: usize = 400;
const LONGEST_LINE: usize = 500;
const LONGEST_SEARCH: usize = 200;
/// The maximum length of a quoted id or search text.
const LONGEST_QUOTE: usize = 64;
/// The number of ids that an error names.
const FEW: usize = 8;
/// The space for the text around the lines.
const FRAME: usize = 280;
/// The space for a line number.
const NUMBER: usize = 20;
