use std::iter::Peekable;
use std::str::Chars;

/// The longest pattern that is sent to model servers, in bytes.
const LONGEST: usize = 512;
/// The maximum repetitions in a pattern, with those of nested groups multiplied.
const REPETITIONS: u32 = 1_000;
/// The nesting depth of groups.
const DEPTH: u32 = 8;

/// Returns true if every model server that supports patterns can be expected to accept this one: literals, classes,
/// groups, alternatives and bounded repetition.
///
/// Model servers turn a pattern into a grammar. A pattern that they cannot parse fails the whole request, and `a{2,1}`
/// has been seen to exhaust a server's memory.
pub(crate) fn is_plain(pattern: &str) -> bool {
    if pattern.len() > LONGEST {
        return false;
    }
    let pattern = pattern.strip_prefix('^').unwrap_or(pattern);
    let pattern = match pattern.strip_suffix('$') {
        Some(rest) if !rest.ends_with('\\') => rest,
        _ => pattern,
    };
    // The grammar that is followed:
    //   alternatives = sequence *("|" sequence)
    //   sequence     = 1*(atom [repetition])
    //   atom         = "\" escape / "[" class "]" / "(" ["?:"] alternatives ")" / any other character
    // Whatever it does not cover, such as lookarounds, back references and lazy repetitions, is not plain.
    let mut rest = pattern.chars().peekable();
    alternatives(&mut rest, DEPTH, REPETITIONS).is_some() && rest.next().is_none()
}

/// Reads alternatives up to a closing parenthesis or the end; `most` repetitions are left.
fn alternatives(rest: &mut Peekable<Chars<'_>>, depth: u32, most: u32) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    loop {
        sequence(rest, depth, most)?;
        if rest.next_if_eq(&'|').is_none() {
            return Some(());
        }
    }
}

/// Reads at least one atom.
fn sequence(rest: &mut Peekable<Chars<'_>>, depth: u32, most: u32) -> Option<()> {
    let mut is_empty = true;
    while let Some(&next) = rest.peek() {
        if matches!(next, '|' | ')') {
            break;
        }
        is_empty = false;
        rest.next();
        let mut group = None;
        match next {
            '\\' => escape(rest)?,
            '[' => class(rest)?,
            '(' => {
                if rest.next_if_eq(&'?').is_some() {
                    rest.next_if_eq(&':')?;
                }
                // The following characters say how often the group repeats.
                group = Some(rest.clone());
                alternatives(rest, depth, most)?;
                rest.next_if_eq(&')')?;
            }
            '^' | '$' | '*' | '+' | '?' | '{' | '}' | ']' => return None,
            next if next.is_control() => return None,
            _ => {}
        }
        let times = repetition(rest)?;
        // How often a group repeats is known only behind it, so its content is read again with what is left:
        // in `(a{500}){500}` first with 1,000 repetitions, then with 1,000 / 500 = 2, which `{500}` exceeds.
        let left = most / times.max(1);
        if left == 0 {
            return None;
        }
        // A level of nesting may be read twice, so the innermost one 2^7 times with a `DEPTH` of 8.
        if let Some(mut inner) = group.filter(|_| times > 1) {
            alternatives(&mut inner, depth, left)?;
        }
    }
    (!is_empty).then_some(())
}

/// Reads a repetition, if there is one, and returns its count.
fn repetition(rest: &mut Peekable<Chars<'_>>) -> Option<u32> {
    let times = match rest.peek() {
        // Loops in a grammar, and not expanded like counted repetitions, so they cost nothing.
        Some('*' | '+' | '?') => {
            rest.next();
            1
        }
        Some('{') => {
            rest.next();
            let least = number(rest)?;
            let times = match rest.next()? {
                '}' => least,
                ',' if rest.next_if_eq(&'}').is_some() => least,
                ',' => {
                    let most = number(rest)?;
                    rest.next_if_eq(&'}')?;
                    if most < least {
                        return None;
                    }
                    most
                }
                _ => return None,
            };
            Some(times).filter(|times| *times <= REPETITIONS)?
        }
        _ => return Some(1),
    };
    // Lazy and possessive repetitions.
    (!matches!(rest.peek(), Some('*' | '+' | '?' | '{'))).then_some(times)
}

fn number(rest: &mut Peekable<Chars<'_>>) -> Option<u32> {
    let mut digits = String::new();
    while let Some(digit) = rest.next_if(char::is_ascii_digit) {
        digits.push(digit);
    }
    digits.parse().ok()
}

fn escape(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    let next = rest.next()?;
    (matches!(next, 'd' | 'D' | 'w' | 'W' | 's' | 'S') || next.is_ascii_punctuation()).then_some(())
}

/// Reads a class after its opening bracket.
fn class(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    rest.next_if_eq(&'^');
    let mut is_empty = true;
    // The character from which a range may begin.
    let mut from = None;
    loop {
        let next = rest.next()?;
        from = match next {
            ']' => return (!is_empty).then_some(()),
            '[' => return None,
            '\\' => {
                // `[\.-z]` begins a range, `[\d-z]` does not.
                let escaped = *rest.peek()?;
                escape(rest)?;
                escaped.is_ascii_punctuation().then_some(escaped)
            }
            // Elsewhere, a hyphen is a literal: `[-a]`, `[a-]`. After a class or a range, as in `[\d-z]` and
            // `[a-c-e]`, engines disagree on what it means.
            '-' if !is_empty && rest.peek() != Some(&']') => {
                let (from, to) = (from?, rest.next()?);
                let is_simple = !matches!(to, '[' | '\\') && !to.is_control();
                if !is_simple || from > to {
                    return None;
                }
                None
            }
            next if next.is_control() => return None,
            next => Some(next),
        };
        is_empty = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn common_patterns_are_plain() {
        for pattern in [
            "^[a-z]+$",
            "[a-z]+",
            r"^\d{3}-\w+$",
            r"^[\w.-]+@[\w-]+\.\w+$",
            "^(a|b)$",
            "^(?:https?|ftp)://[^ ]*$",
            r"^[a-z]{1,63}(\.[a-z]{1,63})*$",
            "^日本$",
            r"^\/a$",
            "^.{1,500}$",
            r"^\$$",
            "^[-a]$",
            "^[a-]$",
        ] {
            assert!(is_plain(pattern), "{pattern}");
        }
    }

    #[test]
    fn unsupported_patterns_are_rejected() {
        for pattern in [
            "",
            "^",
            "^$",
            "^[a-z$",
            "^(a$",
            "^a)$",
            "^*a$",
            "^a{2,1}$",
            "^[z-a]$",
            "^(?!x).*$",
            "^(?<n>a)$",
            r"^(a)\1$",
            r"^\p{L}+$",
            r"^\bfoo$",
            "^a++$",
            "^a*?$",
            "^a{,3}$",
            "^{$",
            "^\\",
            "^[]$",
            "^[[:alpha:]]$",
            "^a{2001}$",
            "^(a{500}){500}$",
            "^(|a)$",
            "^a\n$",
            "^((((((((((a))))))))))$",
        ] {
            assert!(!is_plain(pattern), "{pattern}");
        }
        assert!(!is_plain(&"a".repeat(1_000)));
    }

    proptest! {
        #[test]
        fn is_plain_never_panics(pattern in r"[\[\](){}|*+?^$\\.,:a-c0-9-]{0,40}|.{0,40}") {
            let _ = is_plain(&pattern);
        }

        /// The reading of nested groups twice must not be exponential.
        #[test]
        fn nested_groups_are_read_in_bounded_time(depth in 0..40_usize, times in 1..3_u32) {
            let close = format!("){{{times}}}");
            let pattern = format!("{}a{}", "(".repeat(depth), close.repeat(depth));
            let is_plain = is_plain(&pattern);
            prop_assert!(depth < 8 || !is_plain);
        }
    }
}
