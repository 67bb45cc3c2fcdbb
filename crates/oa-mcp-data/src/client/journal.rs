use std::collections::VecDeque;
use std::sync::Arc;

use oa_tools::LogLevel;

/// The maximum number of log lines kept for slow or disconnected clients, and their bytes.
const LINES: usize = 256;
const BYTES: usize = 256 * 1024;

/// The latest notifications for all clients, numbered, without I/O: log lines within bounds, and the last change of the
/// tools.
///
/// A reader keeps the number of the last notification that it has seen. A reader that is too late misses log lines, but
/// never a change of the tools.
#[derive(Debug, Default)]
pub struct Journal {
    lines: VecDeque<(u64, LogLevel, Arc<str>)>,
    bytes: usize,
    last: u64,
    /// The number of the last change of the tools; 0 if there was none.
    changed: u64,
}

/// A notification for all clients.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum News {
    /// A log line that belongs to no call.
    Log(LogLevel, Arc<str>),
    /// The server's tools have changed.
    ToolsChanged,
}

impl Journal {
    /// Returns the number of the latest notification.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Adds a log line. If there are too many, the oldest are dropped; the last one is kept, however long it is.
    pub fn log(&mut self, level: LogLevel, text: &str) {
        self.last += 1;
        self.bytes += text.len();
        self.lines.push_back((self.last, level, text.into()));
        // `bytes` is the sum over `lines`, so the subtraction cannot underflow.
        while self.lines.len() > LINES || self.bytes > BYTES && self.lines.len() > 1 {
            let Some((_, _, oldest)) = self.lines.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    /// Adds a change of the tools.
    pub fn tools_changed(&mut self) {
        self.last += 1;
        self.changed = self.last;
    }

    /// Returns the notifications after this number, in order. Several changes of the tools are merged into one.
    #[must_use]
    pub fn after(&self, seen: u64) -> Vec<(u64, News)> {
        let lines = self.lines.iter().filter(|(number, ..)| *number > seen);
        let mut news: Vec<_> = lines
            .map(|(number, level, text)| (*number, News::Log(*level, Arc::clone(text))))
            .collect();
        // Only the last change has a number: a reader that lists the tools after it has seen them all.
        if self.changed > seen {
            let place = news.partition_point(|(number, _)| *number < self.changed);
            news.insert(place, (self.changed, News::ToolsChanged));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn full_journal_keeps_the_tools_change() {
        let mut journal = Journal::default();
        journal.tools_changed();
        for line in 0..1_000 {
            journal.log(LogLevel::Info, &line.to_string());
        }
        let news = journal.after(0);
        assert_eq!(news.len(), LINES + 1);
        assert_eq!(news[0], (1, News::ToolsChanged));
        assert_eq!(news[1].0, 1_001 - LINES as u64 + 1);
        journal.log(LogLevel::Info, &"x".repeat(BYTES));
        assert_eq!(journal.after(1).len(), 1, "the last line is kept, however long it is");
    }

    proptest! {
        /// Wherever a reader stops and begins again, it sees each line once, in order, and each change.
        #[test]
        fn readers_see_each_entry_once(
            events in prop::collection::vec((any::<bool>(), any::<bool>()), 0..100),
        ) {
            let mut journal = Journal::default();
            let (mut seen, mut lines, mut told) = (0, 0, 0);
            let mut is_changed = false;
            for (index, (is_change, reads)) in events.into_iter().enumerate() {
                if is_change {
                    journal.tools_changed();
                    is_changed = true;
                } else {
                    journal.log(LogLevel::Warn, &index.to_string());
                    lines += 1;
                }
                if !reads {
                    continue;
                }
                for (number, news) in journal.after(seen) {
                    prop_assert!(number > seen);
                    seen = number;
                    match news {
                        News::ToolsChanged => is_changed = false,
                        News::Log(..) => told += 1,
                    }
                }
                prop_assert!(!is_changed);
                prop_assert_eq!((told, seen), (lines, journal.last()));
            }
        }
    }
}
