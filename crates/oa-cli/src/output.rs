//! Standard output and standard error.

use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use open_agent::redact::printable;

use crate::environment;
use crate::settings::Settings;

/// The character with which editors and shells on Windows begin a text.
pub(crate) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The size of a terminal that does not report one.
const SIZE: (usize, usize) = (80, 24);

/// Returns true if output has styles.
pub(crate) fn has_styles(settings: &Settings, is_terminal: bool) -> bool {
    match settings.text("color") {
        Some("always") => true,
        Some("never") => false,
        _ => is_terminal && !environment::wants_no_color(),
    }
}

/// Returns the columns and rows of the terminal.
pub(crate) fn size() -> (usize, usize) {
    crossterm::terminal::size().map_or(SIZE, |(width, height)| {
        if width == 0 || height == 0 { SIZE } else { (width.into(), height.into()) }
    })
}

/// Returns the number of usable columns. The last one stays free, because terminals wrap after it in different ways.
pub(crate) fn columns() -> usize {
    size().0.saturating_sub(1).max(1)
}

/// Writes text and a line break to standard output.
pub(crate) fn write_line(line: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Writes a line for the user to standard error. A failure is ignored, because there is no reader.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(stderr().lock(), "{}", printable(line));
}

/// Returns a bar that shows progress, unless standard error is not a terminal.
pub(crate) fn progress_bar(length: u64, template: &str) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    // An invalid template would leave the default style, which is sufficient.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
