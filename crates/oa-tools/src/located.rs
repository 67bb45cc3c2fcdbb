//! Reading a value of a type from JSON, with the place of what does not fit.

use std::cell::RefCell;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value, map};

use crate::arguments::ArgumentError;
use crate::excerpt::Excerpt;

/// Reads a value of a type.
///
/// # Errors
///
/// If it is none. The error has the place, because the words of a type, such as "not a date", do not name it.
pub fn read_value<T: DeserializeOwned>(value: &Value) -> Result<T, ArgumentError> {
    T::deserialize(value).map_err(|error| {
        let message = error.to_string();
        let trail = RefCell::default();
        // Reads again, more slowly. If that fails differently, as where keys are numbers, there is no place.
        let path = match T::deserialize(Located { value, trail: &trail }) {
            Err(again) if again.to_string() == message => trail.take(),
            _ => String::new(),
        };
        ArgumentError::at(path, message)
    })
}

/// A value that leaves a trail where reading it fails: the path from here.
#[derive(Clone, Copy)]
struct Located<'de> {
    value: &'de Value,
    trail: &'de RefCell<String>,
}

impl<'de> Located<'de> {
    fn read<S: DeserializeSeed<'de>>(self, seed: S, place: &str) -> Result<S::Value, Error> {
        let read = seed.deserialize(self);
        let mut trail = self.trail.borrow_mut();
        if read.is_ok() {
            trail.clear(); // a part failed, but the type reads it in another way
        } else {
            let dot = if trail.is_empty() || trail.starts_with('[') { "" } else { "." };
            trail.insert_str(0, dot);
            trail.insert_str(0, place);
        }
        read
    }
}

impl<'de> Deserializer<'de> for Located<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Self { value, trail } = self;
        match value {
            Value::Array(items) => visitor.visit_seq(Items { left: items, next: 0, trail }),
            Value::Object(members) => {
                visitor.visit_map(Members { left: members.iter(), value: None, trail })
            }
            scalar => scalar.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Value::Object(members) = self.value else {
            return self.value.deserialize_enum(name, variants, visitor);
        };
        let members = Members { left: members.iter(), value: None, trail: self.trail };
        MapAccessDeserializer::new(members).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct Items<'de> {
    left: &'de [Value],
    next: usize,
    trail: &'de RefCell<String>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((value, left)) = self.left.split_first() else { return Ok(None) };
        let place = format!("[{}]", self.next);
        (self.left, self.next) = (left, self.next + 1);
        Located { value, trail: self.trail }.read(seed, &place).map(Some)
    }
}

struct Members<'de> {
    left: map::Iter<'de>,
    /// The value whose key was read.
    value: Option<(&'de str, &'de Value)>,
    trail: &'de RefCell<String>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((key, value)) = self.left.next() else { return Ok(None) };
        self.value = Some((key, value));
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (key, value) = self.value.take().unwrap_or(("", &Value::Null));
        Located { value, trail: self.trail }.read(seed, &Excerpt::new(key).to_string())
    }
}
