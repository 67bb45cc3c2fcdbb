mod alternatives;
mod unnamed;

use std::error::Error as StdError;
use std::{fmt, ptr};

use oa_types::is_nested_within;
use serde_json::{Map, Value};

use crate::bounds::{is_same, violated};
use crate::excerpt::Excerpt;
use crate::keywords::{Layers, additional, is_of, item_schemas, list, wants_integer, words};
use crate::members::{find, find_mut};

pub(crate) use self::unnamed::remove_unnamed;

/// The nesting depth to which arguments are checked; deeper values pass.
const DEPTH: usize = 64;
/// The number of schemas visited to complete the arguments of a call, and again to check them, so that a
/// hostile schema cannot take minutes. Arguments that need more are not completed, and do not match.
const WORK: usize = 100_000;
/// The number of schemas visited for each value of larger arguments.
const WORK_PER_VALUE: usize = 16;
/// The number of completion passes after which arguments count as never settling. Each pass fills in one level
/// of nested defaults.
const PASSES: usize = 16;
/// The number of problems reported in full.
const PROBLEMS: usize = 8;
/// The number of allowed values or known parameters listed in a message.
const NAMED: usize = 20;

/// Completes arguments using a JSON Schema, then checks them.
///
/// Completing fills in the `default` of missing `properties`, drops `null` for a property that is neither
/// required nor nullable (models write it for "not given"), turns a whole number written as `3.0` into `3`
/// where the type is `integer`, and reads an object or a list that is written as JSON in a string where the type
/// allows no string. A default that does not match its own schema is left out: `null` for a string only says that the
/// property may be missing. Completing repeats until nothing changes, so nested defaults are filled in too and
/// completing is idempotent: valid arguments pass again unchanged. Arguments that do not settle after 16 passes, are
/// too large to traverse, or are valid only as they are, are not completed at all.
///
/// Checking covers `type` (and OpenAPI's `nullable`), `enum`, `const`, `required`, `properties`,
/// `additionalProperties`, `items`, `prefixItems`, `allOf`, `anyOf`, `oneOf` (any match passes) and `$ref` within
/// the schema; ranges (`minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`) and lengths (`minLength`,
/// `maxLength`, `minItems`, `maxItems`), unless they exclude each other or the value is the schema's own `default`.
/// Keywords next to a `$ref` apply as well (JSON Schema 2020-12), and their `default` takes precedence over the
/// target's. Other keywords (patterns, formats) only inform the model; next to `patternProperties`, which members
/// are additional is unknown, so they pass. `null` in place of all arguments counts as an empty object.
///
/// # Errors
///
/// Lists the problems by path, for the model to fix.
///
/// # Examples
///
/// ```
/// use oa_tools::check_arguments;
/// use serde_json::json;
///
/// let schema = json!({
///     "type": "object",
///     "properties": { "city": { "type": "string" }, "days": { "type": "integer", "default": 3 } },
///     "required": ["city"],
/// });
/// let filled = check_arguments(&schema, json!({ "city": "Oslo" }))?;
/// assert_eq!(filled, json!({ "city": "Oslo", "days": 3 }));
///
/// let error = check_arguments(&schema, json!({ "city": 5 })).unwrap_err();
/// assert_eq!(error.to_string(), "`city`: expected string, found number 5");
/// # Ok::<(), oa_tools::ArgumentError>(())
/// ```
pub fn check_arguments(schema: &Value, mut input: Value) -> Result<Value, ArgumentError> {
    if input.is_null() {
        input = Value::Object(Map::new());
    }
    let mut check = Check::new(schema, &input);
    let completed = check.complete(schema, &input);
    let Err(error) = check.check(schema, &completed) else { return Ok(completed) };
    // The default of one part of the schema may not match another part.
    if completed != input && check.check(schema, &input).is_ok() { Ok(input) } else { Err(error) }
}

/// Completes arguments like [`check_arguments`] without checking them, for arguments that are still streaming.
#[must_use]
pub fn complete_arguments(schema: &Value, input: Value) -> Value {
    Check::new(schema, &input).complete(schema, &input)
}

/// Arguments that do not match a tool's schema.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ArgumentError {
    problems: Vec<ArgumentProblem>,
    /// All problems, including those beyond the reported ones.
    count: usize,
}

impl ArgumentError {
    /// Creates an error about the arguments as a whole.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self::at(String::new(), message.into())
    }

    pub(crate) fn at(path: String, message: String) -> Self {
        Self { problems: vec![ArgumentProblem { path, message }], count: 1 }
    }

    fn too_large() -> Self {
        Self::new("too large or too deeply nested to be checked")
    }

    #[cfg(feature = "jsonschema")]
    pub(crate) fn from_problems(problems: impl Iterator<Item = ArgumentProblem>) -> Option<Self> {
        let mut error = Self::default();
        for problem in problems {
            if error.problems.len() < PROBLEMS {
                error.problems.push(problem);
            }
            error.count += 1;
        }
        (!error.is_none()).then_some(error)
    }

    /// Returns the first eight problems, in schema order.
    #[must_use]
    pub fn problems(&self) -> &[ArgumentProblem] {
        &self.problems
    }

    fn is_none(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        match self.count - self.problems.len() {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl StdError for ArgumentError {}

/// A problem with one argument.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ArgumentProblem {
    /// The path of the argument, such as `city` or `stops[2].name`; empty for the arguments as a whole.
    pub path: String,
    /// The expected and the actual value.
    pub message: String,
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.path {
            "" => f.write_str(&self.message),
            path => write!(f, "`{path}`: {}", self.message),
        }
    }
}

/// A path into the arguments, formatted only when a problem is reported.
enum Path<'a> {
    Root,
    Item(&'a Self, usize),
    Member(&'a Self, &'a str),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
            Self::Member(Self::Root, name) => write!(f, "{}", Excerpt::new(name)),
            Self::Member(parent, name) => write!(f, "{parent}.{}", Excerpt::new(name)),
        }
    }
}

struct Check<'a> {
    root: &'a Value,
    budget: usize,
    /// The schemas that may still be visited.
    work: usize,
    /// The schemas that are being applied, each with the address of its value, outermost first.
    active: Vec<(*const Value, *const Value)>,
    /// True if the current pass has changed the arguments.
    has_written: bool,
    /// True while a value is checked that is not completed yet: members with a default may be missing, and `null` for
    /// a member that may be missing is none.
    is_incomplete: bool,
    /// True while a value is tried: only whether there is a problem matters, not which.
    is_attempt: bool,
    error: ArgumentError,
}

impl<'a> Check<'a> {
    fn new(root: &'a Value, input: &Value) -> Self {
        let error = ArgumentError::default();
        let budget = WORK.max(values(input).saturating_mul(WORK_PER_VALUE));
        Self {
            root,
            budget,
            work: budget,
            active: Vec::new(),
            has_written: false,
            is_incomplete: false,
            is_attempt: false,
            error,
        }
    }

    /// Completes a value until another pass would leave it unchanged.
    ///
    /// One pass is not idempotent: a default may contain defaults, and may make a value match an alternative
    /// that it did not match before. The result is either a value that a pass leaves unchanged or, if none is
    /// reached, the input itself; completing either again returns the same.
    fn complete(&mut self, schema: &'a Value, input: &Value) -> Value {
        let mut value = input.clone();
        // The value before a pass; before the first it is the input.
        let mut before: Option<Value> = None;
        for _ in 0..PASSES {
            self.has_written = false;
            self.fill(schema, &mut value, DEPTH);
            // Exhausted: the pass stopped anywhere, and what it wrote is not a result.
            if self.work == 0 {
                break;
            }
            // A `null` default may be dropped and filled in again: a write without a change.
            if !self.has_written || value == *before.as_ref().unwrap_or(input) {
                return value;
            }
            before = Some(value.clone());
        }
        input.clone()
    }

    /// Fills in defaults and converts unambiguous values, one level deep.
    fn fill(&mut self, schema: &'a Value, value: &mut Value, depth: usize) {
        for layer in self.layers(schema) {
            let Some(layer) = self.enter(layer, depth) else { return };
            self.fill_by(layer, value, depth);
        }
    }

    /// Fills in by the keywords of one schema, whose `depth` is at least 1: `enter` returns nothing at 0.
    fn fill_by(&mut self, schema: &'a Map<String, Value>, value: &mut Value, depth: usize) {
        for part in list(schema, "allOf") {
            self.fill(part, value, depth - 1);
        }
        for word in ["anyOf", "oneOf"] {
            let parts = list(schema, word);
            // An alternative that the value matches as it is comes before one that needs completing.
            let fitting = parts.iter().find(|part| self.fits(part, value, depth - 1));
            let fitting = fitting
                .or_else(|| parts.iter().find(|part| self.fits_completed(part, value, depth - 1)));
            match (fitting, &*value) {
                (Some(part), _) => self.fill(part, value, depth - 1),
                (None, Value::String(text)) => {
                    let types = |part| self.word(part, "type", depth - 1);
                    let types: Vec<_> = parts.iter().filter_map(types).collect();
                    let written = types.into_iter().find_map(|of| written_in(of, text, self.work));
                    self.replace(value, written);
                }
                (None, _) => {}
            }
        }
        match value {
            Value::Array(items) => {
                for (item, schema) in items.iter_mut().zip(item_schemas(schema)) {
                    self.fill(schema, item, depth - 1);
                }
            }
            Value::Number(number) => {
                // Above 2^53 a float no longer stands for one integer. It stays a float, and passes.
                let is_integer = find(schema, "type").is_some_and(wants_integer);
                if let Some(whole) = number.as_f64().filter(|_| is_integer && number.is_f64())
                    && whole.fract() == 0.0
                    && whole.abs() <= 2_f64.powi(53)
                {
                    *number = (whole as i64).into();
                    self.has_written = true;
                }
            }
            Value::Object(members) => self.fill_members(schema, members, depth),
            Value::String(text) => {
                let written = find(schema, "type").and_then(|of| written_in(of, text, self.work));
                self.replace(value, written);
            }
            _ => {}
        }
    }

    /// Replaces a value; the values within the new one are completed in the next pass.
    fn replace(&mut self, value: &mut Value, written: Option<Value>) {
        if let Some(written) = written {
            *value = written;
            self.has_written = true;
        }
    }

    fn fill_members(
        &mut self,
        schema: &'a Map<String, Value>,
        members: &mut Map<String, Value>,
        depth: usize,
    ) {
        let properties = find(schema, "properties").and_then(Value::as_object);
        if let Some(additional) = additional(schema).filter(|of| of.is_object()) {
            let is_known = |name: &str| properties.is_some_and(|of| find(of, name).is_some());
            for (_, member) in members.iter_mut().filter(|(name, _)| !is_known(name)) {
                self.fill(additional, member, depth - 1);
            }
        }
        for (name, property) in properties.into_iter().flatten() {
            // Before the defaults, so that one takes the place of a dropped `null` in the same pass.
            if find(members, name).is_some_and(Value::is_null)
                && self.is_null_missing(schema, name, property, depth)
            {
                members.shift_remove(name);
                self.has_written = true;
            }
            match find_mut(members, name) {
                Some(member) => self.fill(property, member, depth - 1),
                None => {
                    if let Some(default) = self.default_of(property, depth - 1) {
                        // Defaults within it follow in the next pass.
                        members.insert(name.clone(), default.clone());
                        self.has_written = true;
                    }
                }
            }
        }
    }

    /// Checks a value with a full budget, however much work was done before.
    fn check(&mut self, schema: &'a Value, value: &Value) -> Result<(), ArgumentError> {
        self.work = self.budget;
        self.value(schema, value, &Path::Root, DEPTH);
        let error = std::mem::take(&mut self.error);
        match error.is_none() {
            // What was not reached may be anything.
            true if self.work == 0 => Err(ArgumentError::too_large()),
            true => Ok(()),
            false => Err(error),
        }
    }

    fn value(&mut self, schema: &'a Value, value: &Value, path: &Path<'_>, depth: usize) {
        for layer in self.layers(schema) {
            // Here rather than in `enter`, for which a boolean has no keywords.
            if layer == &Value::Bool(false) {
                return self.problem(path, || "no value is allowed here".to_owned());
            }
            let Some(keywords) = self.enter(layer, depth) else { return };
            let pair = (ptr::from_ref(layer), ptr::from_ref(value));
            // Without this, a schema that leads back to itself would use up all work.
            let mut same_value = self.active.iter().rev().take_while(|active| active.1 == pair.1);
            if same_value.any(|active| *active == pair) {
                continue;
            }
            self.active.push(pair);
            self.value_by(keywords, value, path, depth);
            self.active.pop();
        }
    }

    fn value_by(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &Value,
        path: &Path<'_>,
        depth: usize,
    ) {
        // A value of the wrong type has only this problem: others would distract the model from it.
        if let Some(of) = find(schema, "type")
            && !is_of(of, value)
            && !(value.is_null() && find(schema, "nullable") == Some(&Value::Bool(true)))
        {
            return self
                .problem(path, || format!("expected {}, found {}", words(of), found(value)));
        }
        if let Some(only) = find(schema, "const")
            && !is_same(only, value)
        {
            return self.problem(path, || format!("expected {only}, found {}", found(value)));
        }
        let allowed = list(schema, "enum");
        if !allowed.is_empty() && !allowed.iter().any(|one| is_same(one, value)) {
            let names = || named(allowed.iter().map(ToString::to_string));
            return self
                .problem(path, || format!("expected one of {}, found {}", names(), found(value)));
        }
        if let Some(bound) = violated(schema, value) {
            self.problem(path, || format!("expected {bound}"));
        }
        for part in list(schema, "allOf") {
            self.value(part, value, path, depth - 1);
        }
        for word in ["anyOf", "oneOf"] {
            let parts = list(schema, word);
            if !parts.is_empty() && !parts.iter().any(|part| self.fits(part, value, depth - 1)) {
                return self.no_part_fits(parts, value, path, depth);
            }
        }
        match value {
            Value::Array(items) => {
                for (index, (item, schema)) in items.iter().zip(item_schemas(schema)).enumerate() {
                    self.value(schema, item, &Path::Item(path, index), depth - 1);
                }
            }
            Value::Object(members) => self.members(schema, members, path, depth),
            _ => {}
        }
    }

    fn members(
        &mut self,
        schema: &'a Map<String, Value>,
        members: &Map<String, Value>,
        path: &Path<'_>,
        depth: usize,
    ) {
        let properties = find(schema, "properties").and_then(Value::as_object);
        for name in list(schema, "required").iter().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                let property = properties.and_then(|of| find(of, name));
                // Completing would add it, so the value need not have it yet.
                if self.is_incomplete
                    && property.is_some_and(|of| self.default_of(of, depth - 1).is_some())
                {
                    continue;
                }
                let of = property.and_then(|of| self.word(of, "type", depth - 1));
                self.problem(&Path::Member(path, name), || match of {
                    Some(of) => format!("required, but missing; expected {}", words(of)),
                    None => "required, but missing".to_owned(),
                });
            }
        }
        for (name, member) in members {
            let path = Path::Member(path, name);
            match (properties.and_then(|of| find(of, name)), additional(schema)) {
                (Some(of), _)
                    if self.is_incomplete
                        && member.is_null()
                        && self.is_null_missing(schema, name, of, depth) => {}
                (Some(of), _) => self.value(of, member, &path, depth - 1),
                (None, Some(Value::Bool(false))) => self.problem(&path, || {
                    let names = properties.into_iter().flat_map(Map::keys);
                    let names = named(names.map(|name| format!("`{name}`")));
                    match &*names {
                        "" => "unknown parameter".to_owned(),
                        names => format!("unknown parameter; the parameters are {names}"),
                    }
                }),
                (None, Some(schema)) => self.value(schema, member, &path, depth - 1),
                (None, None) => {}
            }
        }
    }

    /// Returns true if `null` for a property stands for leaving it out.
    fn is_null_missing(
        &mut self,
        schema: &'a Map<String, Value>,
        name: &str,
        property: &'a Value,
        depth: usize,
    ) -> bool {
        !list(schema, "required").iter().any(|required| required == name)
            && !self.fits(property, &Value::Null, depth - 1)
    }

    /// Returns the default of a property, if it matches the property's own schema.
    fn default_of(&mut self, property: &'a Value, depth: usize) -> Option<&'a Value> {
        let default = self.word(property, "default", depth)?;
        self.fits_completed(property, default, depth).then_some(default)
    }

    /// Returns true if a value matches, or will once it is completed.
    fn fits_completed(&mut self, schema: &'a Value, value: &Value, depth: usize) -> bool {
        let before = std::mem::replace(&mut self.is_incomplete, true);
        let fits = self.fits(schema, value, depth);
        self.is_incomplete = before;
        fits
    }

    fn fits(&mut self, schema: &'a Value, value: &Value, depth: usize) -> bool {
        // Its problems are only counted, and those reported before are put back.
        let before =
            (std::mem::take(&mut self.error), std::mem::replace(&mut self.is_attempt, true));
        self.value(schema, value, &Path::Root, depth);
        self.is_attempt = before.1;
        std::mem::replace(&mut self.error, before.0).is_none()
    }

    /// Returns a keyword of a schema, or else of the schemas that it references.
    fn word(&mut self, schema: &'a Value, word: &str, depth: usize) -> Option<&'a Value> {
        self.layers(schema).find_map(|layer| find(self.enter(layer, depth)?, word))
    }

    /// Returns the keywords of a schema; `None` if it has none or the work budget is exhausted.
    fn enter(&mut self, schema: &'a Value, depth: usize) -> Option<&'a Map<String, Value>> {
        if depth == 0 {
            return None;
        }
        self.work = self.work.checked_sub(1)?;
        schema.as_object()
    }

    fn layers(&self, schema: &'a Value) -> Layers<'a> {
        Layers::new(self.root, schema)
    }

    fn problem(&mut self, path: &Path<'_>, message: impl FnOnce() -> String) {
        if self.error.problems.len() < PROBLEMS {
            let problem = ArgumentProblem { path: path.to_string(), message: message() };
            // Several schemas may report the same problem.
            if self.error.problems.contains(&problem) {
                return;
            }
            self.error.problems.push(problem);
        }
        self.error.count += 1;
    }
}

/// Returns the number of values in a value, itself included.
fn values(value: &Value) -> usize {
    let mut count = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        count += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    count
}

pub(crate) fn found(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("array of {}", items.len()),
        Value::Bool(value) => format!("boolean {value}"),
        Value::Null => "null".to_owned(),
        Value::Number(number) => format!("number {number}"),
        Value::Object(_) => "object".to_owned(),
        Value::String(text) => format!("string \"{}\"", Excerpt::new(text)),
    }
}

fn named(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.take(NAMED + 1).collect();
    if names.len() > NAMED {
        names[NAMED] = "and more".to_owned();
    }
    names.join(", ")
}

/// Reads the object or the list that a string contains as JSON, if this type allows it and no string. Models and servers
/// often write one in quotes (QUIRKS row 139).
fn written_in(of: &Value, text: &str, most: usize) -> Option<Value> {
    let is_begun = text.trim_start().starts_with(['[', '{']);
    // As a value, `{"":0},` takes a hundred times its length.
    let signs = || text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    if !is_begun || is_of(of, &Value::String(String::new())) || signs() > most {
        return None;
    }
    let written = text.parse().ok()?;
    (is_of(of, &written) && is_nested_within(&written, DEPTH / 2)).then_some(written)
}
