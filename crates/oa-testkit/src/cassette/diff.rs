//! Line-by-line differences between two texts, for people.

use std::fmt::Write;

/// Describes how to change `old` into `new`: lines with `-` are only in `old`, lines with `+` only in `new`,
/// and some context is shown.
///
/// Bounded: long lines are shortened around their difference, and only the first lines are shown.
pub(super) fn diff<S: AsRef<str>>(old: &[S], new: &[S]) -> String {
    let lines = marked(&changes(old, new));
    let mut told = String::new();
    for line in lines.iter().take(MAX_LINES) {
        told.push_str(line);
        told.push('\n');
    }
    if lines.len() > MAX_LINES {
        let _ = writeln!(told, "  … and {} more lines", lines.len() - MAX_LINES);
    }
    told
}

/// A line and its origin.
#[derive(Clone, Copy)]
enum Line<'a> {
    Both(&'a str),
    New(&'a str),
    Old(&'a str),
}

fn changes<'a, S: AsRef<str>>(old: &'a [S], new: &'a [S]) -> Vec<Line<'a>> {
    let old: Vec<&str> = old.iter().map(AsRef::as_ref).collect();
    let new: Vec<&str> = new.iter().map(AsRef::as_ref).collect();
    let same = |(old, new): &(&&str, &&str)| old == new;
    // Common ends are set aside first: two requests of one conversation mostly differ in a few lines, and the
    // table below grows with the product of what is left.
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();

    let mut lines: Vec<Line<'_>> = old[..head].iter().map(|line| Line::Both(line)).collect();
    between(&old[head..old.len() - tail], &new[head..new.len() - tail], &mut lines);
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Both(line)));
    lines
}

/// Adds the changes between texts without common ends, using the longest common subsequence if that is cheap.
fn between<'a>(old: &[&'a str], new: &[&'a str], lines: &mut Vec<Line<'a>>) {
    let width = new.len() + 1;
    let cells = (old.len() + 1).saturating_mul(width);
    let (mut i, mut j) = (0, 0);
    if cells <= MAX_CELLS {
        // longest[i * width + j] is that of `old[i..]` and `new[j..]`.
        let mut longest = vec![0_u32; cells];
        for i in (0..old.len()).rev() {
            for j in (0..new.len()).rev() {
                longest[i * width + j] = if old[i] == new[j] {
                    longest[(i + 1) * width + j + 1] + 1
                } else {
                    longest[(i + 1) * width + j].max(longest[i * width + j + 1])
                };
            }
        }
        while i < old.len() && j < new.len() {
            if old[i] == new[j] {
                lines.push(Line::Both(old[i]));
                (i, j) = (i + 1, j + 1);
            // Of two equally long ways, the one that removes first: removed lines come before added ones.
            } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
                lines.push(Line::Old(old[i]));
                i += 1;
            } else {
                lines.push(Line::New(new[j]));
                j += 1;
            }
        }
    }
    lines.extend(old[i..].iter().map(|line| Line::Old(line)));
    lines.extend(new[j..].iter().map(|line| Line::New(line)));
}

/// Formats changes with context, hiding long unchanged parts.
fn marked(lines: &[Line<'_>]) -> Vec<String> {
    let is_change = |line: &Line<'_>| !matches!(line, Line::Both(_));
    let mut marked = Vec::new();
    let mut at = if lines.iter().any(is_change) { 0 } else { lines.len() };
    while at < lines.len() {
        let length = lines[at..].iter().take_while(|line| is_change(line) == is_change(&lines[at]));
        let end = at + length.count();
        let run = &lines[at..end];
        if is_change(&lines[at]) {
            mark_changes(run, &mut marked);
        } else {
            let before = if at == 0 { 0 } else { CONTEXT.min(run.len()) };
            let after = if end == lines.len() { 0 } else { CONTEXT };
            let mut hidden = before..run.len().saturating_sub(after).max(before);
            if hidden.len() == 1 {
                // A note about a single hidden line would be just as long.
                hidden = 0..0;
            }
            for (index, line) in run.iter().enumerate() {
                let Line::Both(line) = line else { continue };
                if !hidden.contains(&index) {
                    marked.push(format!("  {}", shortened(line, 0)));
                } else if index == hidden.start {
                    marked.push("  …".to_owned());
                }
            }
        }
        at = end;
    }
    marked
}

fn mark_changes(run: &[Line<'_>], marked: &mut Vec<String>) {
    let old: Vec<&str> = run
        .iter()
        .filter_map(|line| if let Line::Old(line) = line { Some(*line) } else { None })
        .collect();
    let new: Vec<&str> = run
        .iter()
        .filter_map(|line| if let Line::New(line) = line { Some(*line) } else { None })
        .collect();
    let differs = |index: usize| match (old.get(index), new.get(index)) {
        (Some(old), Some(new)) => {
            old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count()
        }
        _ => 0,
    };
    let sides = [("-", &old), ("+", &new)];
    marked.extend(sides.into_iter().flat_map(|(sign, lines)| {
        lines
            .iter()
            .enumerate()
            .map(move |(index, line)| format!("{sign} {}", shortened(line, differs(index))))
    }));
}

/// Shortens a long line to its start and the text around a position, in characters.
fn shortened(line: &str, place: usize) -> String {
    let start = start_of(line);
    let mut rest = line.chars();
    let mut shown: String = rest.by_ref().take(start).collect();
    let skipped = place.saturating_sub(start + BEFORE);
    if skipped > 0 && line.chars().count() > start + MAX_WIDTH {
        shown.push('…');
        rest.by_ref().take(skipped).for_each(drop);
    }
    shown.extend(rest.by_ref().take(MAX_WIDTH));
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Returns the length of a line's indent and member name, which identify it.
fn start_of(line: &str) -> usize {
    let indent = line.chars().take_while(|character| *character == ' ').count();
    let name = line.split_once("\": \"").map_or(0, |(name, _)| name.chars().count() + 4);
    if (indent..indent + BEFORE).contains(&name) { name } else { indent }
}

/// The text shown before a difference in a long line, in characters.
const BEFORE: usize = 40;
const CONTEXT: usize = 3;
const MAX_CELLS: usize = 1 << 20;
const MAX_LINES: usize = 40;
const MAX_WIDTH: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &[&str]) {
        let old: Vec<_> = old.split(' ').collect();
        let new: Vec<_> = new.split(' ').collect();
        assert_eq!(diff(&old, &new).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn changes_stand_between_what_is_the_same() {
        check("a b c", "a x c", &["  a", "- b", "+ x", "  c"]);
        check("a c", "a b c", &["  a", "+ b", "  c"]);
        check("a b c d", "b c e d", &["- a", "  b", "  c", "+ e", "  d"]);
        check("a", "a", &[]);
    }

    #[test]
    fn what_is_the_same_for_long_is_left_out() {
        let expected =
            ["- a", "+ z", "  1", "  2", "  3", "  …", "  6", "  7", "  8", "- b", "+ y"];
        check("a 1 2 3 4 5 6 7 8 b", "z 1 2 3 4 5 6 7 8 y", &expected);
        check("0 1 2 3 4 5 b", "0 1 2 3 4 5 y", &["  …", "  3", "  4", "  5", "- b", "+ y"]);
    }

    #[test]
    fn a_long_line_is_shown_where_it_differs() {
        let (head, tail) = ("h".repeat(5_000), "t".repeat(5_000));
        for start in ["  ", "  \"content\": \""] {
            let line = |word: &str| [format!("{start}{head}{word}{tail}")];
            let told = diff(&line("one"), &line("two"));
            for (sign, word) in [("- ", "hhhonettt"), ("+ ", "hhhtwottt")] {
                let line = told.lines().find(|line| line.starts_with(sign)).unwrap();
                assert!(line.starts_with(&format!("{sign}{start}…hhh")), "{line}");
                assert!(line.contains(word) && line.chars().count() < 160, "{line}");
            }
        }
    }

    #[test]
    fn a_diff_is_bounded() {
        let lines = |word: &str| (0..5_000).map(|n| format!("{word}{n}")).collect::<Vec<_>>();
        let told = diff(&lines("a"), &lines("b"));
        assert_eq!(told.lines().count(), MAX_LINES + 1);
        assert!(told.ends_with("… and 9960 more lines\n"), "{told}");
    }

    proptest::proptest! {
        #[test]
        fn both_texts_can_be_read_from_the_changes(old in "[abc ]{0,40}", new in "[abc ]{0,40}") {
            let old: Vec<_> = old.split(' ').collect();
            let new: Vec<_> = new.split(' ').collect();
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for line in changes(&old, &new) {
                match line {
                    Line::Both(line) => { left.push(line); right.push(line); }
                    Line::New(line) => right.push(line),
                    Line::Old(line) => left.push(line),
                }
            }
            proptest::prop_assert_eq!(&left, &old);
            proptest::prop_assert_eq!(&right, &new);
        }
    }
}
