use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::WRAP;

/// An object around a value that is no object itself.
pub(super) struct Wrapped<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Wrapped<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{WRAP} of {}", T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({ "type": "object", "properties": { WRAP: value }, "required": [WRAP] })
    }
}
