//! The reference of the settings, generated from their table.

use super::setting::{Kind, SETTINGS, Setting};

/// Returns the reference as a Markdown table.
#[must_use]
pub fn table() -> String {
    let mut table = String::from(
        "| setting | variable | flag | value | default | |\n|---|---|---|---|---|---|\n",
    );
    for setting in SETTINGS {
        let flag = setting.flag.map_or_else(|| "none".to_owned(), |flag| format!("`--{flag}`"));
        table.push_str(&format!(
            "| `{}` | `{}` | {flag} | {} | {} | {} |\n",
            setting.key,
            setting.variable,
            values(setting),
            setting.default,
            setting.about
        ));
    }
    table
}

/// Returns a configuration file with every setting commented out.
#[must_use]
pub fn example() -> String {
    let mut file =
        String::from("# Settings of `oa`. Flags and environment variables override them.\n");
    for setting in SETTINGS {
        let value = match setting.kind {
            Kind::Choice(words) => format!("\"{}\"", words[0]),
            Kind::Integer => "8192".to_owned(),
            Kind::List if setting.key == "servers" => {
                "[\"http://localhost:1234/v1\", \"http://gpu:8000/v1\"]".to_owned()
            }
            Kind::List => "[\"files:~/notes\"]".to_owned(),
            Kind::Object => "{ min_p = 0.05, top_k = 40 }".to_owned(),
            Kind::Number => "0.7".to_owned(),
            Kind::Switch => "true".to_owned(),
            Kind::Text if setting.key == "provider" => "\"llama.cpp\"".to_owned(),
            Kind::Path | Kind::Secret | Kind::Text => "\"..\"".to_owned(),
        };
        file.push_str(&format!(
            "\n# {}. Default: {}.\n# {} = {value}\n",
            sentence(setting.about),
            setting.default,
            setting.key
        ));
    }
    file
}

fn sentence(about: &str) -> String {
    let mut letters = about.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn values(setting: &Setting) -> String {
    match setting.kind {
        Kind::Choice(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        Kind::Integer => "a whole number".to_owned(),
        Kind::List => {
            "a list of strings, separated by commas in the variable and the flag".to_owned()
        }
        Kind::Number => "a number".to_owned(),
        Kind::Object => "a table, in the variable and the flag a JSON object".to_owned(),
        Kind::Path => "a path".to_owned(),
        Kind::Secret => "a secret".to_owned(),
        Kind::Switch => "`true` or `false`".to_owned(),
        Kind::Text => "a string".to_owned(),
    }
}
