//! The configuration file: TOML, one table of settings.

use std::path::Path;

use oa_markdown::excerpt;
use serde_json::{Map, Number, Value as Json};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::SettingsError;
use super::setting::{Kind, SETTINGS, Setting, Value, find, object};
use crate::likeness::closest;

/// Reads a file. Returns each setting with its value and line.
pub(super) fn read(
    path: &Path,
    text: &str,
) -> Result<Vec<(&'static Setting, Value, usize)>, SettingsError> {
    let at = |offset: usize| {
        let before = text.get(..offset).unwrap_or(text);
        before.bytes().filter(|byte| *byte == b'\n').count() + 1
    };
    let fail = |line: usize, why: &str| {
        SettingsError::new(format!("{}, line {line}: {why}", path.display()))
    };
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| at(span.start));
        // Only the message, because an excerpt may contain a key.
        fail(line, error.message())
    })?;
    let mut settings = Vec::new();
    for (key, value) in table.get_ref() {
        let line = at(key.span().start);
        let Some(setting) = find(key.get_ref()) else {
            return Err(fail(line, &unknown(key.get_ref())));
        };
        let value = value_of(setting, value.get_ref())
            .map_err(|why| fail(line, &format!("{}: {why}", setting.key)))?;
        settings.push((setting, value, line));
    }
    settings.sort_by_key(|(_, _, line)| *line);
    Ok(settings)
}

fn unknown(key: &str) -> String {
    let shown = excerpt(key, 40);
    match closest(key, SETTINGS.iter().map(|setting| setting.key)) {
        Some(closest) => format!("unknown setting {shown:?}; did you mean {closest:?}?"),
        None => format!("unknown setting {shown:?}; `oa config` lists all settings"),
    }
}

fn value_of(setting: &Setting, value: &DeValue<'_>) -> Result<Value, String> {
    let wrong = |wanted: &str| Err(format!("must be {wanted}"));
    let text = match (setting.kind, value) {
        (Kind::List, DeValue::Array(items)) => {
            let texts: Option<Vec<_>> =
                items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect();
            return match texts {
                Some(texts) => Ok(Value::List(texts)),
                None => wrong("a list of strings"),
            };
        }
        (Kind::List, _) => return wrong("a list of strings"),
        (Kind::Object, DeValue::Table(table)) => return object(members(table)?),
        (Kind::Object, _) => return wrong("a table"),
        (Kind::Switch, DeValue::Boolean(is_on)) => return Ok(Value::Switch(*is_on)),
        (Kind::Switch, _) => return wrong("true or false"),
        (Kind::Integer, DeValue::Integer(number)) => number.as_str().replace('_', ""),
        (Kind::Integer, _) => return wrong("a whole number"),
        (Kind::Number, DeValue::Integer(number)) => number.as_str().replace('_', ""),
        (Kind::Number, DeValue::Float(number)) => number.as_str().replace('_', ""),
        (Kind::Number, _) => return wrong("a number"),
        (_, DeValue::String(text)) => text.to_string(),
        _ => return wrong("a string"),
    };
    setting.parse(&[text])
}

fn members(table: &DeTable<'_>) -> Result<Map<String, Json>, String> {
    let member = |(name, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let (name, value) = (name.get_ref(), json(value.get_ref()));
        Ok((name.to_string(), value.map_err(|why| format!("{name}: {why}"))?))
    };
    table.iter().map(member).collect()
}

fn json(value: &DeValue<'_>) -> Result<Json, String> {
    Ok(match value {
        DeValue::String(text) => Json::from(&**text),
        DeValue::Boolean(is_on) => Json::from(*is_on),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_err(|_| "the number is too large")?
            .into(),
        // Infinity and its like are no JSON.
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .ok_or("must be a finite number")?
            .into(),
        DeValue::Array(items) => {
            items.iter().map(|item| json(item.get_ref())).collect::<Result<_, _>>()?
        }
        DeValue::Table(table) => members(table)?.into(),
        DeValue::Datetime(_) => return Err("a date must be a string".to_owned()),
    })
}
