use std::borrow::Cow;

use oa_client::{Error, ErrorKind, Reply, Result};
use oa_session::{Error as LogError, ErrorKind as LogErrorKind};
use oa_types::ErrorRecord;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::log::fingerprint::Fingerprint;

/// The first line of a log.
pub(crate) const HEADER: &str = "{\"batch_log\":1}\n";

/// The longest line, in bytes.
pub(crate) const MOST: usize = 256 << 20;

/// The deepest nesting of a line. `serde_json` reads no deeper.
const DEEPEST: usize = 127;

/// One outcome: `{"index": 7, "prompt": "<fingerprint>", "reply": {..}}`, or `"error"` in place of `"reply"`.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Line<'a> {
    index: u64,
    prompt: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Cow<'a, Reply>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorRecord>,
}

impl<'a> Line<'a> {
    pub(crate) fn new(index: u64, prompt: Fingerprint, outcome: &'a Result<Reply>) -> Self {
        let (reply, error) = match outcome {
            Ok(reply) => (Some(Cow::Borrowed(reply)), None),
            Err(error) => (None, Some(error.to_record())),
        };
        Self { index, prompt: prompt.to_hex(), reply, error }
    }

    /// Returns the line with its newline; an error of kind `Limit` if it cannot be read back.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let unfit = |why: String| {
            Error::new(ErrorKind::Limit, format!("the reply cannot be logged: {why}"))
        };
        let mut line = serde_json::to_vec(self).map_err(|error| unfit(error.to_string()))?;
        line.push(b'\n');
        if line.len() > MOST {
            return Err(unfit(format!("its line is longer than {MOST} bytes")));
        }
        if depth(&line) > DEEPEST {
            return Err(unfit(format!("its line is nested deeper than {DEEPEST} levels")));
        }
        Ok(line)
    }

    pub(crate) fn prompt(&self) -> Option<Fingerprint> {
        Fingerprint::from_hex(&self.prompt)
    }
}

impl Line<'static> {
    pub(crate) fn parse(line: &[u8]) -> Result<Self, LogError> {
        serde_json::from_slice(line).map_err(|error| corrupt(error.to_string()))
    }

    pub(crate) fn into_outcome(self) -> Result<Reply> {
        match (self.reply, self.error) {
            (Some(reply), _) => Ok(reply.into_owned()),
            (None, error) => Err(Error::from(error.unwrap_or_default())),
        }
    }
}

/// The part of a line that is read when a log is opened.
#[derive(Debug, Deserialize)]
pub(crate) struct LineHead<'a> {
    pub(crate) index: u64,
    #[serde(borrow)]
    prompt: Cow<'a, str>,
    #[serde(default)]
    reply: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

impl<'a> LineHead<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, LogError> {
        let head: Self =
            serde_json::from_slice(line).map_err(|error| corrupt(error.to_string()))?;
        if Fingerprint::from_hex(&head.prompt).is_none() {
            return Err(corrupt("its prompt is not a fingerprint"));
        }
        if head.reply.is_some() == head.error.is_some() {
            return Err(corrupt("it must have exactly one of reply and error"));
        }
        Ok(head)
    }

    pub(crate) fn is_reply(&self) -> bool {
        self.reply.is_some()
    }
}

/// Returns the depth to which valid JSON is nested.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string) = (0_usize, 0, false);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            // An escape: its second byte may be a quote.
            b'\\' => _ = bytes.next(),
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
    }
    deepest
}

pub(crate) fn corrupt(why: impl Into<String>) -> LogError {
    LogError::new(LogErrorKind::Corrupt, why)
}

#[cfg(test)]
mod tests {
    use super::depth;

    #[test]
    fn brackets_in_strings_are_not_nesting() {
        for (json, expected) in
            [("1", 0), (r#"{"[":"]{\"["}"#, 1), (r#"[[],{"a":[{}]}]"#, 4), (r#""\\[""#, 0)]
        {
            assert_eq!(depth(json.as_bytes()), expected, "{json}");
        }
    }
}
