//! Findings formatted for people.

use std::fmt::{self, Write};

use crate::finding::{Finding, Probe};

/// The longest line, in characters, unless a word is longer or the caller's terminal is narrower.
pub(crate) const WIDTH: usize = 100;
/// The characters that an observation has at least.
const NARROWEST: usize = 16;
/// The width of the verdict: `unknown`.
const VERDICT: usize = 7;

impl fmt::Display for Finding {
    /// Writes one line, and a second one if there is advice.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_row(f, self, WIDTH)
    }
}

/// Writes a finding: name, verdict and observation; then, after an arrow, the advice.
pub(crate) fn write_row(f: &mut impl Write, finding: &Finding, width: usize) -> fmt::Result {
    let name = Probe::ALL.iter().map(|probe| probe.name().len()).max().unwrap_or_default();
    let indent = name + 2 + VERDICT + 2;
    let width = width.clamp(indent + NARROWEST, WIDTH);
    write!(f, "{:name$}  {:VERDICT$}  ", finding.probe, finding.verdict)?;
    write_wrapped(f, &finding.seen, indent, width)?;
    if let Some(advice) = &finding.advice {
        write!(f, "\n{:1$}-> ", "", indent)?;
        write_wrapped(f, advice, indent + 3, width)?;
    }
    Ok(())
}

/// Wraps a text into lines, indenting all but the first.
fn write_wrapped(f: &mut impl Write, text: &str, indent: usize, width: usize) -> fmt::Result {
    let mut column = indent;
    for (place, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if place > 0 && column + 1 + length > width {
            write!(f, "\n{:indent$}", "")?;
            column = indent;
        } else if place > 0 {
            f.write_char(' ')?;
            column += 1;
        }
        f.write_str(word)?;
        column += length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_keep_all_words() {
        let text = "word ".repeat(60) + &"x".repeat(200) + " end";
        let mut written = String::new();
        write_wrapped(&mut written, &text, 4, WIDTH).unwrap();
        let lines: Vec<_> = written.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= WIDTH || line.trim().len() == 200));
        assert!(lines[1..].iter().all(|line| line.starts_with("    ")));
        assert_eq!(
            written.split_whitespace().collect::<Vec<_>>(),
            text.split_whitespace().collect::<Vec<_>>()
        );
    }
}
