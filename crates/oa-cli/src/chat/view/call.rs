//! A call that runs.

use std::time::Duration;

use open_agent::{Progress, Value};

use crate::chat::figure::{seconds, spinner};
use crate::style::{Color, Line, Style, excerpt};

/// A call as a row.
#[derive(Debug)]
pub(super) struct CallRow {
    pub(super) id: String,
    /// The name and the arguments.
    pub(super) call: String,
    pub(super) progress: Option<Progress>,
    pub(super) doing: Option<String>,
    began: Duration,
}

/// The most characters of one argument, of all of them, and of a result.
const ARGUMENT: usize = 60;
const CALL: usize = 300;
const RESULT: usize = 300;

impl CallRow {
    pub(super) fn new(id: &str, name: &str, input: &Value, now: Duration) -> Self {
        Self {
            id: id.to_owned(),
            call: call_text(name, input),
            progress: None,
            doing: None,
            began: now,
        }
    }

    /// Returns the row: what runs, how far it is, and for how long.
    pub(super) fn line(&self, now: Duration) -> Line {
        let line = Line::new(spinner(now), Style::PLAIN.color(Color::Cyan));
        let mut rest = format!(" {}", seconds(now.saturating_sub(self.began)));
        if let Some(progress) = &self.progress {
            match progress.total {
                Some(total) if total > 0 => {
                    let percent = 100 * progress.done.min(total) / total;
                    rest.push_str(&format!("  {percent} %"));
                }
                _ => rest.push_str(&format!("  {}", progress.done)),
            }
            if let Some(message) = &progress.message {
                rest.push_str(&format!("  {}", excerpt(message, ARGUMENT)));
            }
        }
        if let Some(doing) = &self.doing {
            rest.push_str(&format!("  {}", excerpt(doing, ARGUMENT)));
        }
        line.and(&rest, Style::DIMMED).and("  ", Style::PLAIN).and(&self.call, Style::PLAIN)
    }
}

/// `add(a: 25, b: 17)`
pub(crate) fn call_text(name: &str, input: &Value) -> String {
    let arguments: Vec<_> = match input {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| format!("{name}: {}", excerpt(&value.to_string(), ARGUMENT)))
            .collect(),
        Value::Null => vec![],
        other => vec![excerpt(&other.to_string(), ARGUMENT).into_owned()],
    };
    excerpt(&format!("{name}({})", arguments.join(", ")), CALL).into_owned()
}

/// Returns a result on one line.
pub(crate) fn result_text(result: &Value) -> String {
    let text = match result {
        Value::String(text) => text.clone(),
        other => match other["error"].as_str() {
            Some(error) => error.to_owned(),
            None => other.to_string(),
        },
    };
    let text: Vec<_> = text.split_whitespace().take(RESULT).collect();
    excerpt(&text.join(" "), RESULT).into_owned()
}
