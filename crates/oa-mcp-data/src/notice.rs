use oa_redact::Secrets;
use oa_tools::{LogLevel, Progress};
use serde_json::Value;

/// The longest text of a log notification, in characters.
const LOG: usize = 2_000;

/// Reads a progress notification: whole numbers are steps, fractions become a percentage of the total, or of 1 without
/// a total. `None` if it has no number.
#[must_use]
pub fn read_progress(params: &Value, secrets: &Secrets) -> Option<Progress> {
    let done = params.get("progress").and_then(Value::as_f64)?;
    let total = params.get("total").and_then(Value::as_f64);
    // `3` of `10` are steps; `0.5`, or `1.5` of `3`, is 50 %.
    let is_whole = |number: f64| number >= 0.0 && number.fract() == 0.0;
    let progress = if is_whole(done) && total.is_none_or(is_whole) {
        Progress::new(done as u64, total.map(|total| total as u64))
    } else {
        let total = total.filter(|total| *total > 0.0).unwrap_or(1.0);
        Progress::from(done / total)
    };
    Some(match params.get("message").and_then(Value::as_str) {
        Some(message) => progress.with_message(secrets.excerpt(message, 500)),
        None => progress,
    })
}

/// Reads the text of a log notification, whose data may be any value.
#[must_use]
pub fn read_log(params: &Value, secrets: &Secrets) -> String {
    match &params["data"] {
        Value::String(text) => secrets.excerpt(text, LOG),
        data => secrets.excerpt(&data.to_string(), LOG),
    }
}

/// Reads the level of a log notification.
#[must_use]
pub fn read_level(name: Option<&str>) -> LogLevel {
    match name {
        Some("debug") => LogLevel::Debug,
        Some("warning") => LogLevel::Warn,
        Some("alert" | "critical" | "emergency" | "error") => LogLevel::Error,
        _ => LogLevel::Info,
    }
}
