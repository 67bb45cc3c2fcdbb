//! JSON Schemas without references.

use serde_json::{Map, Value};

use super::subschemas::{DEPTH, for_each};
use crate::reference::{merge_schema, resolve};

/// Keywords with a schema in which a change would mean something else, except that a reference is replaced.
const OTHERS: [&str; 4] = ["not", "propertyNames", "unevaluatedItems", "unevaluatedProperties"];

/// The number of schemas to which references may make a schema grow: each target is copied as often as it is used.
const MOST: usize = 2_000;

/// Replaces the references within a schema by their targets. Those of a recursive schema remain, but lead to definitions
/// with plain names, because some servers follow no others. A schema that nests too deeply remains as it is.
pub(super) fn inline(root: &mut Value) {
    let mut inliner = Inliner { root, named: Vec::new(), left: MOST };
    let Some(mut schema) = inliner.copy(root, &mut vec!["#".to_owned()], DEPTH) else { return };
    let mut definitions = Map::new();
    // Each may name more.
    while let Some(reference) = inliner.named.get(definitions.len()).cloned() {
        let copy = resolve(root, &reference)
            .and_then(|target| inliner.copy(target, &mut vec![reference.clone()], DEPTH));
        let Some(copy) = copy else { return };
        definitions.insert(name_of(definitions.len()), copy);
    }
    if let Value::Object(keywords) = &mut schema
        && !definitions.is_empty()
    {
        keywords.insert("$defs".to_owned(), definitions.into());
    }
    *root = schema;
}

fn name_of(definition: usize) -> String {
    format!("part_{}", definition + 1)
}

struct Inliner<'r> {
    root: &'r Value,
    /// The references that remain, each with a definition.
    named: Vec<String>,
    left: usize,
}

impl Inliner<'_> {
    /// Copies a schema, `within` the targets of these references; `None` if it nests too deeply.
    fn copy(&mut self, schema: &Value, within: &mut Vec<String>, depth: usize) -> Option<Value> {
        let Value::Object(keywords) = schema else { return Some(schema.clone()) };
        let depth = depth.checked_sub(1)?;
        self.left = self.left.saturating_sub(1);
        let mut copy = keywords.clone();
        let target = copy.get("$ref").and_then(Value::as_str).map(str::to_owned);
        let target =
            target.and_then(|reference| Some((resolve(self.root, &reference)?, reference)));
        // All that leads to them has been replaced.
        copy.retain(|word, _| !["$defs", "definitions"].contains(&&**word));
        let mut fits = true;
        let mut visit = |part: &mut Value| match self.copy(part, within, depth) {
            Some(copy) => *part = copy,
            None => fits = false,
        };
        for_each(&mut copy, &mut visit);
        for word in OTHERS {
            copy.get_mut(word).into_iter().for_each(&mut visit);
        }
        match target {
            _ if !fits => None,
            None => Some(copy.into()),
            Some((_, reference)) if within.contains(&reference) || self.left == 0 => {
                copy.insert("$ref".to_owned(), format!("#/$defs/{}", self.name(reference)).into());
                Some(copy.into())
            }
            Some((target, reference)) => {
                copy.retain(|word, _| word != "$ref");
                within.push(reference);
                let target = self.copy(target, within, depth);
                within.pop();
                Some(match target? {
                    Value::Object(mut target) => {
                        merge_schema(&mut target, copy);
                        target.into()
                    }
                    target => target,
                })
            }
        }
    }

    fn name(&mut self, reference: String) -> String {
        let known = self.named.iter().position(|known| *known == reference);
        name_of(known.unwrap_or_else(|| {
            self.named.push(reference);
            self.named.len() - 1
        }))
    }
}
