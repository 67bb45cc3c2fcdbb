use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::response_format::ResponseFormat;

/// The part of an answer that has arrived.
///
/// Within one answer values only grow: texts get longer, lists and objects get more items at the end, and
/// complete values do not change (see [`PartialReader`](oa_json::PartialReader)). A server that repeats the
/// arguments of a call may break this; the final answer is right anyway.
#[derive(Debug)]
pub struct Partial<'a, T> {
    object: &'a Value,
    value: &'a Value,
    format: &'a ResponseFormat,
    answer: u32,
    of: PhantomData<T>,
}

impl<'a, T> Partial<'a, T> {
    /// Returns the wanted part of an incomplete answer: of an object and the value in it.
    #[must_use]
    pub fn new(
        object: &'a Value,
        value: &'a Value,
        format: &'a ResponseFormat,
        answer: u32,
    ) -> Self {
        Self { object, value, format, answer, of: PhantomData }
    }
}

impl<T: DeserializeOwned> Partial<'_, T> {
    /// Returns the value so far.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.value
    }

    /// Deserializes the value so far; the type needs defaults or options for missing members. This copies the
    /// whole value: call it sparingly on a long one.
    #[must_use]
    pub fn get(&self) -> Option<T> {
        serde_json::from_value(self.format.complete(self.object)).ok()
    }

    /// Returns the number of this answer in the turn, counted from 1. When it changes, the value starts over.
    #[must_use]
    pub fn answer(&self) -> u32 {
        self.answer
    }
}
