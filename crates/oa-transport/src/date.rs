//! HTTP dates.

use std::time::{Duration, SystemTime};

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that servers write (RFC 9110, 5.6.7).
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.trim().split(' ');
    let _weekday = words.next()?.strip_suffix(',')?;
    let day: u64 = words.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut time = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    if words.next() != Some("GMT") || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Years begin in March here, so that the odd day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    // `(153 * month + 2) / 5` is the number of days before a month: 0, 31, 61, 92, 122, .. from March on. The
    // epoch, 1 January 1970, is in month 10 of the year 1969.
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let days = 365 * year + leap_days(year) + (153 * month + 2) / 5 + day - 1;
    const EPOCH: u64 = 365 * 1969 + 1969 / 4 - 1969 / 100 + 1969 / 400 + (153 * 10 + 2) / 5;
    let seconds = ((days.checked_sub(EPOCH)? * 24 + hour) * 60 + minute) * 60 + second;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_parsed_strictly() {
        let seconds = |text| {
            let since = parse(text)?.duration_since(SystemTime::UNIX_EPOCH);
            Some(since.expect("after the epoch").as_secs())
        };
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("Tue, 29 Feb 2000 12:00:00 GMT"), Some(951_825_600));
        assert_eq!(seconds("Fri, 31 Dec 9999 23:59:59 GMT"), Some(253_402_300_799));
        for nonsense in [
            "",
            "soon",
            "120",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Now 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Sun, 06 Nov 0000 08:49:37 GMT",
        ] {
            assert_eq!(parse(nonsense), None, "{nonsense}");
        }
    }
}
