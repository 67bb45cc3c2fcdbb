//! A call that is the whole answer: `{"name": .., "parameters": {..}}`, also in a list or a fence, or a list of calls in
//! Python.
//!
//! Only its shape identifies it as a call, and a user may ask a model for such JSON. So the name must be that of a
//! tool, it must come first, and the object must begin the answer or follow another call.

use super::python;
use crate::bodies::Objects;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

pub(super) fn begin(
    head: &mut CallHead<'_>,
    position: Position,
    tools: &Tools,
) -> Result<Match, NoMatch> {
    if !position.at_start && !position.after_call {
        return Err(NoMatch::Mismatch);
    }
    head.fence()?;
    let start = head.at();
    if python::list_name(head)?.is_some_and(|name| tools.knows(name)) {
        head.go_back(start);
        return Ok(Match::Call(Box::new(python::Calls::list(tools))));
    }
    head.literal("{")?;
    head.spaces()?;
    if head.key("type")? {
        head.literal("\"function\"")?;
        head.spaces()?;
        head.literal(",")?;
        head.spaces()?;
    }
    if !head.key("name")? {
        return Err(NoMatch::Mismatch);
    }
    head.literal("\"")?;
    let name = head.name()?;
    head.literal("\"")?;
    head.spaces()?;
    head.literal(",")?;
    head.spaces()?;
    if !tools.knows(name) || !(head.key("arguments")? || head.key("parameters")?) {
        return Err(NoMatch::Mismatch);
    }
    // Back to the bracket or brace: the body reads the whole value. A fence is not part of it.
    head.go_back(start);
    Ok(Match::Call(Box::new(Objects::new(tools))))
}
