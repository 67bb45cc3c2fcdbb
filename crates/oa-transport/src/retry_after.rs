//! The delay that a server asks for in its headers.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

use crate::date;

/// Returns how long a server asks to wait before the next request: by `retry-after-ms`, or else by `Retry-After` in
/// seconds or as a date (RFC 9110, 10.2.3; QUIRKS row 100).
#[must_use]
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let milliseconds = header("retry-after-ms").and_then(|text| amount(text, 0.001));
    milliseconds.or_else(|| {
        let after = header("retry-after")?;
        amount(after, 1.0).or_else(|| {
            // By the server's own clock, if the response has a date.
            let now = header("date").and_then(date::parse).unwrap_or_else(SystemTime::now);
            Some(date::parse(after)?.duration_since(now).unwrap_or_default())
        })
    })
}

/// Returns a number of units of `seconds` each. One too large for a `Duration` becomes the longest: it is longer
/// than anyone waits, but not the same as no number.
fn amount(text: &str, seconds: f64) -> Option<Duration> {
    let text = text.trim();
    // `f64` also parses `inf`, `NaN` and negative numbers, none of which is a delay.
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let number = text.parse::<f64>().ok().filter(|_| is_number)?;
    Some(Duration::try_from_secs_f64(number * seconds).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn first_valid_header_wins() {
        let read = |headers: &[(&str, &'static str)]| {
            let pair = |(name, value): &(&str, &'static str)| {
                let name: HeaderName = name.parse().expect("it is a name");
                (name, HeaderValue::from_static(value))
            };
            retry_after(&headers.iter().map(pair).collect())
        };
        let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
        assert_eq!(read(&[("retry-after-ms", "1500"), ("retry-after", "9")]), seconds(1.5));
        for bad in ["soon", "", "-1", "NaN", "inf", "1,5"] {
            assert_eq!(
                read(&[("retry-after-ms", bad), ("retry-after", "9")]),
                seconds(9.0),
                "{bad}"
            );
            assert_eq!(read(&[("retry-after", bad)]), None, "{bad}");
        }
        let digits: &'static str = Box::leak("9".repeat(400).into_boxed_str());
        for large in ["99999999999999999999999", "1e300", digits] {
            assert_eq!(read(&[("retry-after", large)]), Some(Duration::MAX), "{large}");
            assert_eq!(read(&[("retry-after-ms", large)]), Some(Duration::MAX), "{large}");
        }
        assert_eq!(read(&[("retry-after", " 2.5 ")]), seconds(2.5));
        let (date, after) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:40 GMT");
        assert_eq!(read(&[("date", date), ("retry-after", after)]), seconds(3.0));
        assert_eq!(read(&[("date", after), ("retry-after", date)]), seconds(0.0));
    }
}
