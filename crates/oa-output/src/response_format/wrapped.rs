//! Values that are not objects, wrapped in an object with one member.

#[cfg(feature = "schemars")]
use std::borrow::Cow;
#[cfg(feature = "schemars")]
use std::marker::PhantomData;

#[cfg(feature = "schemars")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// The name of that member.
pub(super) const MEMBER: &str = "value";

/// Wraps the schema of a value that is not an object.
#[cfg(feature = "schemars")]
pub(super) struct Wrapped<T>(PhantomData<T>);

#[cfg(feature = "schemars")]
impl<T: JsonSchema> JsonSchema for Wrapped<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{MEMBER} of {}", T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({ "type": "object", "properties": { MEMBER: value }, "required": [MEMBER] })
    }
}
