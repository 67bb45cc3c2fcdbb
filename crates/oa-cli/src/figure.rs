//! Numbers and times in readable form.

use std::time::Duration;

/// Returns the spinner's frame at this time.
pub(crate) fn spinner(now: Duration) -> &'static str {
    const PICTURES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
    let at = now.as_millis() / 100 % PICTURES.len() as u128;
    PICTURES[at as usize]
}

/// Returns a duration in readable form.
pub(crate) fn seconds(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds >= 60 {
        return format!("{} min {} s", seconds / 60, seconds % 60);
    }
    if time < Duration::from_millis(50) {
        return format!("{} ms", time.as_millis().max(1));
    }
    format!("{:.1} s", time.as_secs_f64())
}

/// Returns how many are done in a second, or in a minute if it is less than one.
pub(crate) fn rate(per_second: f64) -> String {
    if per_second < 1.0 {
        return format!("{:.1}/min", per_second * 60.0);
    }
    format!("{per_second:.1}/s")
}

/// Returns an estimate of a remaining time in whole units.
pub(crate) fn left_over(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3_600 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// Returns how long ago something was, in its largest unit.
pub(crate) fn ago(time: Duration) -> String {
    const UNITS: [(u64, &str); 3] = [(24 * 3_600, "day"), (3_600, "hour"), (60, "minute")];
    let seconds = time.as_secs();
    let unit = UNITS.into_iter().find(|(unit, _)| seconds >= *unit);
    unit.map_or_else(
        || "just now".to_owned(),
        |(unit, name)| format!("{} ago", counted(seconds / unit, name)),
    )
}

/// Returns how much of a total is done, in percent. Others report both numbers, so they may have any size.
pub(crate) fn percent(done: u64, total: u64) -> u64 {
    u64::try_from(u128::from(done.min(total)) * 100 / u128::from(total.max(1))).unwrap_or(100)
}

/// Returns a count with its noun, in the plural unless it is 1.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}

/// Returns a number with thousands separators.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_ago_have_the_largest_unit() {
        let said = |seconds| ago(Duration::from_secs(seconds));
        for (seconds, wanted) in [
            (59, "just now"),
            (60, "1 minute ago"),
            (7_199, "1 hour ago"),
            (7_200, "2 hours ago"),
            (400 * 24 * 3_600, "400 days ago"),
        ] {
            assert_eq!(said(seconds), wanted);
        }
    }

    #[test]
    fn slow_work_has_a_rate() {
        assert_eq!(
            [0.0, 0.02, 0.9, 1.0, 12.34].map(rate),
            ["0.0/min", "1.2/min", "54.0/min", "1.0/s", "12.3/s"]
        );
        let left = |seconds| left_over(Duration::from_secs(seconds));
        assert_eq!(
            [0, 59, 60, 3_599, 3_600, 90_061].map(left),
            ["0 s", "59 s", "1 min", "59 min", "1 h 0 min", "25 h 1 min"]
        );
    }
}
