//! The delay that a server asks for in its message (QUIRKS row 100).

use std::time::Duration;

/// The words before a wait: of OpenAI and Groq, Gemini, Azure, and GitHub.
const PHRASES: [&str; 4] = ["try again in ", "retry in ", "retry after ", WAIT];

/// Without a number behind it, this tells no time.
const WAIT: &str = "please wait ";

/// Reads a wait that is only in the message: "Please try again in 1m2.5s", "Please retry after 33 seconds". Returns
/// `None` for any other form, and for two waits that differ.
pub(super) fn in_words(message: &str) -> Option<Duration> {
    // Places in it are the same in the message.
    let lower_case = message.to_ascii_lowercase();
    let mut told = None;
    for phrase in PHRASES {
        for (at, _) in lower_case.match_indices(phrase) {
            let text = &message[at + phrase.len()..];
            if phrase == WAIT && !text.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            let wait = time(text)?;
            if *told.get_or_insert(wait) != wait {
                return None;
            }
        }
    }
    told
}

/// Reads a wait that is a member of its own: `"34.07s"`.
pub(super) fn in_member(delay: &str) -> Option<Duration> {
    (!delay.contains(char::is_whitespace)).then(|| time(delay))?
}

/// Units from large to small, in seconds.
const UNITS: [(&str, f64); 4] = [("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001)];

/// The same units as words of their own.
const WORDS: [(&str, &str); 6] = [
    ("hour", "h"),
    ("hours", "h"),
    ("minute", "m"),
    ("minutes", "m"),
    ("second", "s"),
    ("seconds", "s"),
];

/// Reads the time at the start of a text: numbers with units, from large to small, the last of which may have a fraction;
/// or one number and a unit as a word.
fn time(text: &str) -> Option<Duration> {
    let mut words =
        text.split(char::is_whitespace).map(|word| word.trim_end_matches(['.', ',', ';', ')']));
    let (first, second) = (words.next()?, words.next().unwrap_or_default());
    let unit = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(second));
    match unit.filter(|_| first.ends_with(|c: char| c.is_ascii_digit())) {
        Some((_, unit)) => short(&format!("{first}{unit}")),
        None => short(first),
    }
}

fn short(mut left: &str) -> Option<Duration> {
    if left.is_empty() {
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
            ("20 seconds", 20_000),
            ("1.5 seconds, or pay", 1_500),
            ("1 minute.", 60_000),
            ("2 Hours", 7_200_000),
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
            "20 sheep",
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
        for (message, seconds) in [
            // Azure, also behind gateways that drop its header (openai/openai-node #1108, openai/codex #5956).
            (
                "Requests have exceeded token rate limit. Please retry after 33 seconds. Please go here: h",
                33,
            ),
            ("Rate limit exceeded. Try again in 35 seconds.", 35),
            // GitHub, Gemini.
            ("Rate limit of 10 per 60s exceeded. Please wait 28 seconds before retrying.", 28),
            ("You exceeded your current quota. Please retry in 34.0s.", 34),
            ("Please wait before you try again in 4s.", 4),
        ] {
            assert_eq!(in_words(message), Some(Duration::from_secs(seconds)), "{message}");
        }
        assert_eq!(in_words("Too many tokens, please wait before trying again."), None);
        assert_eq!(in_member("34.5s"), Some(Duration::from_millis(34_500)));
        assert_eq!((in_member("34 seconds"), in_member("soon"), in_member("")), (None, None, None));
    }
}
