//! Arguments as `name="value", other=[1, 2]`, typed by the tool's schema.

use oa_json::{LenientReader, LenientValue, literal, quoted};
use serde_json::{Map, Value};

use crate::bare::{Bare, whole};
use crate::convert::convert;
use crate::tools::Parameters;

/// Reads the arguments of one call. Without a schema, the notation of a value decides its type.
pub(crate) fn read(
    text: &str,
    bare: Bare,
    schema: Option<Parameters<'_>>,
) -> Result<Map<String, Value>, String> {
    let mut reader = bare.reader(text);
    let mut arguments = Map::new();
    let mut nameless = None;
    while !reader.rest().is_empty() {
        match name(&mut reader, bare)? {
            Some(name) => {
                let written =
                    reader.value().map_err(|error| format!("{}: {error}", quoted(&name)))?;
                let schema = schema.and_then(|schema| schema.get(&name));
                let value = convert(written, schema, &name)?;
                if arguments.insert(name.clone(), value).is_some() {
                    return Err(format!("{} appears twice", quoted(&name)));
                }
            }
            None if nameless.is_some() || !arguments.is_empty() => {
                return Err(format!("{} has no name: {ADVICE}", quoted(reader.rest())));
            }
            None => nameless = Some(reader.value().map_err(|error| error.to_string())?),
        }
        if !reader.take(',') && !reader.rest().is_empty() {
            return Err(format!("expected a comma before {}", quoted(reader.rest())));
        }
    }
    match nameless {
        None => Ok(arguments),
        Some(_) if !arguments.is_empty() => Err(format!("the first value has no name: {ADVICE}")),
        Some(written) => sole(written, schema),
    }
}

/// Reads text that is the whole input: the value of the only parameter, or named arguments.
pub(crate) fn read_input(
    text: &str,
    name: &str,
    schema: Option<Parameters<'_>>,
) -> Result<Map<String, Value>, String> {
    let text = text.trim();
    // Models put input in backticks, as code.
    let inner = text.trim_matches('`');
    let is_code = text.starts_with('`') && text.ends_with('`') && !inner.contains(['`', '\n']);
    let text = if is_code { inner.trim() } else { text };
    let Some(parameters) = schema else {
        let input = [("input".to_owned(), Value::from(text))];
        return Ok(input.into_iter().filter(|_| !text.is_empty()).collect());
    };
    let says_none = ["none", "null", "n/a"].iter().any(|word| text.eq_ignore_ascii_case(word));
    if text.is_empty() || says_none {
        return match parameters.required().next() {
            None => Ok(Map::new()),
            Some(missing) => Err(format!("`{missing}` is missing: {ADVICE}")),
        };
    }
    let mut reader = Bare::Words.reader(text);
    // `city: Oslo` has a name if there is such a parameter. Otherwise, as in `note: buy milk`, it is a text.
    if let Ok(Some(first)) = self::name(&mut reader, Bare::Words)
        && parameters.has(&first)
    {
        return read(text, Bare::Words, schema);
    }
    if text.starts_with(['"', '\'']) {
        return match whole(text)? {
            // An object within quotes is what servers make of arguments.
            LenientValue::Quoted(text) if text.trim_start().starts_with('{') => {
                sole(whole(&text)?, schema)
            }
            written => sole(written, schema),
        };
    }
    if text.contains('\n') {
        return Err(format!("the input of `{name}` is several lines: {ADVICE}"));
    }
    // A list if a list is expected, otherwise plain text.
    if text.starts_with('[')
        && let Ok(input) = whole(text).and_then(|list| sole(list, schema))
    {
        return Ok(input);
    }
    sole(LenientValue::Word(text.to_owned()), schema)
}

/// The advice in errors about names.
const ADVICE: &str = "write each argument as name=value";

/// Reads a name and the sign after it. Reads nothing if the next argument has no name.
fn name(reader: &mut LenientReader<'_>, bare: Bare) -> Result<Option<String>, String> {
    let mut ahead = reader.clone();
    let key = ahead.name().unwrap_or_default();
    // Where text needs no quotes, a colon is part of it: `[TOOL:remind:12:30]`.
    let is_named = ahead.take('=') || bare == Bare::Words && ahead.take(':');
    if !is_named {
        return Ok(None);
    }
    if key.is_none() {
        return Err(format!("expected a name before {}", quoted(reader.rest())));
    }
    // `a==b` is a comparison, and its meaning as an argument would be a guess.
    if ahead.rest().starts_with('=') {
        return Err(format!("expected one `=` before {}", quoted(ahead.rest())));
    }
    *reader = ahead;
    Ok(key)
}

/// Returns the arguments given as one value without a name: an object of all arguments, or the value of the only
/// parameter.
fn sole(
    written: LenientValue,
    schema: Option<Parameters<'_>>,
) -> Result<Map<String, Value>, String> {
    let sole = schema.and_then(Parameters::sole);
    match (written, schema) {
        (LenientValue::Object(members), schema) => {
            let is_known = |(name, _): &(String, LenientValue)| {
                schema.is_none_or(|schema| schema.are_unknown() || schema.has(name))
            };
            if members.iter().all(is_known) {
                let members = members.into_iter().map(|(name, member)| {
                    let schema = schema.and_then(|schema| schema.get(&name));
                    let member = convert(member, schema, &name)?;
                    Ok((name, member))
                });
                return members.collect();
            }
            match sole {
                Some((name, schema)) => {
                    let value = convert(LenientValue::Object(members), schema, name)?;
                    Ok([(name.to_owned(), value)].into_iter().collect())
                }
                None => {
                    let other = members.iter().find(|member| !is_known(member));
                    let other = other.map_or("", |(name, _)| name);
                    Err(format!("there is no parameter {}", quoted(other)))
                }
            }
        }
        (written, None) => {
            let value = match written {
                LenientValue::Word(word) => literal(&word).unwrap_or(Value::String(word)),
                written => convert(written, None, "input")?,
            };
            Ok([("input".to_owned(), value)].into_iter().collect())
        }
        (written, Some(_)) => match sole {
            Some((name, schema)) => {
                let value = convert(written, schema, name)?;
                Ok([(name.to_owned(), value)].into_iter().collect())
            }
            None => Err(format!("a value has no name: {ADVICE}")),
        },
    }
}

/// Writes arguments so that [`read`] reads them.
pub(crate) fn write(input: &Value, out: &mut String) {
    let Some(arguments) = input.as_object() else { return };
    for (at, (name, value)) in arguments.iter().enumerate() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if at > 0 {
            out.push_str(", ");
        }
        match !name.is_empty() && name.chars().all(is_word) {
            true => out.push_str(name),
            false => out.push_str(&Value::from(&**name).to_string()),
        }
        out.push('=');
        out.push_str(&value.to_string());
    }
}
