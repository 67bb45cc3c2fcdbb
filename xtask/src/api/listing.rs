//! The list of a surface: each item with its fields, methods and implementations.

use std::collections::{BTreeMap, BTreeSet};

use super::signature::{Names, Scope, angle_end, split};
use super::surface::{Export, Exported, Library, Surface, conditions, is_attribute, is_hidden};
use crate::rust::item::{Code, Item, ItemKind, Span, Visibility};
use crate::rust::module::Target;

/// Lists the crates that `root` exports, and notes what their signatures name of others.
pub(crate) fn list(surface: &Surface<'_>, root: &str) -> (String, Names) {
    let mut names = Names::default();
    let mut out = String::new();
    let listed = surface.exported_by(root);
    let others = listed.iter().filter(|name| **name != root);
    for name in std::iter::once(&root).chain(others) {
        let Some(library) = surface.libraries.get(*name) else { continue };
        let lister = Lister { surface, library, name };
        out.push_str(&format!("\n# {name}\n"));
        let mut was_block = true;
        for block in lister.blocks(&mut names) {
            let is_block = block.len() > 1;
            if is_block || was_block {
                out.push('\n');
            }
            was_block = is_block;
            for line in block {
                out.push_str(&line);
                out.push('\n');
            }
        }
    }
    // Listed items belong to the workspace.
    names.foreign.retain(|path, _| !listed.contains(path.split("::").next().unwrap_or_default()));
    (out, names)
}

struct Lister<'s, 'a> {
    surface: &'s Surface<'a>,
    library: &'s Library<'a>,
    name: &'s str,
}

/// Lines under an item: first those of its own, then by implementation.
#[derive(Default)]
struct Members {
    own: Vec<String>,
    /// Methods by the head of their `impl`; those without one first.
    methods: BTreeMap<String, BTreeSet<String>>,
    /// Traits with nothing more to say, by condition.
    plain: BTreeMap<String, BTreeSet<String>>,
    traits: BTreeSet<String>,
}

impl<'a> Lister<'_, 'a> {
    fn blocks(&self, names: &mut Names) -> Vec<Vec<String>> {
        let mut members = self.implementations(names);
        let mut blocks = Vec::new();
        for export in &self.library.exports {
            let cfg = condition(&export.cfg);
            match &export.of {
                Exported::Foreign(of) => {
                    let of: Vec<String> = of.split("::").map(str::to_owned).collect();
                    let path = self.surface.canonical(&of);
                    names.foreign.entry(path.clone()).or_insert_with(|| export.path.clone());
                    let last = export.path.rsplit("::").next().unwrap_or_default();
                    let alias =
                        if path.ends_with(&format!("::{last}")) && !export.path.contains("::") {
                            String::new()
                        } else {
                            format!(" as {}", export.path)
                        };
                    blocks.push(vec![format!("{cfg}use {path}{alias}")]);
                }
                Exported::Module => blocks.push(vec![format!("{cfg}mod {}", export.path)]),
                Exported::Item { module, item } => {
                    let facts = &self.library.code.modules[*module].items[*item];
                    let key = (*module, facts.name.clone());
                    let main = self.library.paths.get(&key);
                    if main != Some(&export.path) {
                        let main = main.map_or("", String::as_str);
                        blocks.push(vec![format!("{cfg}use {main} as {}", export.path)]);
                        continue;
                    }
                    let mut of = Members::default();
                    let head = self.item(export, *module, facts, &mut of, names);
                    if is_type(facts.kind)
                        && let Some(found) = members.remove(&key)
                    {
                        of.methods = found.methods;
                        of.plain = found.plain;
                        of.traits = found.traits;
                    }
                    let mut block = vec![format!("{cfg}{head}")];
                    block.extend(of.lines());
                    blocks.push(block);
                }
            }
        }
        blocks
    }

    fn scope(&self, module: usize) -> Scope<'_, 'a> {
        Scope { surface: self.surface, library: self.name, module, generics: BTreeSet::new() }
    }

    /// Prints an item's head, and adds its fields, variants and methods.
    fn item(
        &self,
        export: &Export,
        module: usize,
        item: &Item,
        of: &mut Members,
        names: &mut Names,
    ) -> String {
        let code = self.library.file(module);
        // The compiler dictates its signature, and programs cannot call it.
        let is_attribute_macro =
            |attribute: &Span| is_attribute(code, attribute, &["proc_macro_attribute"]);
        if item.attributes.iter().any(is_attribute_macro) {
            return format!("macro #[{}]", export.path);
        }
        let place = format!("{}::{}", self.name, export.path);
        let Some(name_at) = name_at(code, item) else {
            return format!("macro {}!", export.path);
        };
        let scope = self.scope(module).with_generics(code, name_at + 1);
        let keywords = item.head.start..name_at;
        let keywords =
            code.tokens[keywords].iter().map(|token| token.text).collect::<Vec<_>>().join(" ");
        let mut print = |span: Span| scope.print(code, span, &place, names);
        let marks = marks(code, item);
        let body = item.body.clone().unwrap_or(0..0);
        let rest = match item.kind {
            ItemKind::Const | ItemKind::Static => {
                let value = code.find(name_at..item.head.end, |token| token.is("="));
                print(name_at + 1..value.unwrap_or(item.head.end))
            }
            ItemKind::Struct | ItemKind::Union => {
                let generics = angle_end(code, name_at + 1).map_or(name_at + 1, |end| end + 1);
                let mut rest = print(name_at + 1..generics);
                let mut where_at = generics;
                if code.is(generics, "(") {
                    let fields = split(code, code.inside(generics)).into_iter().map(|field| {
                        let (attributes, field) = without_attributes(code, field);
                        match field_type(code, &field) {
                            Some(span) if !hides(code, &attributes) => print(span),
                            _ => "_".to_owned(),
                        }
                    });
                    rest = format!("{rest}({})", fields.collect::<Vec<_>>().join(", "));
                    where_at = code.close(generics).map_or(generics, |close| close + 1);
                }
                let clause = print(where_at..item.head.end);
                let mut is_open = true;
                for field in split(code, body) {
                    let (attributes, field) = without_attributes(code, field);
                    match field_type(code, &field) {
                        Some(span) if !hides(code, &attributes) => of.own.push(format!(
                            "{}{}",
                            condition(&conditions(code, &attributes)),
                            print(span)
                        )),
                        _ => is_open = field.is_empty() && is_open,
                    }
                }
                let space = if clause.is_empty() { "" } else { " " };
                format!("{rest}{space}{clause}{}", if is_open { "" } else { " { .. }" })
            }
            ItemKind::Enum => {
                for variant in split(code, body) {
                    let (attributes, variant) = without_attributes(code, variant);
                    if variant.is_empty() || hides(code, &attributes) {
                        continue;
                    }
                    let name = code.tokens[variant.start].text;
                    let end =
                        code.find(variant.clone(), |token| token.is("=")).unwrap_or(variant.end);
                    let content = print(variant.start + 1..end);
                    let space = if content.starts_with('{') { " " } else { "" };
                    let cfg = condition(&conditions(code, &attributes));
                    of.own.push(format!(
                        "{cfg}{}{name}{space}{content}",
                        exhaustive(code, &attributes)
                    ));
                }
                print(name_at + 1..item.head.end)
            }
            ItemKind::Trait => {
                let head = print(name_at + 1..item.head.end);
                for member in code.items(body) {
                    let place = format!("{place}::{}", member.name);
                    of.own.extend(self.member(&scope, code, &member, &place, names));
                }
                head
            }
            _ => print(name_at + 1..item.head.end),
        };
        let space =
            if rest.starts_with(['(', '<', ':', ' ']) || rest.is_empty() { "" } else { " " };
        format!("{marks}{keywords} {}{space}{rest}", export.path)
    }

    /// Prints a member of a trait or an implementation.
    fn member(
        &self,
        scope: &Scope<'_, 'a>,
        code: &Code<'_>,
        item: &Item,
        place: &str,
        names: &mut Names,
    ) -> Option<String> {
        if is_hidden(code, item) {
            return None;
        }
        let name_at = name_at(code, item)?;
        let scope = scope.with_generics(code, name_at + 1);
        let end = match item.kind {
            ItemKind::Const => {
                code.find(name_at..item.head.end, |token| token.is("=")).unwrap_or(item.head.end)
            }
            _ => item.head.end,
        };
        let keywords = code.tokens[item.head.start..name_at].iter().map(|token| token.text);
        let keywords = keywords.collect::<Vec<_>>().join(" ");
        let rest = scope.print(code, name_at + 1..end, place, names);
        let space =
            if rest.starts_with(['(', '<', ':', ' ']) || rest.is_empty() { "" } else { " " };
        let provided =
            if item.kind == ItemKind::Fn && item.body.is_some() { " { .. }" } else { "" };
        let cfg = condition(&conditions(code, &item.attributes));
        Some(format!("{cfg}{keywords} {}{space}{rest}{provided}", item.name))
    }

    /// All implementations of the crate, by the item under which they are listed.
    fn implementations(&self, names: &mut Names) -> BTreeMap<(usize, String), Members> {
        let mut members: BTreeMap<(usize, String), Members> = BTreeMap::new();
        for (module, facts) in self.library.code.modules.iter().enumerate() {
            let code = self.library.file(module);
            for item in &facts.items {
                if item.kind == ItemKind::Impl {
                    self.implementation(module, code, item, &mut members, names);
                } else if is_type(item.kind)
                    && self.library.paths.contains_key(&(module, item.name.clone()))
                {
                    let of = members.entry((module, item.name.clone())).or_default();
                    self.derives(module, code, item, of, names);
                }
            }
        }
        members
    }

    fn derives(
        &self,
        module: usize,
        code: &Code<'_>,
        item: &Item,
        of: &mut Members,
        names: &mut Names,
    ) {
        let place = format!("{}::{}", self.name, item.name);
        for attribute in &item.attributes {
            let inside = code.inside(attribute.start + 1);
            let derives = if code.is(attribute.start, "derive") {
                vec![(String::new(), inside)]
            } else if code.is(attribute.start, "cfg_attr") {
                let parts = split(code, inside);
                let cfg = parts.first().map(|cfg| {
                    code.tokens[cfg.clone()].iter().map(|t| t.text).collect::<Vec<_>>().join(" ")
                });
                let derives = parts.iter().skip(1).filter(|part| code.is(part.start, "derive"));
                let cfg = cfg.map_or(String::new(), |cfg| condition(&[cfg]));
                derives.map(|part| (cfg.clone(), code.inside(part.start + 1))).collect()
            } else {
                Vec::new()
            };
            for (cfg, list) in derives {
                for part in split(code, list) {
                    let path = code.tokens[part].iter().filter(|token| !token.is("::"));
                    let path: Vec<String> = path.map(|token| token.text.to_owned()).collect();
                    let path = self.scope(module).derived(&path, &place, names);
                    of.plain.entry(cfg.clone()).or_default().insert(path);
                }
            }
        }
    }

    fn implementation(
        &self,
        module: usize,
        code: &Code<'_>,
        item: &Item,
        members: &mut BTreeMap<(usize, String), Members>,
        names: &mut Names,
    ) {
        // First the parts of the head are found, then the item under which the implementation is listed, then
        // its condition without those of that item, and at last its lines: methods of an inherent one,
        // constants and types of a trait.
        let Some(impl_at) = item.head.clone().find(|at| code.is(*at, "impl")) else { return };
        let scope = self.scope(module).with_generics(code, impl_at + 1);
        let generics = angle_end(code, impl_at + 1).map_or(impl_at + 1, |end| end + 1);
        let find = |from: usize, word: &str| {
            let mut at = from;
            while at < item.head.end {
                // `for<'a>` in a bound is not the `for` of the implementation.
                if code.is(at, word) && !code.is(at + 1, "<") {
                    return Some(at);
                }
                at = angle_end(code, at).or_else(|| code.close(at)).unwrap_or(at) + 1;
            }
            None
        };
        let where_at = find(generics, "where").unwrap_or(item.head.end);
        let for_at = find(generics, "for").filter(|at| *at < where_at);
        let of_trait = for_at.map(|at| generics..at);
        let of_type = for_at.map_or(generics, |at| at + 1)..where_at;

        let own = self.named(&scope, code, of_type.clone());
        let of_ours = of_trait.clone().and_then(|span| self.named(&scope, code, span));
        // A trait that other crates cannot name does not concern them.
        if of_ours.as_ref().is_some_and(|key| !self.library.paths.contains_key(key)) {
            return;
        }
        let is_public = |key: &(usize, String)| self.library.paths.contains_key(key);
        let key = match (own, of_ours) {
            (Some(key), _) => Some(key).filter(is_public),
            // For a foreign type, or for any type: listed with the trait.
            (None, Some(key)) => Some(key),
            // `impl From<Ours> for Theirs` is listed with our type.
            (None, None) => of_trait.clone().and_then(|mut span| {
                span.find_map(|at| self.named(&scope, code, at..at + 1).filter(is_public))
            }),
        };
        let Some(key) = key else { return };
        let place = format!("{}::{}", self.name, key.1);
        let mut print = |span: Span| scope.print(code, span, &place, names);
        let known = self
            .library
            .exports
            .iter()
            .find(|export| Some(&export.path) == self.library.paths.get(&key));
        let mut cfg = self.library.cfg[module].clone();
        cfg.extend(conditions(code, &item.attributes));
        let cfg = condition(
            cfg.iter().filter(|cfg| !known.is_some_and(|export| export.cfg.contains(*cfg))),
        );
        let is_simple = generics == impl_at + 1
            && where_at == item.head.end
            && of_type.len() == 1
            && code.ident(of_type.start) == Some(key.1.as_str());
        let head = if is_simple && of_trait.is_none() && cfg.is_empty() {
            String::new()
        } else {
            print(impl_at..item.head.end)
        };
        let body = code.items(item.body.clone().unwrap_or(0..0));
        let Some(of_trait) = of_trait else {
            let public = body.iter().filter(|member| member.visibility == Visibility::Public);
            let lines = public.filter_map(|member| {
                let place = format!("{place}::{}", member.name);
                let line = self.member(&scope, code, member, &place, names)?;
                Some(line.strip_suffix(" { .. }").map_or_else(|| line.clone(), str::to_owned))
            });
            let lines: Vec<String> = lines.collect();
            if !lines.is_empty() {
                let group = members.entry(key).or_default().methods.entry(format!("{cfg}{head}"));
                group.or_default().extend(lines);
            }
            return;
        };
        let trait_name = print(of_trait);
        let is_data = |member: &&Item| matches!(member.kind, ItemKind::Const | ItemKind::Type);
        let data = body.iter().filter(is_data);
        let data: Vec<String> =
            data.filter_map(|member| self.member(&scope, code, member, &place, names)).collect();
        let of = members.entry(key).or_default();
        if is_simple && data.is_empty() {
            of.plain.entry(cfg).or_default().insert(trait_name);
            return;
        }
        let head = if is_simple { format!("impl {trait_name}") } else { head };
        let data =
            if data.is_empty() { String::new() } else { format!(" {{ {} }}", data.join("; ")) };
        of.traits.insert(format!("{cfg}{head}{data}"));
    }

    /// The item of this crate that a type or trait is, behind any references.
    fn named(&self, scope: &Scope<'_, 'a>, code: &Code<'_>, span: Span) -> Option<(usize, String)> {
        let mut at = span.start;
        while code.is(at, "&")
            || code.is(at, "mut")
            || code.is(at, "dyn")
            || code.tokens.get(at)?.text.starts_with('\'')
        {
            at += 1;
        }
        let mut path = vec![code.ident(at)?.to_owned()];
        while code.is(at + 1, "::") {
            path.push(code.ident(at + 2)?.to_owned());
            at += 2;
        }
        if scope.generics.contains(&path[0]) {
            return None;
        }
        match self.library.code.resolve(scope.module, &path)? {
            Target::Item { module, name } => Some((module, name)),
            Target::Foreign(_) | Target::Module(_) => None,
        }
    }
}

impl Members {
    fn lines(self) -> Vec<String> {
        let mut lines: Vec<String> = self.own.iter().map(|line| format!("    {line}")).collect();
        for (head, methods) in self.methods {
            let indent = if head.is_empty() { "    " } else { "        " };
            lines.extend((!head.is_empty()).then(|| format!("    {head}")));
            lines.extend(methods.iter().map(|method| format!("{indent}{method}")));
        }
        for (cfg, traits) in self.plain {
            let traits: Vec<String> = traits.into_iter().collect();
            lines.push(format!("    {cfg}impl {}", traits.join(" + ")));
        }
        lines.extend(self.traits.iter().map(|line| format!("    {line}")));
        lines
    }
}

fn is_type(kind: ItemKind) -> bool {
    matches!(kind, ItemKind::Enum | ItemKind::Struct | ItemKind::Trait | ItemKind::Union)
}

fn name_at(code: &Code<'_>, item: &Item) -> Option<usize> {
    if matches!(item.kind, ItemKind::MacroRules | ItemKind::MacroCall) {
        return None;
    }
    item.head.clone().find(|at| code.ident(*at) == Some(item.name.as_str()))
}

fn marks(code: &Code<'_>, item: &Item) -> String {
    let mut marks = exhaustive(code, &item.attributes).to_owned();
    if item.attributes.iter().any(|attribute| code.is(attribute.start, "deprecated")) {
        marks.push_str("#[deprecated] ");
    }
    marks
}

fn exhaustive(code: &Code<'_>, attributes: &[Span]) -> &'static str {
    let is = |attribute: &Span| is_attribute(code, attribute, &["non_exhaustive"]);
    if attributes.iter().any(is) { "#[non_exhaustive] " } else { "" }
}

fn condition<'c>(cfg: impl IntoIterator<Item = &'c String>) -> String {
    let cfg: Vec<&str> = cfg.into_iter().map(String::as_str).collect();
    match cfg.as_slice() {
        [] => String::new(),
        [one] => format!("#[cfg({one})] "),
        all => format!("#[cfg(all({}))] ", all.join(", ")),
    }
}

fn hides(code: &Code<'_>, attributes: &[Span]) -> bool {
    attributes.iter().any(|attribute| is_attribute(code, attribute, &["doc", "(", "hidden", ")"]))
}

/// The attributes in front of a field or variant, and the rest.
fn without_attributes(code: &Code<'_>, span: Span) -> (Vec<Span>, Span) {
    let mut attributes = Vec::new();
    let mut at = span.start;
    while at < span.end {
        if code.is(at, "#") {
            attributes.push(code.inside(at + 1));
            at = code.close(at + 1).unwrap_or(at + 1) + 1;
        } else if code.ident(at).is_none() && code.tokens[at].text.starts_with("//") {
            at += 1;
        } else {
            break;
        }
    }
    (attributes, at..span.end)
}

/// A public field without its `pub`: `name: Type` or `Type`.
fn field_type(code: &Code<'_>, field: &Span) -> Option<Span> {
    (code.is(field.start, "pub") && !code.is(field.start + 1, "("))
        .then(|| field.start + 1..field.end)
}

#[cfg(test)]
mod tests;
