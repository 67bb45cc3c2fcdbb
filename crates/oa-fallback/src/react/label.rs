//! Labels at the start of a line: `Action:`, `**Action 2:**`, `ACTION：`.

use crate::head::{CallHead, NoMatch};

/// Reads a label and the blanks after it.
pub(super) fn label(head: &mut CallHead<'_>, words: &str) -> Result<(), NoMatch> {
    stars(head)?;
    head.literal(words)?;
    head.blanks()?;
    head.take_while(|c| c.is_ascii_digit())?;
    stars(head)?;
    head.blanks()?;
    if !head.maybe(":")? {
        head.literal("：")?;
    }
    stars(head)?;
    head.blanks()
}

/// Reads the label of an input, if it comes next.
pub(super) fn input(head: &mut CallHead<'_>) -> Result<bool, NoMatch> {
    let start = head.at();
    for words in ["Action Input", "ActionInput", "Action_Input"] {
        match label(head, words) {
            Ok(()) => return Ok(true),
            Err(NoMatch::Mismatch) => head.go_back(start),
            Err(more) => return Err(more),
        }
    }
    Ok(false)
}

fn stars(head: &mut CallHead<'_>) -> Result<(), NoMatch> {
    head.take_while(|c| c == '*').map(drop)
}
