use std::iter;
use std::time::Duration;

use memchr::memchr2;

use crate::error::Error;

/// An event to be written to a stream.
///
/// Line breaks in the data (LF, CR, CRLF) become separate `data` lines, which a parser joins with LF.
///
/// ```
/// use oa_sse::Frame;
///
/// let mut out = Vec::new();
/// Frame::new("first\nsecond").event("tool_progress").write_to(&mut out)?;
/// assert_eq!(out, b"event: tool_progress\ndata: first\ndata: second\n\n");
/// # Ok::<(), oa_sse::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    data: &'a str,
    event: Option<&'a str>,
    id: Option<&'a str>,
    retry: Option<Duration>,
}

impl<'a> Frame<'a> {
    /// Creates an event with this data.
    #[must_use]
    pub fn new(data: &'a str) -> Self {
        Self { data, event: None, id: None, retry: None }
    }

    /// Sets the event type; without one, parsers report `message`.
    #[must_use]
    pub fn event(mut self, event: &'a str) -> Self {
        self.event = Some(event);
        self
    }

    /// Sets the stream's last event id; an empty id clears it.
    #[must_use]
    pub fn id(mut self, id: &'a str) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets the reconnection delay for the reader, in whole milliseconds.
    #[must_use]
    pub fn retry(mut self, retry: Duration) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Appends the event to a buffer.
    ///
    /// # Errors
    ///
    /// [`LineBreakInField`](crate::ErrorKind::LineBreakInField) if the event type or id contains a line break,
    /// or the id contains NUL; nothing is written then.
    pub fn write_to(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let breaks_line = |text: &str| memchr2(b'\n', b'\r', text.as_bytes()).is_some();
        if self.event.is_some_and(breaks_line)
            || self.id.is_some_and(|id| breaks_line(id) || id.contains('\0'))
        {
            return Err(Error::line_break_in_field());
        }
        if let Some(event) = self.event {
            field(out, "event", event);
        }
        if let Some(id) = self.id {
            field(out, "id", id);
        }
        if let Some(retry) = self.retry {
            field(out, "retry", &retry.as_millis().to_string());
        }
        // Even if empty: without a data line, a block is no event, and a final LF is part of the data.
        lines(self.data).for_each(|line| field(out, "data", line));
        out.push(b'\n');
        Ok(())
    }

    /// Appends a comment, a keep-alive that readers ignore. Line breaks (LF, CR, CRLF) start further comments.
    pub fn write_comment(text: &str, out: &mut Vec<u8>) {
        lines(text).for_each(|line| field(out, "", line));
        out.push(b'\n');
    }
}

/// Splits a text at LF, CR and CRLF. What follows the last of them is a line, too.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    iter::from_fn(move || {
        let text = rest?;
        let end = memchr2(b'\n', b'\r', text.as_bytes());
        rest = end.map(|end| &text[end + if text[end..].starts_with("\r\n") { 2 } else { 1 }..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.push(b'\n');
}
