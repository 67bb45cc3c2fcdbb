//! A running call.

use std::time::Duration;

use oa_markdown::{Color, Line, Style};
use open_agent::{Progress, Value};

use super::nested::Inner;
use super::text::{call_text, one_line};
use crate::figure::{percent, seconds, spinner};

/// The row of a running call.
#[derive(Debug)]
pub(super) struct CallRow {
    pub(super) id: String,
    /// The name and the arguments.
    pub(super) call: String,
    pub(super) progress: Option<Progress>,
    pub(super) doing: Option<String>,
    /// The agent that the call runs, if it runs one.
    pub(super) inner: Inner,
    began: Duration,
}

/// The maximum number of characters of a remark about the call.
const REMARK: usize = 60;

impl CallRow {
    pub(super) fn new(id: &str, name: &str, input: &Value, now: Duration) -> Self {
        Self {
            id: id.to_owned(),
            call: call_text(name, input),
            progress: None,
            doing: None,
            inner: Inner::default(),
            began: now,
        }
    }

    /// Returns the row: the call, its progress, and its time.
    pub(super) fn line(&self, now: Duration) -> Line {
        let line = Line::new(spinner(now), Style::PLAIN.color(Color::Cyan));
        let mut rest = format!(" {}", seconds(now.saturating_sub(self.began)));
        if let Some(progress) = &self.progress {
            match progress.total {
                Some(total) if total > 0 => {
                    let percent = percent(progress.done, total);
                    rest.push_str(&format!("  {percent} %"));
                }
                _ => rest.push_str(&format!("  {}", progress.done)),
            }
            if let Some(message) = &progress.message {
                rest.push_str(&format!("  {}", one_line(message, REMARK)));
            }
        }
        if let Some(doing) = self.inner.doing().or(self.doing.as_deref()) {
            rest.push_str(&format!("  {}", one_line(doing, REMARK)));
        }
        line.and(&rest, Style::DIMMED).and("  ", Style::PLAIN).and(&self.call, Style::PLAIN)
    }
}
