//! The results as a page.

use std::fmt::Write as _;
use std::process::Command;

use super::measure::{LENGTHS, Row, STREAMS, best_peer};
use super::programs::OURS;

type Value = fn(&Row) -> Option<f64>;

/// The columns of the first table.
const COLUMNS: [(&str, Value); 5] = [
    ("a piece of text, an HTTP chunk each", |row| row.delta),
    ("the same in chunks of 16 KiB", |row| row.delta_in_large_chunks),
    ("a fragment of a call", |row| row.fragment),
    ("a request on a warm connection", |row| row.request),
    ("a round of 200", |row| row.rounds[0][LENGTHS.len() - 1]),
];

/// One line for whoever waits.
pub(super) fn line(row: &Row) -> String {
    format!(
        "{:24}{}",
        row.program.name,
        COLUMNS.map(|(_, value)| format!("{:>14}", number(value(row)))).concat()
    )
}

pub(super) fn page(rows: &[Row]) -> String {
    let mut page = format!(
        "# Compared with other crates\n\n\
         Written by `cargo xtask bench` on {}, on {}. All programs are in [`xtask/peers`](..), and ask one server that replays \
         prepared answers over a loopback socket.\n\n\
         ## Instructions\n\n\
         Outside of the kernel, as valgrind counts them. They do not depend on what else the machine does.\n\n",
        told("date", &["+%Y-%m-%d"]),
        machine(),
    );
    table(&mut page, rows, &COLUMNS);
    page.push_str("\n## Instructions for each round of tools\n\n\
        A call, its result of 1 KiB, and the next request with the whole conversation. The server tells its usage, or the same \
        twelve tokens each time.\n\n");
    let lengths: Vec<String> = ["usage", "wrong usage"]
        .iter()
        .flat_map(|kind| LENGTHS.map(|length| format!("{length} rounds, {kind}")))
        .collect();
    let cell = |row: &Row, place: usize| row.rounds[place / LENGTHS.len()][place % LENGTHS.len()];
    let _ =
        writeln!(page, "| | {} |\n| ---{} |", lengths.join(" | "), " | ---:".repeat(lengths.len()));
    for row in rows {
        let cells: Vec<String> = (0..lengths.len()).map(|place| number(cell(row, place))).collect();
        let _ = writeln!(page, "| {} | {} |", row.program.name, cells.join(" | "));
    }
    let _ = write!(
        page,
        "\n## Memory, time, size\n\n\
        Memory is that of each of {STREAMS} open streams. Times are on a CPU, the kernel's included, and medians of programs that \
        took turns; on a busy machine, only their ratios say something. A build is a clean one in release mode, in seconds of \
        CPU. Crates are all that a program depends on, ours included. Programs are stripped, and have TLS, except for the \
        loop.\n\n"
    );
    let _ = writeln!(
        page,
        "| | KiB a stream | us a warm request | size, KiB | crates | build, s |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    );
    for row in rows {
        let decimal = |value: Option<f64>| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
        };
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} |",
            row.program.name,
            decimal(row.stream_kib),
            decimal(row.request_micros),
            number(Some((row.size_bytes / 1024) as f64)),
            row.crates,
            number(row.build_seconds),
        );
    }
    page
}

/// A table with a last line: how many times as much the best peer takes.
fn table(page: &mut String, rows: &[Row], columns: &[(&str, Value)]) {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let _ = writeln!(page, "| | {} |\n| ---{} |", names.join(" | "), " | ---:".repeat(names.len()));
    for row in rows {
        let cells: Vec<String> = columns.iter().map(|(_, value)| number(value(row))).collect();
        let _ = writeln!(page, "| {} | {} |", row.program.name, cells.join(" | "));
    }
    let ours = rows.iter().find(|row| row.program.name == OURS);
    let ratios: Vec<String> = columns
        .iter()
        .map(|(_, value)| {
            let ratio =
                best_peer(rows, value).zip(ours.and_then(value)).map(|(best, ours)| best / ours);
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.1}x"))
        })
        .collect();
    let _ = writeln!(page, "| the best peer, as a multiple of ours | {} |", ratios.join(" | "));
}

/// A number with a comma before each three digits.
fn number(value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name"));
    let model =
        model.map_or("an unknown processor", |model| model.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!(
        "{cores} cores of {model}, {}, {}",
        told("uname", &["-sm"]),
        told("rustc", &["--version"])
    )
}

fn told(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(
        |_| "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::programs::PROGRAMS;
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(Some(1_234_567.4)), "1,234,567");
        assert_eq!(number(Some(999.0)), "999");
        assert_eq!(number(None), "-");
    }

    #[test]
    fn the_last_line_compares_with_the_best_peer() {
        let mut rows: Vec<Row> = PROGRAMS.iter().map(Row::new).collect();
        for (row, value) in rows.iter_mut().zip([10.0, 1.0, 50.0, 40.0, 60.0, 70.0]) {
            row.delta = Some(value);
        }
        let page = page(&rows);
        assert!(
            page.contains("| the best peer, as a multiple of ours | 4.0x | - | - | - | - |"),
            "{page}"
        );
    }
}
