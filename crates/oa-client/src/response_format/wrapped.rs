//! Values that are no objects, as the only member of one.

#[cfg(feature = "schemars")]
use std::borrow::Cow;
#[cfg(feature = "schemars")]
use std::marker::PhantomData;

#[cfg(feature = "schemars")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// The member that holds a value which is no object itself.
pub(super) const MEMBER: &str = "value";

/// An object around a value that is no object itself.
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
