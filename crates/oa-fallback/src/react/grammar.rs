use serde_json::Map;

use super::input::{InBrackets, Lines};
use super::label;
use crate::bodies::{Arguments, Named, Objects, Ready};
use crate::grammar::{CallBody, Grammar, Match, ParsedCall, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

/// Words that mean "no action".
const NOTHING: [&str; 4] = ["n/a", "no", "none", "null"];

/// The grammar of actions, which begin at the start of a line.
#[derive(Debug)]
pub(super) struct ReactGrammar {
    tools: Tools,
}

impl ReactGrammar {
    pub(super) fn new(tools: Tools) -> Self {
        Self { tools }
    }

    /// Reads what follows `Action:`.
    fn action(&self, head: &mut CallHead<'_>) -> Result<Box<dyn CallBody>, NoMatch> {
        head.spaces()?;
        let start = head.at();
        match head.fence() {
            Err(NoMatch::Mismatch) => head.go_back(start),
            read => read?,
        }
        if head.peek()? == Some('{') {
            return Ok(Box::new(Objects::new(&self.tools)));
        }
        let start = head.at();
        match self.named(head) {
            Err(NoMatch::Mismatch) => {
                head.go_back(start);
                self.described(head)
            }
            found => found,
        }
    }

    /// Reads a tool's name and its arguments.
    fn named(&self, head: &mut CallHead<'_>) -> Result<Box<dyn CallBody>, NoMatch> {
        // Any name may be followed directly by arguments, as in `add(a=1)` and `add{"a": 1}`, or by the label
        // of an input. A known name may also be followed by blanks and arguments, by `[text]`, or by nothing.
        head.take_while(|c| c == '`' || c == '*')?;
        let name = head.name()?;
        let is_known = self.tools.knows(name);
        if is_nothing(name) && !is_known {
            return Err(NoMatch::Mismatch);
        }
        // Brackets after a word and a blank are prose, unless the word is a tool.
        if !is_known {
            match head.peek()? {
                Some('(') => {
                    head.literal("(")?;
                    return Ok(Box::new(Named::new(name, &self.tools)));
                }
                Some('{') => return Ok(Box::new(Arguments::new(name))),
                _ => {}
            }
        }
        let end = head.at();
        head.take_while(|c| c == '`' || c == '*')?;
        head.blanks()?;
        match head.peek()? {
            Some('(') if is_known => {
                // `Action: search (again, with other words)` is prose even if `search` is a tool.
                let is_adjacent = head.at() == end;
                head.literal("(")?;
                let start = head.at();
                if !is_adjacent && !are_arguments(head)? {
                    return Err(NoMatch::Mismatch);
                }
                head.go_back(start);
                return Ok(Box::new(Named::new(name, &self.tools)));
            }
            Some('[') if is_known && head.at() == end => {
                head.literal("[")?;
                return Ok(Box::new(InBrackets::new(name, &self.tools)));
            }
            Some('{') if is_known => return Ok(Box::new(Arguments::new(name))),
            Some('\n' | '\r') | None => {
                head.spaces()?;
                if label::input(head)? {
                    return self.input(head, name);
                }
            }
            Some(_) => {
                head.maybe(",")?;
                head.blanks()?;
                if label::input(head)? {
                    return self.input(head, name);
                }
                return Err(NoMatch::Mismatch);
            }
        }
        // The name is alone on its line. The head goes back, because the next line is not part of the call.
        head.go_back(end);
        let schema = self.tools.schema(name).ok_or(NoMatch::Mismatch)?;
        Ok(Box::new(Ready(match schema.required().next() {
            None => ParsedCall::new(name, Map::new()),
            Some(missing) => {
                let error = format!("`{missing}` is missing: write {name}({missing}=...)");
                ParsedCall::malformed(Some(name), error)
            }
        })))
    }

    /// Reads a line that is not a name, followed by an input: recognizable as a call, but malformed.
    fn described(&self, head: &mut CallHead<'_>) -> Result<Box<dyn CallBody>, NoMatch> {
        let line = head.take_while(|c| c != '\n')?.trim();
        if is_nothing(line) {
            return Err(NoMatch::Mismatch);
        }
        head.spaces()?;
        if !label::input(head)? {
            return Err(NoMatch::Mismatch);
        }
        Ok(Box::new(Lines::of_no_tool(line, &self.tools)))
    }

    /// Reads what follows `Action Input:`.
    fn input(&self, head: &mut CallHead<'_>, name: &str) -> Result<Box<dyn CallBody>, NoMatch> {
        let start = head.at();
        head.spaces()?;
        match head.fence() {
            Ok(()) if head.peek()? == Some('{') => return Ok(Box::new(Arguments::new(name))),
            Err(NoMatch::Incomplete) => return Err(NoMatch::Incomplete),
            _ => head.go_back(start),
        }
        Ok(Box::new(Lines::new(name, &self.tools)))
    }
}

fn is_nothing(text: &str) -> bool {
    NOTHING.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns true if the text in brackets after a blank is arguments rather than prose.
fn are_arguments(head: &mut CallHead<'_>) -> Result<bool, NoMatch> {
    head.spaces()?;
    if let Some(')' | '"' | '\'' | '{') = head.peek()? {
        return Ok(true);
    }
    head.name()?;
    head.blanks()?;
    Ok(matches!(head.peek()?, Some('=' | ':')))
}

impl Grammar for ReactGrammar {
    fn may_begin(&self, byte: u8) -> bool {
        matches!(byte, b'A' | b'a' | b'F' | b'f' | b'*' | b'`')
    }

    fn begin(&self, head: &mut CallHead<'_>, position: Position) -> Result<Match, NoMatch> {
        if position.after_call && (head.maybe("```")? || head.maybe("`")? || head.maybe("**")?) {
            return Ok(Match::Skip);
        }
        if !position.at_line_start {
            return Err(NoMatch::Mismatch);
        }
        match label::label(head, "Action") {
            Err(NoMatch::Mismatch) => head.go_back(0),
            found => {
                found?;
                return self.action(head).map(Match::Call);
            }
        }
        label::label(head, "Final Answer")?;
        // The answer begins on the next line.
        head.maybe("\r")?;
        head.maybe("\n")?;
        Ok(Match::Answer)
    }
}
