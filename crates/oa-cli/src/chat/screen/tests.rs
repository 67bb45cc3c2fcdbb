use oa_markdown::Style;
use proptest::prelude::*;

use super::*;

fn line(text: &str) -> Line {
    Line::new(text, Style::PLAIN)
}

fn rows(terminal: &vt100::Parser) -> Vec<String> {
    let width = terminal.screen().size().1;
    let mut rows: Vec<_> =
        terminal.screen().rows(0, width).map(|row| row.trim_end().to_owned()).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

#[test]
fn rows_change_below_lines_that_stay() {
    let mut terminal = vt100::Parser::new(6, 20, 0);
    let mut screen = Screen::new(20, 6, true);
    terminal
        .process(screen.draw(vec![line("one")], &[line("live"), line("> ")], (1, 2)).as_bytes());
    assert_eq!(rows(&terminal), ["one", "live", ">"]);
    assert_eq!(terminal.screen().cursor_position(), (2, 2));
    terminal.process(screen.draw(vec![line("two")], &[line("> x")], (0, 3)).as_bytes());
    assert_eq!(rows(&terminal), ["one", "two", "> x"]);
    assert_eq!(screen.draw(vec![], &[line("> x")], (0, 3)), "");
    terminal.process(screen.clear().as_bytes());
    assert_eq!(rows(&terminal), ["one", "two"]);
    assert_eq!(terminal.screen().cursor_position(), (2, 0));
}

#[test]
fn last_of_too_many_rows_are_shown() {
    let mut terminal = vt100::Parser::new(4, 20, 100);
    let mut screen = Screen::new(20, 4, true);
    let many: Vec<_> = (0..9).map(|n| line(&n.to_string())).collect();
    terminal.process(screen.draw(vec![], &many, (8, 0)).as_bytes());
    assert_eq!(rows(&terminal), ["6", "7", "8"]);
    terminal.process(screen.draw(vec![], &[line("x")], (0, 0)).as_bytes());
    assert_eq!(rows(&terminal), ["x"]);
}

#[test]
fn resize_redraws_permanent_lines() {
    let mut terminal = vt100::Parser::new(6, 20, 0);
    let mut screen = Screen::new(20, 6, true);
    let stay = vec![line("a long line of it"), line("end")];
    terminal.process(screen.draw(stay, &[line("> ")], (0, 2)).as_bytes());
    terminal.screen_mut().set_size(6, 10);
    terminal.process(screen.resize(10, 6).as_bytes());
    terminal.process(screen.draw(vec![], &[line("> ")], (0, 2)).as_bytes());
    assert_eq!(rows(&terminal), ["a long li", "ne of it", "end", ">"]);
}

/// A terminal may show a row in more columns than it counts here. (The one of the tests knows no such mode.)
#[test]
fn rows_that_change_never_wrap() {
    let mut screen = Screen::new(20, 6, true);
    let out = screen.draw(vec![line("stays")], &[line("one"), line("> ")], (1, 2));
    assert!(out.contains("stays\r\n\x1b[?7lone\r\n> \x1b[?7h"), "{out:?}");
    assert!(!screen.clear().contains("\x1b[?7"));
}

proptest! {
    /// However often the rows below are drawn, the lines that stay are all there, in order.
    #[test]
    fn permanent_lines_appear_once_in_order(steps in prop::collection::vec((0_usize..3, 0_usize..7), 1..20)) {
        let mut terminal = vt100::Parser::new(5, 12, 1_000);
        let mut screen = Screen::new(12, 5, false);
        let mut number = 0;
        for (stay, rows) in steps {
            let stay: Vec<_> = (0..stay).map(|_| { number += 1; line(&format!("line {number}")) }).collect();
            let rows: Vec<_> = (0..rows).map(|n| line(&format!("row {n} {number}"))).collect();
            terminal.process(screen.draw(stay, &rows, (rows.len().saturating_sub(1), 0)).as_bytes());
        }
        terminal.process(screen.clear().as_bytes());
        let mut all = Vec::new();
        terminal.screen_mut().set_scrollback(usize::MAX);
        let deepest = terminal.screen().scrollback();
        for back in (0..=deepest).rev() {
            terminal.screen_mut().set_scrollback(back);
            let first = terminal.screen().rows(0, 12).next().unwrap_or_default();
            if back > 0 { all.push(first.trim_end().to_owned()) } else { all.extend(rows(&terminal)) }
        }
        let wanted: Vec<_> = (1..=number).map(|number| format!("line {number}")).collect();
        prop_assert_eq!(all, wanted);
    }
}
