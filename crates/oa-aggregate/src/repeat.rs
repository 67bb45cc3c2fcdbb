//! The text that a complete message adds to an answer that was streamed before it (QUIRKS row 117).

use std::borrow::Cow;

use oa_json::Trim;

use crate::blocks::Voice;
use crate::echo::Echo;
use crate::error::Error;
use crate::think::Splitter;

/// Returns the text of a message as it would have been streamed: without the thinking in it, which is added to
/// `thinking`, and without thinking that it repeats.
///
/// `streamed` is the thinking that was streamed, and `tags` separates the thinking in the text.
pub(crate) fn take_apart(
    text: &str,
    thinking: &mut String,
    streamed: &str,
    tags: Option<Splitter>,
) -> Result<String, Error> {
    let mut echo = Echo::default();
    let known = if thinking.is_empty() { streamed } else { &**thinking };
    let mut rest = echo.push(text, known).map_or_else(String::new, Cow::into_owned);
    rest.extend(echo.flush(known));
    let Some(mut tags) = tags else { return Ok(rest) };
    let mut text = String::new();
    let mut sort = |voice, words: &str| {
        if voice == Voice::Thinking { &mut *thinking } else { &mut text }.push_str(words);
        Ok(())
    };
    tags.push(&rest, &mut sort)?;
    tags.flush(&mut sort)?;
    Ok(text)
}

/// Returns the part of `whole` that is new: nothing if it repeats the streamed text or its end.
///
/// Surrounding white space is ignored. A text with nothing in common with the streamed one is new: nothing is lost.
///
/// `edges` are those of the streamed text, so that it takes no longer than reading `whole`, however much was streamed.
pub(crate) fn unsaid<'w>(said: &str, edges: &mut Trim, whole: &'w str) -> &'w str {
    if let Some(rest) = whole.strip_prefix(said) {
        return if rest.trim().is_empty() && !said.is_empty() { "" } else { rest };
    }
    let (said, bare) = (edges.of(said), whole.trim());
    if said.starts_with(bare) || said.ends_with(bare) { "" } else { whole }
}

#[cfg(test)]
mod tests {
    use super::Trim;

    fn unsaid<'w>(said: &str, whole: &'w str) -> &'w str {
        super::unsaid(said, &mut Trim::default(), whole)
    }

    #[test]
    fn streamed_text_is_not_said_again() {
        assert_eq!(unsaid("", "Hello"), "Hello");
        assert_eq!(unsaid("Hello", "Hello"), "");
        assert_eq!(unsaid("Hello\n", "Hello"), "");
        assert_eq!(unsaid("Hello", "Hello "), "");
        assert_eq!(unsaid("Hello", "Hello there"), " there");
        assert_eq!(unsaid("<think>Hm.</think>Hello", "Hello"), "");
        assert_eq!(unsaid("Hello", "Good morning"), "Good morning");
    }
}
