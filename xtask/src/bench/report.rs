//! The results as a page.

use std::fmt::Write as _;
use std::process::Command;

use super::figures::Figures;
use super::measure::Measured;
use super::programs::{OURS, PROGRAMS};

/// A column: its title, and the name of its figures.
type Column = (&'static str, &'static str);

const INSTRUCTIONS: [Column; 5] = [
    ("a piece of text, an HTTP chunk each", "delta"),
    ("the same in chunks of 16 KiB", "delta in large chunks"),
    ("a fragment of a call", "fragment"),
    ("a request on a warm connection", "request"),
    ("a round of 200", "round of 200"),
];

const ROUNDS: [Column; 6] = [
    ("50 rounds, usage", "round of 50"),
    ("100 rounds, usage", "round of 100"),
    ("200 rounds, usage", "round of 200"),
    ("50 rounds, wrong usage", "round with wrong usage of 50"),
    ("100 rounds, wrong usage", "round with wrong usage of 100"),
    ("200 rounds, wrong usage", "round with wrong usage of 200"),
];

const SIZES: [Column; 3] = [
    ("KiB", "size"),
    ("with the libraries that it loads", "size with libraries"),
    ("built for size", "small size"),
];

const REST: [Column; 4] = [
    ("KiB a stream", "stream"),
    ("us a warm request", "request time"),
    ("crates", "crates"),
    ("build, s", "build"),
];

/// A progress line.
pub(super) fn line(measured: &[Measured]) -> String {
    let name = measured.first().map_or("", |one| one.program);
    let value = |what: &str| measured.iter().find(|one| one.what == what).map(|one| one.value);
    format!(
        "{name:24}{}",
        INSTRUCTIONS.map(|(_, what)| format!("{:>14}", number(value(what)))).concat()
    )
}

/// The current date.
pub(super) fn today() -> String {
    told("date", &["+%Y-%m-%d"])
}

/// The machine, without its name.
pub(super) fn machine() -> String {
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

pub(super) fn page(figures: &Figures, machine: &str) -> String {
    let mut page = format!(
        "# Compared with other crates\n\n\
         Written by `cargo xtask bench`, which measured on {machine}. All programs are in [`xtask/peers`](..), and ask one server \
         that replays prepared answers over a loopback socket. The figures, each with its date, are in \
         [`figures.txt`](figures.txt); a `-` was not measured yet.\n\n\
         ## Instructions\n\n\
         Outside of the kernel, as valgrind counts them. They do not depend on what else the machine does.{}\n\n",
        measured_on(figures, &INSTRUCTIONS),
    );
    table(&mut page, figures, &INSTRUCTIONS);
    let _ = write!(
        page,
        "\n## Instructions for each round of tools\n\n\
         A call, its result of 1 KiB, and the next request with the whole conversation. The server tells its usage, or the same \
         twelve tokens each time.{}\n\n",
        measured_on(figures, &ROUNDS),
    );
    table(&mut page, figures, &ROUNDS);
    let _ = write!(
        page,
        "\n## Size\n\n\
         Of the stripped program in release mode; of the same with the system's libraries that it loads, without the C runtime's; \
         and with `opt-level = \"s\"`, `lto = true` and `codegen-units = 1`. By default, the peers have TLS; ours has it \
         with its feature `tls`, and the loop has none.{}\n\n",
        measured_on(figures, &SIZES),
    );
    table(&mut page, figures, &SIZES);
    let _ = write!(
        page,
        "\n## Memory, time, builds\n\n\
         Memory is that of each of 5,000 open streams. Times are on a CPU, the kernel's included, and medians of programs that \
         took turns; on a busy machine, only their ratios say something. A build is a clean one in release mode, in seconds of \
         CPU; TLS as above. Crates are all that a program depends on, ours included.{}\n\n",
        measured_on(figures, &REST),
    );
    table(&mut page, figures, &REST);
    let notes = PROGRAMS.iter().flat_map(|program| {
        REST.iter().filter_map(|(_, what)| {
            let note = &figures.get(program.name, what)?.note;
            (!note.is_empty()).then(|| format!("{}: {note}.", program.name))
        })
    });
    let notes: Vec<String> = notes.collect();
    if !notes.is_empty() {
        let _ = write!(page, "\n{}\n", notes.join(" "));
    }
    page
}

/// Returns a sentence with the dates of a table's figures.
fn measured_on(figures: &Figures, columns: &[Column]) -> String {
    let columns: Vec<&str> = columns.iter().map(|(_, what)| *what).collect();
    match figures.dates(&columns)[..] {
        [] => String::new(),
        [date] => format!(" Measured on {date}."),
        [first, .., last] => format!(" Measured from {first} to {last}."),
    }
}

/// A table of the programs that have a figure in it, with a last line: how many times as much the best peer takes.
fn table(page: &mut String, figures: &Figures, columns: &[Column]) {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let _ = writeln!(page, "| | {} |\n| ---{} |", names.join(" | "), " | ---:".repeat(names.len()));
    for program in &PROGRAMS {
        if columns.iter().all(|(_, what)| figures.value(program.name, what).is_none()) {
            continue;
        }
        let cell = |what: &str| {
            let value = figures.value(program.name, what);
            // Small ones with a digit more.
            let is_small = matches!(what, "stream" | "request time");
            value.filter(|_| is_small).map_or_else(|| number(value), |value| format!("{value:.1}"))
        };
        let cells: Vec<String> = columns.iter().map(|(_, what)| cell(what)).collect();
        let _ = writeln!(page, "| {} | {} |", program.name, cells.join(" | "));
    }
    let ratios: Vec<String> = columns
        .iter()
        .map(|(_, what)| {
            let best = best_peer(figures, what).zip(figures.value(OURS, what));
            best.map_or_else(|| "-".to_owned(), |(best, ours)| format!("{:.1}x", best / ours))
        })
        .collect();
    let _ = writeln!(page, "| the best peer, as a multiple of ours | {} |", ratios.join(" | "));
}

/// Returns the smallest value among the peers.
fn best_peer(figures: &Figures, what: &str) -> Option<f64> {
    let peers = PROGRAMS.iter().filter(|program| program.is_peer);
    peers.filter_map(|program| figures.value(program.name, what)).min_by(f64::total_cmp)
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

fn told(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(
        |_| "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::figures::Figure;
    use super::super::programs::running;
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(Some(1_234_567.4)), "1,234,567");
        assert_eq!(number(Some(999.0)), "999");
        assert_eq!(number(None), "-");
    }

    #[test]
    fn the_last_line_compares_with_the_best_peer() {
        let mut figures = Figures::default();
        for (program, value) in running().zip([10.0, 1.0, 50.0, 40.0, 60.0, 70.0]) {
            let figure = Figure { value, date: "2026-11-22".to_owned(), note: String::new() };
            figures.set(program.name, "delta", figure);
        }
        let few = Figure {
            value: 1_800.0,
            date: "2026-11-23".to_owned(),
            note: "with 500 streams".to_owned(),
        };
        figures.set("genai", "stream", few);
        let page = page(&figures, "two cores");
        for expected in [
            "| the best peer, as a multiple of ours | 4.0x | - | - | - | - |",
            "else the machine does. Measured on 2026-11-22.",
            "| genai | 1800.0 | - | - | - |",
            "\ngenai: with 500 streams.\n",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        // Programs that are only built have no line without a figure.
        assert!(!page.contains("| open-agent with"), "{page}");
    }
}
