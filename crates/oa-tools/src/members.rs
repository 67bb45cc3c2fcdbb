use serde_json::{Map, Value};

/// Returns a member. Objects in schemas and arguments are small, and maps that preserve order hash every name they
/// look up, so comparing a few names is cheaper.
pub(crate) fn find<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if members.len() > FEW {
        return members.get(name);
    }
    members.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Returns a member mutably, like [`find`].
pub(crate) fn find_mut<'a>(
    members: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Value> {
    if members.len() > FEW {
        return members.get_mut(name);
    }
    members.iter_mut().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// The number of members up to which names are compared one by one.
const FEW: usize = 16;
