//! Schemas of values, with the schemas that they refer to.

use std::ptr;

use oa_types::resolve;
use serde_json::Value;

/// The number of schemas that are looked at for one value, so that a hostile schema cannot take long.
const MOST: usize = 64;

/// A schema, and the whole schema that its references point into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schema<'a> {
    root: &'a Value,
    pub(crate) own: &'a Value,
}

impl<'a> Schema<'a> {
    /// Creates the schema of a whole value.
    pub(crate) fn whole(root: &'a Value) -> Self {
        Self { root, own: root }
    }

    fn at(self, own: &'a Value) -> Self {
        Self { own, ..self }
    }

    /// Returns the schemas that apply together: itself, those that it refers to, and the parts of `allOf`.
    pub(crate) fn layers(self) -> Vec<&'a Value> {
        let mut layers = vec![self.own];
        self.collect(&mut layers, &["allOf"]);
        layers
    }

    /// Returns the layers, and then the schemas of all alternatives.
    fn parts(self) -> Parts<'a> {
        let mut all = self.layers();
        let layers = all.len();
        self.collect(&mut all, &["allOf", "anyOf", "oneOf"]);
        Parts { schema: self, all, layers }
    }

    /// Adds what the schemas refer to, and the parts that they list under these keywords.
    fn collect(self, found: &mut Vec<&'a Value>, lists: &[&str]) {
        let mut at = 0;
        while let Some(&schema) = found.get(at) {
            at += 1;
            let lists = lists.iter().filter_map(|word| schema.get(word)?.as_array());
            for part in self.target(schema).into_iter().chain(lists.flatten()) {
                let is_known = found.iter().any(|known| ptr::eq(*known, part));
                if found.len() < MOST && !is_known {
                    found.push(part);
                }
            }
        }
    }

    fn target(self, schema: &Value) -> Option<&'a Value> {
        resolve(self.root, schema.get("$ref")?.as_str()?)
    }

    /// Returns the alternatives that one of the layers lists.
    pub(crate) fn alternatives(self, layer: &'a Value) -> impl Iterator<Item = Self> {
        let lists = ["anyOf", "oneOf"].into_iter().filter_map(|word| layer.get(word)?.as_array());
        lists.flatten().map(move |part| self.at(part))
    }

    /// Returns a keyword of the schema, or else of one that applies with it.
    pub(crate) fn word(self, word: &str) -> Option<&'a Value> {
        self.layers().into_iter().find_map(|layer| layer.get(word))
    }

    /// Returns the schema that says the most: the target of a mere reference, otherwise the schema itself.
    pub(crate) fn named(self) -> Self {
        let says = ["anyOf", "const", "enum", "items", "oneOf", "properties", "type"];
        let says_anything = |layer: &&Value| says.iter().any(|word| layer.get(word).is_some());
        let mut telling = self.layers().into_iter().filter(says_anything);
        match (telling.next(), telling.next()) {
            (Some(only), None) => self.at(only),
            _ => self,
        }
    }

    /// Returns true if a list of allowed values has this text.
    pub(crate) fn lists(self, text: &str) -> bool {
        let values = |part: &'a Value| part.get("enum").and_then(Value::as_array);
        let parts = self.parts().all;
        parts.into_iter().filter_map(values).flatten().any(|value| value.as_str() == Some(text))
    }

    /// Returns the schemas of the members of an object.
    pub(crate) fn members(self) -> Members<'a> {
        Members(self.parts())
    }

    /// Returns the schemas of the items of a list, without an end.
    pub(crate) fn items(self) -> impl Iterator<Item = Option<Self>> {
        // Since draft 2020-12, `items` is about those after `prefixItems`; before, a list as `items` was about the first.
        let parts = self.parts();
        let has = |part: &&Value| part.get("items").or_else(|| part.get("prefixItems")).is_some();
        let of = parts.only(has).unwrap_or(&Value::Null);
        let (first, rest) = match of.get("items") {
            Some(Value::Array(first)) => (Some(first), None),
            rest => (of.get("prefixItems").and_then(Value::as_array), rest),
        };
        let first = first.into_iter().flatten().map(move |item| Some(self.at(item)));
        first.chain(std::iter::repeat(rest.map(|item| self.at(item))))
    }
}

/// The schemas of one value: those that apply together, and those of which some apply.
struct Parts<'a> {
    schema: Schema<'a>,
    all: Vec<&'a Value>,
    /// The number of those that apply together, which come first.
    layers: usize,
}

impl<'a> Parts<'a> {
    /// Returns the first layer that is wanted, or else the only alternative.
    fn only(&self, wanted: impl Fn(&&'a Value) -> bool) -> Option<&'a Value> {
        let (layers, others) = self.all.split_at(self.layers);
        if let Some(layer) = layers.iter().copied().find(&wanted) {
            return Some(layer);
        }
        let mut others = others.iter().copied().filter(&wanted);
        others.next().filter(|_| others.next().is_none())
    }
}

/// The schemas of the members of an object.
pub(crate) struct Members<'a>(Parts<'a>);

impl<'a> Members<'a> {
    /// Returns the schema of a member; `None` if it is unknown.
    pub(crate) fn get(&self, name: &str) -> Option<Schema<'a>> {
        let property = |part: &&'a Value| part.get("properties")?.get(name);
        if let Some(part) = self.0.only(|part| property(part).is_some()) {
            return property(&part).map(|of| self.0.schema.at(of));
        }
        // Alternatives that have it differ, or none has.
        let additional =
            |part: &&'a Value| part.get("additionalProperties").filter(|of| of.is_object());
        let part = self.0.only(|part| additional(part).is_some()).filter(|_| !self.has(name))?;
        additional(&part).map(|of| self.0.schema.at(of))
    }

    /// Returns true if a member of this name is described.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Returns the names of the members that are described, once each unless alternatives share them.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        let names = |part: &&'a Value| Some(part.get("properties")?.as_object()?.keys());
        self.0.all.iter().filter_map(names).flatten().map(String::as_str)
    }

    /// Returns the names of the members that the object itself describes, not its alternatives.
    pub(crate) fn own_names(&self) -> impl Iterator<Item = &'a str> {
        let names = |part: &&'a Value| Some(part.get("properties")?.as_object()?.keys());
        self.0.all[..self.0.layers].iter().filter_map(names).flatten().map(String::as_str)
    }

    /// Returns the names of the members that must not be missing.
    pub(crate) fn required(&self) -> impl Iterator<Item = &'a str> {
        let names = |part: &&'a Value| part.get("required")?.as_array();
        self.0.all[..self.0.layers].iter().filter_map(names).flatten().filter_map(Value::as_str)
    }
}
