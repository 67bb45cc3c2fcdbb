//! The texts that the estimator was fitted to, and those that it was not.

/// Texts of one kind.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// True if an error of at most 15 % is promised for this kind.
    pub(crate) promised: bool,
    /// The estimator's numbers were fitted to these.
    pub(crate) tuned: &'static str,
    /// The estimator's numbers know nothing of these.
    pub(crate) held_out: &'static str,
}

macro_rules! kinds {
    ($($name:literal $promised:literal,)*) => {
        &[$(Kind {
            name: $name,
            promised: $promised,
            tuned: include_str!(concat!("../texts/tuned/", $name, ".txt")),
            held_out: include_str!(concat!("../texts/held_out/", $name, ".txt")),
        }),*]
    };
}

pub(crate) const KINDS: &[Kind] = kinds![
    "english" true,
    "code" true,
    "chinese" true,
    "arabic" true,
    "json" true,
    "minified_json" false,
    "tool_schemas" false,
    "markdown" false,
    "japanese" false,
    "korean" false,
    "russian" false,
    "hindi" false,
    "hebrew" false,
    "thai" false,
    "german" false,
    "french" false,
    "spanish" false,
    "emoji" false,
];

/// Splits a file into its texts.
pub(crate) fn texts(file: &str) -> impl Iterator<Item = &str> {
    file.trim_end().split("\n%%\n")
}

/// The relative error of an estimate, in percent.
pub(crate) fn error(estimated: usize, exact: usize) -> f64 {
    (estimated as f64 - exact as f64) / exact as f64 * 100.0
}
