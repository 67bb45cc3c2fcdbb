//! Items of a file or module: names, visibility, attributes, and where their parts stand.

use super::lexer::{self, Kind, Token};

/// The tokens of a file without comments, and for each bracket its partner.
pub(crate) struct Code<'a> {
    pub(crate) tokens: Vec<Token<'a>>,
    /// For an opening bracket the index of the closing one, for a closing one that of the opening one, and for any
    /// other token its own.
    partner: Vec<usize>,
}

/// From the first to behind the last token.
pub(crate) type Span = std::ops::Range<usize>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ItemKind {
    Const,
    Enum,
    Fn,
    Impl,
    /// `name! { .. }`
    MacroCall,
    /// `macro_rules! name { .. }`
    MacroRules,
    Mod,
    Static,
    Struct,
    Trait,
    Type,
    Union,
    Use,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Visibility {
    Private,
    Public,
    /// `pub(..)`
    Restricted,
}

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) kind: ItemKind,
    /// Empty where the item has none.
    pub(crate) name: String,
    pub(crate) visibility: Visibility,
    /// The insides of `#[..]`.
    pub(crate) attributes: Vec<Span>,
    /// Without attributes, docs and visibility; up to the body, the `;` or the end.
    pub(crate) head: Span,
    /// The insides of the braces at the end, if it has them.
    pub(crate) body: Option<Span>,
    pub(crate) line: usize,
}

impl<'a> Code<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut tokens = lexer::tokens(text);
        tokens.retain(|token| token.kind != Kind::Comment);
        let mut partner: Vec<usize> = (0..tokens.len()).collect();
        let mut open = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            if token.kind != Kind::Punct {
                continue;
            }
            match token.text {
                "(" | "[" | "{" => open.push(at),
                ")" | "]" | "}" => {
                    if let Some(start) = open.pop() {
                        partner[start] = at;
                        partner[at] = start;
                    }
                }
                _ => {}
            }
        }
        Self { tokens, partner }
    }

    pub(crate) fn all(&self) -> Span {
        0..self.tokens.len()
    }

    pub(crate) fn is(&self, at: usize, text: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(text))
    }

    pub(crate) fn ident(&self, at: usize) -> Option<&'a str> {
        let token = self.tokens.get(at)?;
        (token.kind == Kind::Ident).then_some(token.text)
    }

    /// The closing bracket, if the token opens one.
    pub(crate) fn close(&self, at: usize) -> Option<usize> {
        let close = *self.partner.get(at)?;
        (close > at).then_some(close)
    }

    pub(crate) fn line(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(0, |token| token.line)
    }

    /// The insides of the bracket that opens at `at`.
    pub(crate) fn inside(&self, at: usize) -> Span {
        self.close(at).map_or(at..at, |close| at + 1..close)
    }

    /// The first token of the span, outside of brackets in it, of which `is` holds.
    pub(crate) fn find(&self, span: Span, is: impl Fn(&Token<'a>) -> bool) -> Option<usize> {
        let mut at = span.start;
        while at < span.end {
            if is(&self.tokens[at]) {
                return Some(at);
            }
            at = self.close(at).unwrap_or(at) + 1;
        }
        None
    }

    /// The items of a file, or of the inside of a module, trait or impl.
    pub(crate) fn items(&self, span: Span) -> Vec<Item> {
        let mut items = Vec::new();
        let mut at = span.start;
        while at < span.end {
            let (item, next) = self.item(at, span.end);
            items.extend(item);
            // Always forward, also over text that is no item.
            at = next.max(at + 1);
        }
        items
    }

    /// The attributes of the file itself: `#![..]` and `//!`.
    pub(crate) fn inner_attributes(&self, span: Span) -> Vec<Span> {
        let mut found = Vec::new();
        let mut at = span.start;
        while at < span.end {
            if self.is(at, "#") && self.is(at + 1, "!") && self.is(at + 2, "[") {
                found.push(self.inside(at + 2));
                at = self.close(at + 2).unwrap_or(at + 2) + 1;
            } else if self.tokens[at].kind == Kind::InnerDoc {
                at += 1;
            } else {
                break;
            }
        }
        found
    }

    fn item(&self, start: usize, end: usize) -> (Option<Item>, usize) {
        let mut at = start;
        let mut attributes = Vec::new();
        while at < end {
            let bracket = if self.is(at + 1, "!") { at + 2 } else { at + 1 };
            if matches!(self.tokens[at].kind, Kind::InnerDoc | Kind::OuterDoc) {
                at += 1;
            } else if self.is(at, "#") && self.is(bracket, "[") {
                if bracket == at + 1 {
                    attributes.push(self.inside(bracket));
                }
                at = self.close(bracket).unwrap_or(bracket) + 1;
            } else {
                break;
            }
        }
        let mut visibility = Visibility::Private;
        if self.is(at, "pub") {
            visibility = Visibility::Public;
            at += 1;
            if self.is(at, "(") {
                visibility = Visibility::Restricted;
                at = self.close(at).unwrap_or(at) + 1;
            }
        }
        let Some((kind, name_at)) = self.kind(at, end) else {
            return (None, at + 1);
        };
        let line = self.line(at);
        let name = name_at.and_then(|name| self.ident(name)).unwrap_or_default().to_owned();
        // Values may hold braces, and so may imports; what ends in braces has its body there.
        let by_semicolon =
            matches!(kind, ItemKind::Const | ItemKind::Static | ItemKind::Type | ItemKind::Use);
        let ends = |token: &Token<'_>| token.is(";") || (!by_semicolon && token.is("{"));
        let (head_end, body, next) = match kind {
            ItemKind::MacroCall | ItemKind::MacroRules => {
                let bracket = self.find(at..end, |token| {
                    token.kind == Kind::Punct && matches!(token.text, "(" | "[" | "{")
                });
                let bracket = bracket.unwrap_or_else(|| end.saturating_sub(1));
                let close = self.close(bracket).unwrap_or(bracket);
                let next = if self.is(close + 1, ";") { close + 2 } else { close + 1 };
                (bracket, Some(self.inside(bracket)), next)
            }
            _ => match self.find(at..end, ends) {
                Some(brace) if self.is(brace, "{") => {
                    let next = self.close(brace).unwrap_or(brace) + 1;
                    (brace, Some(self.inside(brace)), next)
                }
                Some(semicolon) => (semicolon, None, semicolon + 1),
                None => (end, None, end),
            },
        };
        let item = Item { kind, name, visibility, attributes, head: at..head_end, body, line };
        (Some(item), next)
    }

    /// The kind of the item whose keywords begin here, and where its name is.
    fn kind(&self, start: usize, end: usize) -> Option<(ItemKind, Option<usize>)> {
        let mut at = start;
        loop {
            if at >= end {
                return None;
            }
            let word = self.ident(at)?;
            let named = |kind| Some((kind, Some(at + 1)));
            match word {
                "const" if self.ident(at + 1).is_some_and(is_qualifier) => at += 1,
                "async" | "unsafe" | "default" | "auto" | "safe"
                    if self.ident(at + 1).is_some() =>
                {
                    at += 1;
                }
                "extern" => {
                    let abi = self.tokens.get(at + 1).is_some_and(|t| t.kind == Kind::Literal);
                    at += if abi { 2 } else { 1 };
                }
                "const" => return named(ItemKind::Const),
                "static" if self.is(at + 1, "mut") => {
                    return Some((ItemKind::Static, Some(at + 2)));
                }
                "static" => return named(ItemKind::Static),
                "enum" => return named(ItemKind::Enum),
                "fn" => return named(ItemKind::Fn),
                "impl" => return Some((ItemKind::Impl, None)),
                "mod" => return named(ItemKind::Mod),
                "struct" => return named(ItemKind::Struct),
                "trait" => return named(ItemKind::Trait),
                "type" => return named(ItemKind::Type),
                "union" if self.ident(at + 1).is_some() => return named(ItemKind::Union),
                "use" => return Some((ItemKind::Use, None)),
                "macro_rules" if self.is(at + 1, "!") => {
                    return Some((ItemKind::MacroRules, Some(at + 2)));
                }
                _ => return self.macro_call(at),
            }
        }
    }

    /// `name! ..` or `path::to::name! ..`
    fn macro_call(&self, start: usize) -> Option<(ItemKind, Option<usize>)> {
        let mut at = start;
        while self.ident(at).is_some() && self.is(at + 1, "::") {
            at += 2;
        }
        self.ident(at)?;
        self.is(at + 1, "!").then_some((ItemKind::MacroCall, Some(at)))
    }

    /// Returns whether the item is compiled for tests or doctests only.
    pub(crate) fn serves_tests(&self, item: &Item) -> bool {
        item.attributes.iter().any(|attribute| self.is_test_cfg(attribute.clone()))
    }

    /// Returns whether the insides of an attribute are a `cfg` that needs tests or doctests.
    pub(crate) fn is_test_cfg(&self, attribute: Span) -> bool {
        self.is(attribute.start, "cfg") && self.needs_test(self.inside(attribute.start + 1))
    }

    fn needs_test(&self, predicate: Span) -> bool {
        let Some(word) = self.ident(predicate.start) else { return false };
        let inside = self.inside(predicate.start + 1);
        match word {
            "test" | "doctest" => true,
            "all" => self.split(inside, ",").into_iter().any(|part| self.needs_test(part)),
            "any" => {
                let parts = self.split(inside, ",");
                !parts.is_empty() && parts.into_iter().all(|part| self.needs_test(part))
            }
            _ => false,
        }
    }

    /// The parts of a span between separators that stand outside of brackets. `<` and `>` are no brackets here.
    pub(crate) fn split(&self, span: Span, separator: &str) -> Vec<Span> {
        let mut parts = Vec::new();
        let mut start = span.start;
        while let Some(at) = self.find(start..span.end, |token| token.is(separator)) {
            parts.push(start..at);
            start = at + 1;
        }
        if start < span.end {
            parts.push(start..span.end);
        }
        parts
    }
}

fn is_qualifier(word: &str) -> bool {
    matches!(word, "async" | "extern" | "fn" | "unsafe")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints items as `visibility kind name | head | body`.
    fn list(text: &str) -> Vec<String> {
        let code = Code::new(text);
        let join = |span: Span| {
            let words: Vec<_> = code.tokens[span].iter().map(|token| token.text).collect();
            words.join(" ")
        };
        let items = code.items(code.all());
        items
            .iter()
            .map(|item| {
                let body = item.body.clone().map_or_else(|| "-".to_owned(), &join);
                let (head, test) = (join(item.head.clone()), code.serves_tests(item));
                let test = if test { " test" } else { "" };
                format!(
                    "{:?} {:?} {}{test} | {head} | {body}",
                    item.visibility, item.kind, item.name
                )
            })
            .collect()
    }

    #[test]
    fn every_kind_of_item_is_known() {
        assert_eq!(
            list(
                "#![allow(x)]\n//! Docs.\n/// A.\n#[derive(B)]\npub struct A<const N: usize> where B: C { d: E }\n\
                 pub(crate) struct F(G);\nenum H { I }\npub async unsafe fn j(k: L) -> M { n; }\n\
                 const fn o() {}\npub const P: Q = R { s };\nuse t::{u, v};\npub mod w;\nmod x { fn y() {} }\n\
                 impl<T> Z for [u8; 3] { type A = B; }\nmacro_rules! aa { () => {} }\nbb! { c }\ndd::ee!(f);\n\
                 pub trait G: H { fn i(); }\ntype J = K;\nstatic L: M = N;\nextern \"C\" fn o() {}\n"
            ),
            [
                "Public Struct A | struct A < const N : usize > where B : C | d : E",
                "Restricted Struct F | struct F ( G ) | -",
                "Private Enum H | enum H | I",
                "Public Fn j | async unsafe fn j ( k : L ) -> M | n ;",
                "Private Fn o | const fn o ( ) | ",
                "Public Const P | const P : Q = R { s } | -",
                "Private Use  | use t :: { u , v } | -",
                "Public Mod w | mod w | -",
                "Private Mod x | mod x | fn y ( ) { }",
                "Private Impl  | impl < T > Z for [ u8 ; 3 ] | type A = B ;",
                "Private MacroRules aa | macro_rules ! aa | ( ) => { }",
                "Private MacroCall bb | bb ! | c",
                "Private MacroCall ee | dd :: ee ! | f",
                "Public Trait G | trait G : H | fn i ( ) ;",
                "Private Type J | type J = K | -",
                "Private Static L | static L : M = N | -",
                "Private Fn o | extern \"C\" fn o ( ) | ",
            ]
        );
    }

    #[test]
    fn items_for_tests_are_told_by_what_they_need() {
        let is_test = |cfg: &str| list(&format!("#[cfg({cfg})]\nmod a {{}}"))[0].contains(" test");
        assert!(is_test("test") && is_test("all(test, feature = \"tls\")") && is_test("doctest"));
        assert!(is_test("any(test, doctest)"));
        assert!(!is_test("any(test, unix)") && !is_test("not(test)") && !is_test("unix"));
    }
}
