//! The text that a complete message adds to an answer that was streamed before it (QUIRKS row 117).

use crate::trim::Trim;

/// Returns the part of `whole` that is new: nothing if it repeats the streamed text or its end.
///
/// Surrounding white space is ignored. A text that has nothing in common with the streamed one is new, so that nothing
/// is lost.
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
