//! Items that a file generates with its own `macro_rules!`.

use std::collections::BTreeMap;

use super::item::{Code, ItemKind, Span};
use super::lexer::Kind;

/// Macros of others in the place of items, whose insides are items as they stand or which make none that is public.
const KNOWN: [&str; 3] = ["pin_project", "task_local", "thread_local"];

/// Returns a file with the items that its top-level macro calls generate appended.
///
/// # Errors
///
/// The name of a macro that is neither defined in the file nor known, or whose rules do not match.
pub(crate) fn expanded(text: &str) -> Result<String, String> {
    let code = Code::new(text);
    let items = code.items(code.all());
    let mut out = text.to_owned();
    for call in items.iter().filter(|item| item.kind == ItemKind::MacroCall) {
        if code.serves_tests(call) {
            continue;
        }
        let Some(input) = call.body.clone().filter(|_| !KNOWN.contains(&call.name.as_str())) else {
            continue;
        };
        let is_rules =
            |item: &&super::item::Item| item.kind == ItemKind::MacroRules && item.name == call.name;
        let rules = items.iter().find(is_rules).and_then(|item| item.body.clone());
        let rules = rules.ok_or_else(|| format!("cannot see what `{}!` makes", call.name))?;
        let made = apply(&code, rules, input)
            .ok_or_else(|| format!("no rule of `{}!` fits its call", call.name))?;
        out.push('\n');
        out.push_str(&made);
    }
    Ok(out)
}

/// Expands a call by the first rule that matches.
fn apply(code: &Code<'_>, rules: Span, input: Span) -> Option<String> {
    let mut at = rules.start;
    while at < rules.end {
        let matcher = code.inside(at);
        let arrow = code.close(at)? + 1;
        let transcriber = code.inside(arrow + 1);
        let mut bindings = Bindings::new();
        if matched(code, matcher, input.clone(), &mut bindings) == Some(input.end) {
            let mut out = String::new();
            transcribe(code, transcriber, &bindings, &mut out);
            return Some(out);
        }
        at = code.close(arrow + 1)? + 1;
        if code.is(at, ";") {
            at += 1;
        }
    }
    None
}

type Bindings = BTreeMap<String, Binding>;

#[derive(Clone, Debug)]
enum Binding {
    One(String),
    /// Of a repetition: what each of its rounds binds.
    Many(Vec<Bindings>),
}

/// Matches input against a pattern, and returns where the input goes on behind it.
fn matched(code: &Code<'_>, pattern: Span, input: Span, bindings: &mut Bindings) -> Option<usize> {
    let (mut at, mut from) = (pattern.start, input.start);
    while at < pattern.end {
        // Docs are attributes to a macro, and of no use here.
        while from < input.end && code.tokens[from].kind == Kind::OuterDoc {
            from += 1;
        }
        if code.is(at, "$") && code.is(at + 1, "(") {
            let (inside, separator, next) = repetition(code, at);
            let mut rounds = Vec::new();
            loop {
                let mut start = from;
                if let (Some(separator), false) = (separator, rounds.is_empty()) {
                    if from >= input.end || code.tokens[from].text != separator {
                        break;
                    }
                    start += 1;
                }
                let mut round = Bindings::new();
                match matched(code, inside.clone(), start..input.end, &mut round) {
                    // As many rounds as match: like `rustc`, this never takes one back. A round that takes
                    // nothing would repeat for ever.
                    Some(end) if end > start => {
                        rounds.push(round);
                        from = end;
                    }
                    _ => break,
                }
            }
            for name in names(code, inside) {
                bindings.insert(name, Binding::Many(rounds.clone()));
            }
            at = next;
        } else if code.is(at, "$") {
            let (name, fragment) = (code.ident(at + 1)?, code.ident(at + 3)?);
            at += 4;
            let next = (at < pattern.end).then(|| code.tokens[at].text);
            let end = fragment_end(code, fragment, from..input.end, next)?;
            bindings.insert(name.to_owned(), Binding::One(joined(code, from..end)));
            from = end;
        } else if let Some(close) = code.close(at) {
            let is_group = from < input.end && code.tokens[from].text == code.tokens[at].text;
            let end = code.close(from).filter(|_| is_group)?;
            let inside = matched(code, at + 1..close, from + 1..end, bindings)?;
            if inside != end {
                return None;
            }
            (at, from) = (close + 1, end + 1);
        } else {
            if from >= input.end || code.tokens[from].text != code.tokens[at].text {
                return None;
            }
            (at, from) = (at + 1, from + 1);
        }
    }
    Some(from)
}

/// Reads `$(..) separator *`: the inside, the separator and where it ends.
fn repetition<'a>(code: &Code<'a>, at: usize) -> (Span, Option<&'a str>, usize) {
    let inside = code.inside(at + 1);
    let close = inside.end;
    let is_operator = |at: usize| ["*", "+", "?"].iter().any(|operator| code.is(at, operator));
    if is_operator(close + 1) {
        (inside, None, close + 2)
    } else {
        (inside, code.tokens.get(close + 1).map(|token| token.text), close + 3)
    }
}

/// Returns where a fragment ends; types and expressions end before the pattern's next token.
fn fragment_end(code: &Code<'_>, fragment: &str, input: Span, next: Option<&str>) -> Option<usize> {
    if input.is_empty() {
        return None;
    }
    // A group in brackets counts as one token.
    let single = code.close(input.start).unwrap_or(input.start) + 1;
    match fragment {
        "ident" => code.ident(input.start).map(|_| single),
        "lifetime" => (code.tokens[input.start].kind == Kind::Lifetime).then_some(single),
        "literal" => (code.tokens[input.start].kind == Kind::Literal).then_some(single),
        "tt" | "block" => Some(single),
        _ => {
            // Angle brackets are no brackets to the lexer, so they are counted here. `->` is one token, so
            // its `>` is not counted.
            let mut depth = 0;
            let mut at = input.start;
            while at < input.end {
                let token = &code.tokens[at];
                match token.text {
                    _ if depth == 0 && next == Some(token.text) => break,
                    "," | ";" | "=>" if depth == 0 => break,
                    "<" => depth += 1,
                    ">" => depth -= 1,
                    _ => {}
                }
                at = code.close(at).unwrap_or(at) + 1;
            }
            (at > input.start).then_some(at)
        }
    }
}

/// The variables that a pattern binds.
fn names(code: &Code<'_>, pattern: Span) -> Vec<String> {
    let binds = |at: &usize| code.is(*at, "$") && code.is(at + 2, ":");
    pattern.filter(binds).filter_map(|at| code.ident(at + 1)).map(str::to_owned).collect()
}

fn transcribe(code: &Code<'_>, span: Span, bindings: &Bindings, out: &mut String) {
    let mut at = span.start;
    while at < span.end {
        if code.is(at, "$") && code.is(at + 1, "(") {
            let (inside, separator, next) = repetition(code, at);
            // All variables of a repetition share its rounds, so the first one found decides how often it is
            // written.
            let mut many = inside.clone().filter(|at| code.is(*at, "$")).filter_map(|at| {
                match bindings.get(code.ident(at + 1)?)? {
                    Binding::Many(rounds) => Some(rounds),
                    Binding::One(_) => None,
                }
            });
            for (round, of) in many.next().into_iter().flatten().enumerate() {
                if let (Some(separator), true) = (separator, round > 0) {
                    push(out, separator);
                }
                let mut all = bindings.clone();
                all.extend(of.clone());
                transcribe(code, inside.clone(), &all, out);
            }
            at = next;
        } else if code.is(at, "$")
            && let Some(Binding::One(text)) = code.ident(at + 1).and_then(|name| bindings.get(name))
        {
            push(out, text);
            at += 2;
        } else if code.is(at, "$") {
            // `$crate`
            at += 1;
        } else {
            push(out, &joined(code, at..at + 1));
            at += 1;
        }
    }
}

fn joined(code: &Code<'_>, span: Span) -> String {
    let mut out = String::new();
    for token in &code.tokens[span] {
        push(&mut out, token.text);
        if matches!(token.kind, Kind::InnerDoc | Kind::OuterDoc) {
            out.push('\n');
        }
    }
    out
}

fn push(out: &mut String, text: &str) {
    if !out.is_empty() && !out.ends_with('\n') {
        out.push(' ');
    }
    out.push_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let made = expanded(text).unwrap();
        let made: Vec<&str> = made[text.len()..].split_whitespace().collect();
        assert_eq!(made.join(" "), expect);
    }

    #[test]
    fn calls_become_what_their_rules_say() {
        check(
            "macro_rules! a { ($($t:ty),*) => {$( impl<C> A for $t { } )*}; } a!(&C, Arc<C>, B<C, D>);",
            "impl < C > A for & C { } impl < C > A for Arc < C > { } impl < C > A for B < C , D > { }",
        );
        check(
            "macro_rules! a { ($n:ident: $t:ident { $($v:ident = $w:literal),+ $(,)? }) => \
             { mod $n { fn f() { $($t::$v => $w),+ } } }; }\na!(x: Y { A = \"a\", B = \"b\", });",
            "mod x { fn f ( ) { Y :: A => \"a\" , Y :: B => \"b\" } }",
        );
        check(
            "macro_rules! a { ($(#[$d:meta])* $n:ident, $e:expr) => { $(#[$d])* struct $n; } }\n\
             a! { /// Docs.\n#[doc = \"x\"] #[y] N, 1 + f(2, 3) }",
            "# [ doc = \"x\" ] # [ y ] struct N ;",
        );
    }

    #[test]
    fn the_first_rule_that_fits_is_taken() {
        let rules = "macro_rules! a { (one $n:ident) => { struct $n; }; ($($v:ident($b:ty)),*) => { $( enum $v {} )* } }\n";
        check(&format!("{rules}a!(one A);"), "struct A ;");
        check(&format!("{rules}a!(A(B), C(D));"), "enum A { } enum C { }");
        assert!(expanded(&format!("{rules}a!(1);")).unwrap_err().contains("no rule of `a!`"));
    }

    #[test]
    fn macros_of_others_are_named() {
        assert!(expanded("b! { x }").unwrap_err().contains("`b!`"));
        assert_eq!(
            expanded("pin_project! { struct A; } fn c() { b!() }").unwrap().lines().count(),
            1
        );
    }
}
