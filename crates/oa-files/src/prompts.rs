//! Files of prompts.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::path::PathBuf;

use oa_types::{Error, Message};
use serde_json::value::RawValue;

use crate::attachment::{Attachment, is_address};

/// The longest line, in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;
/// The bytes with which editors on Windows begin a file.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// A prompt of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// The JSON of its id, as it is written.
    pub id: Option<String>,
    /// The paths of its files.
    pub attach: Vec<String>,
    /// The number of its line, from 1.
    pub line: usize,
}

impl Prompt {
    /// Returns the message of the prompt, with its files, which are read now. `expand` turns what the line says into a path.
    /// Blocks while reading.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if a file cannot be [attached](Attachment::read); names the line.
    pub fn message(&self, expand: impl Fn(&str) -> PathBuf) -> Result<Message, Error> {
        let mut message = Message::user(&self.text);
        for path in &self.attach {
            let path = if is_address(path) { path.into() } else { expand(path) };
            let file = Attachment::read(&path).map_err(|why| at(self.line, &why))?;
            message.content.push(file.block().clone());
        }
        Ok(message)
    }

    /// Parses a line; `None` if it is empty.
    fn parse(line: &[u8], number: usize) -> Result<Option<Self>, String> {
        let line = std::str::from_utf8(line).map_err(|_| "not valid UTF-8".to_owned())?.trim();
        if line.is_empty() {
            return Ok(None);
        }
        let not_json = |error: serde_json::Error| {
            // The caller names the line of the file.
            let error = error.to_string().replace(" at line 1 ", " at ");
            format!(r#"expected JSON like {{"prompt": "Why?"}} or "Why?": {error}"#)
        };
        // Values as they are written, because an id may be a number with more digits than fit.
        let whole: &RawValue = serde_json::from_str(line).map_err(not_json)?;
        let members: BTreeMap<String, &RawValue> = match line.as_bytes()[0] {
            b'"' => BTreeMap::from([("prompt".to_owned(), whole)]),
            b'{' => serde_json::from_str(line).map_err(not_json)?,
            _ => return Err("neither a string nor an object".to_owned()),
        };
        let text = members.get("prompt").ok_or("\"prompt\" is missing")?.get();
        if !text.starts_with('"') {
            return Err("\"prompt\" is not a string".to_owned());
        }
        let text: String = serde_json::from_str(text).map_err(not_json)?;
        if text.trim().is_empty() {
            return Err("the prompt is empty".to_owned());
        }
        let id = members.get("id").map(|id| id.get().to_owned());
        let attach = members.get("attach").map(|attach| serde_json::from_str(attach.get()));
        let attach = attach.transpose().map_err(|_| "\"attach\" is not a list of strings")?;
        Ok(Some(Self { text, id, attach: attach.unwrap_or_default(), line: number }))
    }
}

/// The prompts of a file: each line is a JSON string, or an object with `prompt`, and with `id` and `attach` if it has them.
///
/// ```
/// let file = "{\"prompt\": \"What is this?\", \"attach\": [\"a.png\"]}\n\"Why?\"\n";
/// let prompts: Vec<_> = oa_files::Prompts::new(file.as_bytes()).collect::<Result<_, _>>()?;
/// assert_eq!((&*prompts[0].text, &prompts[0].attach), ("What is this?", &vec!["a.png".to_owned()]));
/// assert_eq!((&*prompts[1].text, prompts[1].line), ("Why?", 2));
/// # Ok::<(), oa_types::Error>(())
/// ```
#[derive(Debug)]
pub struct Prompts<R> {
    reader: R,
    /// The number of the last line.
    line: usize,
}

impl<R: BufRead> Prompts<R> {
    /// Creates the prompts of what this reads.
    pub fn new(reader: R) -> Self {
        Self { reader, line: 0 }
    }

    /// Reads a line; `None` at the end.
    fn read(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut line = Vec::new();
        let read = self.reader.by_ref().take(LONGEST + 1).read_until(b'\n', &mut line);
        let count = read.map_err(|error| error.to_string())?;
        if count as u64 > LONGEST {
            return Err("longer than 16 MiB".to_owned());
        }
        if self.line == 1 && line.starts_with(MARK) {
            line.drain(..MARK.len());
        }
        Ok((count > 0).then_some(line))
    }
}

/// Skips empty lines. An error names its line.
impl<R: BufRead> Iterator for Prompts<R> {
    type Item = Result<Prompt, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.line += 1;
            let line = self.read().transpose()?;
            let prompt = line.and_then(|line| Prompt::parse(&line, self.line));
            if let Some(prompt) = prompt.transpose() {
                return Some(prompt.map_err(|why| at(self.line, &why)));
            }
        }
    }
}

fn at(line: usize, why: &dyn std::fmt::Display) -> Error {
    Error::invalid_input(format!("line {line}: {why}"))
}
