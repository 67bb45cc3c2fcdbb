use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::response_format::ResponseFormat;

/// The value of an answer so far.
///
/// Within one answer, the value only grows: strings get longer, lists and objects get more items at the end, and
/// complete values do not change (see [`PartialReader`](oa_json::PartialReader)). The exceptions are a server that
/// repeats the arguments of a call, and one that leaves thinking without its opening tag in the text, whose drafts are
/// taken for the value; the final answer is correct even then.
#[derive(Debug)]
pub struct Partial<'a, T> {
    object: &'a Value,
    value: &'a Value,
    format: &'a ResponseFormat,
    answer: u32,
    of: PhantomData<T>,
}

impl<'a, T> Partial<'a, T> {
    /// Returns the value in an incomplete answer, unwrapped from its object if the format wraps it.
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

    /// Deserializes the value so far. The type needs defaults or `Option` for members that may be missing. Each call
    /// copies the whole value, so call it sparingly on a long one.
    #[must_use]
    pub fn get(&self) -> Option<T> {
        serde_json::from_value(self.format.complete(self.object)).ok()
    }

    /// Returns the number of this answer within the turn, from 1. The value starts over when it changes.
    #[must_use]
    pub fn answer(&self) -> u32 {
        self.answer
    }
}
