//! Errors that a server reports instead of an answer, or inside one.

use oa_json::held;
use oa_types::wire::ServerError;

use crate::allowance::Allowance;
use crate::value::present;

/// The number of copies of an error while it is read: the value, a copy of it, and copies of its words.
const COPIES: usize = 4;

/// Reads an error from a member, unless it is absent or the code 0, which means none. One too large has no details.
pub(crate) fn in_member(raw: &str, allowance: &Allowance) -> Option<ServerError> {
    if !held::fits(raw, allowance.room / COPIES) {
        return Some(too_large());
    }
    // Not counted, because a payload has only one such member.
    let mut allowance = *allowance;
    present(raw, &mut allowance).filter(|error| *error != 0).map(ServerError::from_value)
}

/// Reads the error of a choice like [`in_member`]. It is counted, because there may be many of them.
pub(crate) fn in_choice(raw: &str, allowance: &mut Allowance) -> Option<ServerError> {
    let error = in_member(raw, allowance)?;
    let bytes = size_of::<ServerError>() + COPIES * held::by_value(&error.raw);
    allowance.hold(bytes).then_some(error)
}

/// Reads a payload that is an error as a whole.
pub(crate) fn in_body(payload: &[u8], room: usize) -> ServerError {
    // Without valid UTF-8 there is no JSON, and only the text is kept.
    let fits = str::from_utf8(payload)
        .map_or(payload.len() <= room / COPIES, |text| held::fits(text, room / COPIES));
    if fits { ServerError::from_body(payload) } else { too_large() }
}

fn too_large() -> ServerError {
    ServerError::from_value("the server reported an error that is too large to be read".into())
}
