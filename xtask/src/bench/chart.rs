//! Bar charts as SVG, for light and dark pages.

use std::fmt::Write as _;

use super::measure::{LENGTHS, Row};
use super::programs::OURS;

type Value = fn(&Row) -> Option<f64>;

const CHARTS: [(&str, &str, Value); 4] = [
    ("deltas", "Instructions for each piece of text", |row| row.delta),
    ("fragments", "Instructions for each fragment of a call", |row| row.fragment),
    ("rounds", "Instructions for each of 200 rounds of tools", |row| {
        row.rounds[0][LENGTHS.len() - 1]
    }),
    ("memory", "KiB for each of 5,000 open streams", |row| row.stream_kib),
];

struct Colors {
    name: &'static str,
    text: &'static str,
    bar: &'static str,
    ours: &'static str,
}

const COLORS: [Colors; 2] = [
    Colors { name: "light", text: "#1f2328", bar: "#b1bac4", ours: "#0969da" },
    Colors { name: "dark", text: "#e6edf3", bar: "#484f58", ours: "#4493f8" },
];

const WIDTH: f64 = 720.0;
const NAMES: f64 = 180.0;
const NUMBERS: f64 = 90.0;
const LINE: f64 = 28.0;
const TOP: f64 = 44.0;

/// Returns each chart with the name of its file.
pub(super) fn charts(rows: &[Row]) -> Vec<(String, String)> {
    let all = CHARTS.iter().flat_map(|chart| COLORS.iter().map(move |colors| (chart, colors)));
    let drawn = all.map(|((name, title, value), colors)| {
        (format!("{name}-{}.svg", colors.name), draw(rows, title, *value, colors))
    });
    drawn.collect()
}

fn draw(rows: &[Row], title: &str, value: Value, colors: &Colors) -> String {
    let bars: Vec<(&str, f64)> =
        rows.iter().filter_map(|row| Some((row.program.name, value(row)?))).collect();
    let most = bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let height = TOP + LINE * bars.len() as f64 + 8.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"14\" fill=\"{}\">\n<text x=\"0\" y=\"20\" font-weight=\"600\">{title}</text>\n",
        colors.text,
    );
    for (place, (name, value)) in bars.iter().enumerate() {
        let y = TOP + LINE * place as f64;
        let width = ((WIDTH - NAMES - NUMBERS) * value / most).max(1.0);
        let fill = if *name == OURS { colors.ours } else { colors.bar };
        let number = if *value < 1_000.0 {
            format!("{value:.1}")
        } else {
            format!("{:.1}k", value / 1_000.0)
        };
        let _ = writeln!(
            svg,
            "<text x=\"0\" y=\"{}\">{name}</text>\n<rect x=\"{NAMES}\" y=\"{}\" width=\"{width:.1}\" height=\"18\" rx=\"2\" fill=\"{fill}\"/>\n\
             <text x=\"{:.1}\" y=\"{}\">{number}</text>",
            y + 14.0,
            y,
            NAMES + width + 8.0,
            y + 14.0,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::super::programs::PROGRAMS;
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_chart_and_others_are_in_proportion() {
        let mut rows: Vec<Row> = PROGRAMS.iter().map(Row::new).collect();
        rows[0].delta = Some(450.0);
        rows[2].delta = Some(900.0);
        let (name, svg) = charts(&rows).swap_remove(0);
        assert_eq!(name, "deltas-light.svg");
        assert!(svg.contains("width=\"225.0\"") && svg.contains("width=\"450.0\""), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 2);
    }
}
