//! Counts instructions and allocations: the program at hand starts itself again under `valgrind`.
//!
//! Times vary with whatever else a machine does, and counters of the hardware are often out of reach;
//! what valgrind counts is the same each time. A case is run for some units and for three times as
//! many, and the difference is divided: start-up and what is prepared beforehand cancel out.

use std::env;
use std::fmt::Display;
use std::process::{Command, Output};

/// `valgrind`, where it is installed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Valgrind(());

impl Valgrind {
    pub(crate) fn find() -> Option<Self> {
        let version = Command::new("valgrind").arg("--version").output();
        version.is_ok_and(|output| output.status.success()).then_some(Self(()))
    }

    /// Returns how many instructions one unit takes, of them those inside functions whose name has
    /// `within` in it. The child is told the case and how many units.
    pub(crate) fn instructions(self, within: Option<&str>, case: &[usize], units: usize) -> f64 {
        let toggle = within.map(|function| format!("--toggle-collect=*{function}*"));
        let mut options = vec!["--tool=callgrind", "--callgrind-out-file=/dev/null"];
        options.extend(toggle.as_deref());
        per_unit(units, |units| count(&options, case, units, "Collected : "))
    }

    /// Returns how many times one unit allocates, reallocations included.
    pub(crate) fn allocations(self, case: &[usize], units: usize) -> f64 {
        let options = ["--tool=memcheck", "--leak-check=no", "--undef-value-errors=no"];
        per_unit(units, |units| count(&options, case, units, "total heap usage: "))
    }
}

/// The numbers that a child was told: the case and, last, how many units. `cargo bench` itself passes
/// `--bench`, which is none.
pub(crate) fn numbers() -> Vec<usize> {
    env::args().skip(1).filter_map(|text| text.parse().ok()).collect()
}

/// This program, once more.
pub(crate) fn again(arguments: &[impl Display]) -> Command {
    let mut command = Command::new(env::current_exe().expect("a bench knows its own path"));
    command.args(arguments.iter().map(ToString::to_string));
    command
}

/// A number with a comma before each three digits.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn per_unit(units: usize, count: impl Fn(usize) -> u64) -> f64 {
    let (few, many) = (count(units), count(3 * units));
    many.saturating_sub(few) as f64 / (2 * units) as f64
}

/// The number that valgrind prints behind `label`.
fn count(options: &[&str], case: &[usize], units: usize, label: &str) -> u64 {
    let child = again(&[case, &[units]].concat());
    let output = Command::new("valgrind")
        .args(options)
        .arg(child.get_program())
        .args(child.get_args())
        .output()
        .expect("valgrind was there a moment ago");
    let Output { status, stderr, .. } = output;
    let report = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "case {case:?} failed: {report}");
    let number = report.lines().find_map(|line| line.split_once(label));
    let (_, number) = number.unwrap_or_else(|| panic!("no {label:?} in {report}"));
    let digits = number.chars().take_while(|c| c.is_ascii_digit() || *c == ',');
    let digits: String = digits.filter(char::is_ascii_digit).collect();
    digits.parse().expect("a count is a number")
}
