//! The delay that a server asks for in its message (QUIRKS row 100).

use std::time::Duration;

/// Reads a wait that is only in the message: "Please try again in 1m2.5s". Returns `None` for any other form, and
/// for two waits that differ.
pub(super) fn in_words(message: &str) -> Option<Duration> {
    let mut told = message.split("Please try again in ").skip(1).map(time);
    let wait = told.next()??;
    told.all(|other| other == Some(wait)).then_some(wait)
}

/// Units from large to small, in seconds.
const UNITS: [(&str, f64); 4] = [("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001)];

/// Reads the time at the start of a text: numbers with units, from large to small; the last may have a fraction.
fn time(text: &str) -> Option<Duration> {
    let mut left = text.split_whitespace().next()?.trim_end_matches(['.', ',', ';']);
    if left.is_empty() || text.starts_with(char::is_whitespace) {
        return None;
    }
    let mut sum = Duration::ZERO;
    let mut units = UNITS.iter();
    while !left.is_empty() {
        let end = left.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = left.split_at(end);
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        // `find` consumes the units up to this one, so each comes once and smaller ones follow: not `2s1m`.
        let (_, seconds) = units.find(|(name, _)| *name == unit)?;
        let is_whole = number.bytes().all(|byte| byte.is_ascii_digit());
        if number.starts_with('.') || number.ends_with('.') || !(is_whole || behind.is_empty()) {
            return None;
        }
        let number: f64 = number.parse().ok()?;
        sum = sum.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        left = behind;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_delays_are_read() {
        let groq = "Rate limit reached for model `m` on tokens per minute (TPM): Limit 6000, Used 5466, \
                    Requested 1300. Please try again in 7.66s. Need more tokens? Upgrade today.";
        assert_eq!(in_words(groq), Some(Duration::from_millis(7_660)));
        for (wait, milliseconds) in [
            ("7.66s", 7_660),
            ("7.66s.", 7_660),
            ("1m2.5s", 62_500),
            ("1m2.5s, or pay", 62_500),
            ("350ms", 350),
            ("350ms. Visit https://h/ to see", 350),
            ("20s", 20_000),
            ("6m0s.", 360_000),
            ("2h3m4s", 7_384_000),
            ("1h", 3_600_000),
            ("1s200ms", 1_200),
            ("0s", 0),
            ("20s. Please try again in 20s.", 20_000),
        ] {
            let told = in_words(&format!("Limit reached. Please try again in {wait}"));
            assert_eq!(told, Some(Duration::from_millis(milliseconds)), "{wait}");
        }
        for wait in [
            "",
            ".",
            " 7s",
            "7",
            "7.66",
            "20 seconds",
            "20sec",
            "-7s",
            "+7s",
            "7..6s",
            "7.s",
            ".5s",
            "1.5m2s",
            "2s1m",
            "2s2s",
            "1d",
            "7s?",
            "7S",
            "1e3s",
            "infs",
            "NaNs",
            "a few seconds",
            "\u{663}s",
            "20s. Please try again in 30s.",
            "20s. Please try again in a while.",
            &format!("{}s", "9".repeat(400)),
            &format!("{}h", "9".repeat(30)),
        ] {
            assert_eq!(in_words(&format!("Please try again in {wait}")), None, "{wait}");
        }
        assert_eq!(in_words("Please retry in 7s, or try again in 8s."), None);
    }
}
