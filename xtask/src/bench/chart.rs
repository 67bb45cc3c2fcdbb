//! Bar charts as SVG, for light and dark pages.

use std::fmt::Write as _;

use super::figures::Figures;
use super::programs::{PROGRAMS, Program};

/// The file, the title and the column of each chart.
const CHARTS: [(&str, &str, &str); 5] = [
    ("deltas", "Instructions for each piece of text", "delta"),
    ("fragments", "Instructions for each fragment of a call", "fragment"),
    ("rounds", "Instructions for each of 200 rounds of tools", "round of 200"),
    ("memory", "KiB for each of 5,000 open streams", "stream"),
    ("sizes", "KiB of a stripped program with the libraries it loads", "size with libraries"),
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

/// Returns each chart that has figures, with the name of its file.
pub(super) fn charts(figures: &Figures) -> Vec<(String, String)> {
    let all = CHARTS.iter().flat_map(|chart| COLORS.iter().map(move |colors| (chart, colors)));
    let drawn = all.filter_map(|((name, title, what), colors)| {
        Some((format!("{name}-{}.svg", colors.name), draw(figures, title, what, colors)?))
    });
    drawn.collect()
}

fn draw(figures: &Figures, title: &str, what: &str, colors: &Colors) -> Option<String> {
    let bar = |program: &'static Program| Some((program, figures.value(program.name, what)?));
    let bars: Vec<(&Program, f64)> = PROGRAMS.iter().filter_map(bar).collect();
    if bars.is_empty() {
        return None;
    }
    let most = bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let height = TOP + LINE * bars.len() as f64 + 8.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"14\" fill=\"{}\">\n<text x=\"0\" y=\"20\" font-weight=\"600\">{title}</text>\n",
        colors.text,
    );
    for (place, (program, value)) in bars.iter().enumerate() {
        let name = program.name;
        let y = TOP + LINE * place as f64;
        let width = ((WIDTH - NAMES - NUMBERS) * value / most).max(1.0);
        let fill = if program.is_ours() { colors.ours } else { colors.bar };
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
    Some(svg)
}

#[cfg(test)]
mod tests {
    use super::super::figures::Figure;
    use super::*;

    #[test]
    fn bars_are_proportional_to_the_longest() {
        let mut figures = Figures::default();
        for (place, value) in [(0, 450.0), (2, 900.0)] {
            let figure = Figure { value, date: "2026-11-22".to_owned(), note: String::new() };
            figures.set(PROGRAMS[place].name, "delta", figure);
        }
        let all = charts(&figures);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["deltas-light.svg", "deltas-dark.svg"]);
        let svg = &all[0].1;
        assert!(svg.contains("width=\"225.0\"") && svg.contains("width=\"450.0\""), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 2);
    }
}
