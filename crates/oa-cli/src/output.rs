//! Standard output and standard error.

use std::io::{self, IsTerminal, Write, stderr, stdout};

use open_agent::redact::printable;

use crate::environment;
use crate::settings::Settings;

/// Returns true if output has styles.
pub(crate) fn has_styles(settings: &Settings, is_terminal: bool) -> bool {
    match settings.text("color") {
        Some("always") => true,
        Some("never") => false,
        _ => is_terminal && !environment::wants_no_color(),
    }
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

/// Returns true if progress can be shown.
pub(crate) fn shows_progress() -> bool {
    stderr().is_terminal()
}
