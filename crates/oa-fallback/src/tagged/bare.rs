//! A call that is the whole answer: `{"name": .., "parameters": {..}}`, also in a list or a fence, or a list of calls in
//! Python.
//!
//! Only its shape identifies it as a call, and a user may ask a model for such JSON. So the name must be that of a
//! tool, it must come first, and the object must begin the answer or follow another call.

use super::python;
use crate::bodies::Objects;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::object;
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
    whole(head, tools)?;
    // Back to the bracket or brace: the body reads the whole value. A fence is not part of it.
    head.go_back(start);
    Ok(Match::Call(Box::new(Objects::new(tools))))
}

/// Reads the beginning of an object that is a call of a known tool, up to its arguments. It may also be the first in an
/// object with a list of calls.
pub(super) fn whole(head: &mut CallHead<'_>, tools: &Tools) -> Result<(), NoMatch> {
    let start = head.at();
    head.literal("{")?;
    head.spaces()?;
    let mut is_list = false;
    for list in object::LISTS {
        is_list = is_list || head.key(list)?;
    }
    if is_list {
        head.literal("[")?;
        head.spaces()?;
    } else {
        head.go_back(start);
    }
    let is_within = named(head, tools)?;
    head.literal(",")?;
    head.spaces()?;
    // Within `"function"`, parameters are those of the definition of a tool.
    match head.key("arguments")? || !is_within && head.key("parameters")? {
        true => Ok(()),
        false => Err(NoMatch::Mismatch),
    }
}

/// Reads the beginning of an object that is a call of a known tool, up to the end of the name. An id and a type may come
/// before the name. Returns true if the name is within `"function"`, as servers write calls.
pub(super) fn named(head: &mut CallHead<'_>, tools: &Tools) -> Result<bool, NoMatch> {
    head.literal("{")?;
    head.spaces()?;
    loop {
        if head.key("type")? {
            head.literal("\"function\"")?;
        } else if head.key("id")? || head.key("tool_call_id")? {
            head.maybe("\"")?;
            head.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))?;
            head.maybe("\"")?;
        } else {
            break;
        }
        head.spaces()?;
        head.literal(",")?;
        head.spaces()?;
    }
    let is_within = head.key("function")?;
    if is_within {
        head.literal("{")?;
        head.spaces()?;
    }
    if !head.key("name")? && !head.key("tool_name")? {
        return Err(NoMatch::Mismatch);
    }
    head.literal("\"")?;
    let name = head.name()?;
    head.literal("\"")?;
    head.spaces()?;
    if tools.knows(name) { Ok(is_within) } else { Err(NoMatch::Mismatch) }
}
