//! The figures of all runs, each with its date. A run keeps the figures that it does not measure.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Result;

/// Figures by program and by what was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures(BTreeMap<(String, String), Figure>);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) value: f64,
    /// The day of the measurement, as `2026-11-22`.
    pub(super) date: String,
    /// The reason why this figure differs from others of its column, such as a smaller number of streams. May be empty.
    pub(super) note: String,
}

impl Figures {
    /// Reads the file, if it exists.
    pub(super) fn read(path: &Path) -> Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map_err(|line| format!("{}: {line}", path.display())),
            Err(_) => Ok(Self::default()),
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let mut figures = Self::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let fields: Vec<&str> = line.split('\t').collect();
            let [program, what, value, date, note] = fields[..] else {
                return Err(format!("not five fields: {line}"));
            };
            let value = value.parse().map_err(|_| format!("no number: {line}"))?;
            figures.set(
                program,
                what,
                Figure { value, date: date.to_owned(), note: note.to_owned() },
            );
        }
        Ok(figures)
    }

    pub(super) fn set(&mut self, program: &str, what: &str, figure: Figure) {
        self.0.insert((program.to_owned(), what.to_owned()), figure);
    }

    pub(super) fn get(&self, program: &str, what: &str) -> Option<&Figure> {
        self.0.get(&(program.to_owned(), what.to_owned()))
    }

    pub(super) fn value(&self, program: &str, what: &str) -> Option<f64> {
        self.get(program, what).map(|figure| figure.value)
    }

    /// Returns the days of the figures of these columns, in order.
    pub(super) fn dates(&self, columns: &[&str]) -> Vec<&str> {
        let found = self.0.iter().filter(|((_, what), _)| columns.contains(&what.as_str()));
        let mut dates: Vec<&str> = found.map(|(_, figure)| figure.date.as_str()).collect();
        dates.sort_unstable();
        dates.dedup();
        dates
    }

    /// Returns the file: a line for each figure.
    pub(super) fn to_text(&self) -> String {
        let lines = self.0.iter().map(|((program, what), figure)| {
            let Figure { value, date, note } = figure;
            format!("{program}\t{what}\t{value}\t{date}\t{note}\n")
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64, date: &str) -> Figure {
        Figure { value, date: date.to_owned(), note: String::new() }
    }

    #[test]
    fn what_a_run_does_not_measure_stays() {
        let mut figures = Figures::default();
        figures.set("a", "delta", figure(3.5, "2026-11-01"));
        figures.set(
            "a",
            "stream",
            Figure { note: "of 500".to_owned(), ..figure(9.0, "2026-11-01") },
        );
        let mut later = Figures::parse(&figures.to_text()).unwrap();
        assert_eq!(later, figures);
        later.set("a", "delta", figure(3.0, "2026-11-02"));
        assert_eq!((later.value("a", "delta"), later.value("a", "stream")), (Some(3.0), Some(9.0)));
        assert_eq!(later.dates(&["delta", "stream"]), ["2026-11-01", "2026-11-02"]);
        assert_eq!(later.dates(&["stream"]), ["2026-11-01"]);
        assert_eq!(later.value("b", "delta"), None);
        for text in ["a\tdelta\t3\n", "a\tdelta\tfast\t2026-11-01\t\n"] {
            assert!(Figures::parse(text).is_err(), "{text}");
        }
    }
}
