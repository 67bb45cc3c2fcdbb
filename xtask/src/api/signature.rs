//! Signatures with whole paths, in one form however they are laid out in the source.

use std::collections::{BTreeMap, BTreeSet};

use super::surface::Surface;
use crate::rust::item::{Code, Span};
use crate::rust::lexer::{Kind, Token};
use crate::rust::module::Target;

/// Where a signature stands.
#[derive(Clone)]
pub(crate) struct Scope<'s, 'a> {
    pub(crate) surface: &'s Surface<'a>,
    pub(crate) library: &'s str,
    pub(crate) module: usize,
    pub(crate) generics: BTreeSet<String>,
}

/// Names in signatures that are not of their crate, each with the first place of it.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Paths of other crates but std.
    pub(crate) foreign: BTreeMap<String, String>,
    /// Names that cannot be resolved.
    pub(crate) unknown: BTreeMap<String, String>,
}

/// std's names that need no import, by the path that an import would have.
const PRELUDE: &[&str] = &[
    "borrow::ToOwned",
    "boxed::Box",
    "clone::Clone",
    "cmp::Eq",
    "cmp::Ord",
    "cmp::PartialEq",
    "cmp::PartialOrd",
    "convert::AsMut",
    "convert::AsRef",
    "convert::From",
    "convert::Into",
    "convert::TryFrom",
    "convert::TryInto",
    "default::Default",
    "future::Future",
    "future::IntoFuture",
    "iter::DoubleEndedIterator",
    "iter::ExactSizeIterator",
    "iter::Extend",
    "iter::FromIterator",
    "iter::IntoIterator",
    "iter::Iterator",
    "marker::Copy",
    "marker::Send",
    "marker::Sized",
    "marker::Sync",
    "marker::Unpin",
    "ops::AsyncFn",
    "ops::AsyncFnMut",
    "ops::AsyncFnOnce",
    "ops::Drop",
    "ops::Fn",
    "ops::FnMut",
    "ops::FnOnce",
    "option::Option",
    "result::Result",
    "string::String",
    "string::ToString",
    "vec::Vec",
];

/// Traits that only a derive names without an import.
const DERIVED: &[(&str, &str)] = &[("Debug", "std::fmt::Debug"), ("Hash", "std::hash::Hash")];

/// Paths of which another is meant.
const ALIASES: &[(&str, &str)] = &[
    ("serde::de::Deserialize", "serde::Deserialize"),
    ("serde::ser::Serialize", "serde::Serialize"),
];

const PRIMITIVES: &[&str] = &[
    "bool", "char", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "str", "u128", "u16",
    "u32", "u64", "u8", "usize",
];

const KEYWORDS: &[&str] = &[
    "Self", "as", "async", "const", "dyn", "else", "enum", "extern", "false", "fn", "for", "if",
    "impl", "in", "move", "mut", "pub", "ref", "static", "struct", "trait", "true", "type",
    "union", "unsafe", "use", "where", "_",
];

impl Scope<'_, '_> {
    /// Adds the parameters of `<..>`, if one opens at `at`.
    pub(crate) fn with_generics(&self, code: &Code<'_>, at: usize) -> Self {
        let mut scope = self.clone();
        if let Some(end) = angle_end(code, at) {
            for part in split(code, at + 1..end) {
                let name = if code.is(part.start, "const") { part.start + 1 } else { part.start };
                scope.generics.extend(code.ident(name).map(str::to_owned));
            }
        }
        scope
    }

    /// Prints tokens. `place` is recorded with noted names.
    pub(crate) fn print(
        &self,
        code: &Code<'_>,
        span: Span,
        place: &str,
        names: &mut Names,
    ) -> String {
        // Token by token: what does not belong to the signature is skipped, paths become whole, and spaces
        // depend only on the words, so that the layout of the source leaves no trace.
        let mut words: Vec<String> = Vec::new();
        let mut out = String::new();
        let mut at = span.start;
        while at < span.end {
            let token = &code.tokens[at];
            let is_last = |at: usize| at + 1 >= span.end;
            if is_doc(token) {
                at += 1;
                continue;
            }
            // Of a field of a variant.
            if token.is("#") && code.is(at + 1, "[") {
                at = code.close(at + 1).unwrap_or(at + 1) + 1;
                continue;
            }
            // Where rustfmt breaks lines it adds commas; `(T,)` has its own.
            if token.is(",")
                && (is_last(at)
                    || (is_closing(&code.tokens[at + 1]) && code.line(at + 1) > token.line))
            {
                at += 1;
                continue;
            }
            // `mut` of a parameter is not part of the signature.
            let opens = at > span.start && (code.is(at - 1, "(") || code.is(at - 1, ","));
            if token.is("mut") && opens {
                at += 1;
                continue;
            }
            let (word, next) = match token.kind {
                Kind::Ident => self.word(code, at, span.end, place, names),
                _ => (token.text.to_owned(), at + 1),
            };
            if words.last().is_some_and(|before| is_spaced(before, &word)) {
                out.push(' ');
            }
            out.push_str(&word);
            words.push(word);
            at = next;
        }
        out
    }

    /// Prints the path that begins here, and returns where it ends.
    fn word(
        &self,
        code: &Code<'_>,
        start: usize,
        end: usize,
        place: &str,
        names: &mut Names,
    ) -> (String, usize) {
        let mut path = vec![code.tokens[start].text.to_owned()];
        let mut at = start + 1;
        while at + 1 < end && code.is(at, "::") && code.ident(at + 1).is_some() {
            path.push(code.tokens[at + 1].text.to_owned());
            at += 2;
        }
        let written = path.join("::");
        let goes_on = start > 0 && (code.is(start - 1, "::") || code.is(start - 1, "."));
        // `name: Type` and `Item = Type` are no paths; `where Type: Bound` is one.
        let is_bound = || {
            let library = self.surface.libraries.get(self.library);
            let is_type = path[0].starts_with(char::is_uppercase);
            is_type && library.is_some_and(|of| of.code.resolve(self.module, &path).is_some())
        };
        let is_label = path.len() == 1 && (code.is(at, "=") || (code.is(at, ":") && !is_bound()));
        let is_own = self.generics.contains(&path[0])
            || (KEYWORDS.contains(&path[0].as_str()) && path[0] != "crate")
            || (path.len() == 1 && path[0] == "self");
        if goes_on || is_label || is_own {
            return (written, at);
        }
        (self.path(&path, place, names), at)
    }

    /// The whole path of what a path names: from the crate on, without the crate's name where it is this one.
    pub(crate) fn path(&self, path: &[String], place: &str, names: &mut Names) -> String {
        let written = path.join("::");
        // Before any import: `use std::str` is about the module.
        if PRIMITIVES.contains(&&*written) {
            return written;
        }
        let Some(library) = self.surface.libraries.get(self.library) else { return written };
        match library.code.resolve(self.module, path) {
            Some(Target::Item { module, name }) => {
                let public = library.paths.get(&(module, name.clone()));
                public.cloned().unwrap_or_else(|| format!("crate::{name}"))
            }
            Some(Target::Foreign(path)) => self.foreign(&path, place, names),
            Some(Target::Module(_)) => written,
            None if path.len() > 1 => self.foreign(path, place, names),
            None => {
                let is_known = |name: &str| name.rsplit("::").next() == Some(&*written);
                if !PRELUDE.iter().any(|name| is_known(name)) {
                    names.unknown.entry(written.clone()).or_insert_with(|| place.to_owned());
                }
                written
            }
        }
    }

    /// The path of a trait that a derive names.
    pub(crate) fn derived(&self, path: &[String], place: &str, names: &mut Names) -> String {
        let std = DERIVED.iter().find(|(name, _)| path.len() == 1 && path[0] == *name);
        match std {
            Some((_, whole)) => (*whole).to_owned(),
            None => self.path(path, place, names),
        }
    }

    fn foreign(&self, path: &[String], place: &str, names: &mut Names) -> String {
        let path = self.surface.canonical(path);
        let (first, rest) = path.split_once("::").unwrap_or((&path, ""));
        if matches!(first, "alloc" | "core" | "std") {
            if PRELUDE.contains(&rest) {
                return rest.rsplit("::").next().unwrap_or(rest).to_owned();
            }
            return format!("std::{rest}");
        }
        if first == self.library {
            return rest.to_owned();
        }
        let alias = ALIASES.iter().find(|(other, _)| *other == path);
        let path = alias.map_or_else(|| path.clone(), |(_, main)| (*main).to_owned());
        names.foreign.entry(path.clone()).or_insert_with(|| place.to_owned());
        path
    }
}

fn is_doc(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::InnerDoc | Kind::OuterDoc)
}

fn is_closing(token: &Token<'_>) -> bool {
    [")", "]", "}", ">"].iter().any(|closing| token.is(closing))
}

fn is_spaced(before: &str, after: &str) -> bool {
    let is_name = |word: &str| {
        word.ends_with(|c: char| c.is_alphanumeric() || c == '_') && !word.starts_with('\'')
    };
    match (before, after) {
        (_, "," | ";" | "." | ")" | "]" | ">" | ":" | "::") => false,
        ("(" | "[" | "<" | "&" | "::" | "!" | "#" | "." | "*" | "?", _) => false,
        ("for" | "impl" | "fn", "<") | (_, "<") => false,
        (">", "(") => false,
        (word, "(" | "!") if is_name(word) && !KEYWORDS.contains(&word) => false,
        ("fn", "(") => false,
        _ => true,
    }
}

/// The index of the `>` that closes the `<` at `at`.
pub(crate) fn angle_end(code: &Code<'_>, at: usize) -> Option<usize> {
    if !code.is(at, "<") {
        return None;
    }
    let mut depth = 0;
    let mut at = at;
    while at < code.tokens.len() {
        if code.is(at, "<") {
            depth += 1;
        } else if code.is(at, ">") {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
        at = code.close(at).unwrap_or(at) + 1;
    }
    None
}

/// The parts of a list between commas that stand outside of brackets of all kinds.
pub(crate) fn split(code: &Code<'_>, span: Span) -> Vec<Span> {
    let mut parts = Vec::new();
    let mut start = span.start;
    let mut at = span.start;
    while at < span.end {
        if code.is(at, ",") {
            parts.push(start..at);
            start = at + 1;
        }
        at = angle_end(code, at)
            .filter(|end| *end < span.end)
            .or_else(|| code.close(at))
            .unwrap_or(at)
            + 1;
    }
    if start < span.end {
        parts.push(start..span.end);
    }
    parts
}
