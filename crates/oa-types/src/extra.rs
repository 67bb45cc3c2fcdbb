use std::fmt;
use std::ops::Deref;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Extra members of a JSON object that only its server understands. Derefs to a map.
///
/// Most objects have none. Until there is a member, it takes only the space of a pointer, so that types that contain it
/// stay cheap to move.
///
/// ```
/// use oa_types::Extra;
/// use serde_json::json;
///
/// let mut extra = Extra::default();
/// assert!(extra.is_empty());
/// extra.insert("signature".to_owned(), json!("s"));
/// assert_eq!(extra["signature"], "s");
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Extra(
    /// Never an empty map, so that two without members are equal and `is_empty` need not look inside.
    Option<Box<Map<String, Value>>>,
);

impl Extra {
    /// Adds a member, replacing one with the same name.
    pub fn insert(&mut self, name: String, value: Value) {
        self.0.get_or_insert_default().insert(name, value);
    }

    /// Returns true if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl Deref for Extra {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl From<Map<String, Value>> for Extra {
    fn from(members: Map<String, Value>) -> Self {
        Self((!members.is_empty()).then(|| Box::new(members)))
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
