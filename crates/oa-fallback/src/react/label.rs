//! Labels at the beginning of a line: `Action:`, `**Action 2:**`, `ACTION：`.

use crate::grammar::Stop;
use crate::head::Head;

/// Reads a label and the blanks behind it.
pub(super) fn label(head: &mut Head<'_>, words: &str) -> Result<(), Stop> {
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

/// Reads the label of an input, if it is there.
pub(super) fn input(head: &mut Head<'_>) -> Result<bool, Stop> {
    let start = head.at();
    for words in ["Action Input", "ActionInput", "Action_Input"] {
        match label(head, words) {
            Ok(()) => return Ok(true),
            Err(Stop::No) => head.go_back(start),
            Err(more) => return Err(more),
        }
    }
    Ok(false)
}

fn stars(head: &mut Head<'_>) -> Result<(), Stop> {
    head.take_while(|c| c == '*').map(drop)
}
