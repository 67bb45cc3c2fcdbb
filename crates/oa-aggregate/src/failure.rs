//! Errors that a server reports in place of an answer, or inside one.

use oa_json::held;
use oa_types::wire::ServerError;

use crate::decode::present;
use crate::form::Target;

/// How often an error is held while it is read: the value, a copy of it, and copies of its words.
const COPIES: usize = 4;

/// Reads what a member says of an error, unless it is absent or the code 0, which says that there is none.
/// One that does not fit says no more than that.
pub(crate) fn in_member(raw: &str, target: &Target<'_>) -> Option<ServerError> {
    if !held::fits(raw, target.room / COPIES) {
        return Some(too_large());
    }
    present(raw, &mut target.inside()).filter(|error| *error != 0).map(ServerError::from_value)
}

/// Reads the error of a choice as [`in_member`] does. It is counted: there may be many of them.
pub(crate) fn in_choice(raw: &str, target: &mut Target<'_>) -> Option<ServerError> {
    let error = in_member(raw, target)?;
    let bytes = size_of::<ServerError>() + COPIES * held::by_value(&error.raw);
    target.hold(bytes).then_some(error)
}

/// Returns true if a member says that there was an error.
pub(crate) fn is_in_member(raw: &str, target: &Target<'_>) -> bool {
    in_member(raw, target).is_some()
}

/// Reads a payload that is an error as a whole.
pub(crate) fn in_body(payload: &[u8], room: usize) -> ServerError {
    // What is not UTF-8 is no JSON, of which nothing but the text is kept.
    let fits = str::from_utf8(payload)
        .map_or(payload.len() <= room / COPIES, |text| held::fits(text, room / COPIES));
    if fits { ServerError::from_body(payload) } else { too_large() }
}

fn too_large() -> ServerError {
    ServerError::from_value("the server reported an error that is too large to be read".into())
}
