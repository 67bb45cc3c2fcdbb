//! The version that a changed public surface needs, by the rules of Cargo's book on semver.
//!
//! It reads two lists that `cargo xtask api` wrote. They have no auto traits, no features and no bounds that only `rustc`
//! sees, so a change that is reported as small may still break users; a change that is reported as breaking does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The size of a change. Larger ones include the smaller ones.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Bump {
    /// The surface is the same.
    #[default]
    Patch,
    /// Something was added.
    Minor,
    /// Something was removed, or an addition breaks programs.
    Major,
}

impl fmt::Display for Bump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        })
    }
}

/// A change of a crate's surface, in words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Change {
    pub(crate) bump: Bump,
    pub(crate) what: String,
}

/// An item of a list, with its lines.
#[derive(Debug, Default)]
struct Entry {
    head: String,
    condition: String,
    is_non_exhaustive: bool,
    /// Fields, variants and methods with their conditions, those of an `impl` block behind its head.
    members: BTreeMap<String, String>,
    traits: BTreeSet<String>,
}

type Entries = BTreeMap<String, BTreeMap<String, Entry>>;

/// Returns the changes of each crate that changed.
pub(crate) fn changes(before: &str, after: &str) -> BTreeMap<String, Vec<Change>> {
    let (before, after) = (entries(before), entries(after));
    let mut all: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    let none = BTreeMap::new();
    for name in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        let (old, new) = (before.get(name).unwrap_or(&none), after.get(name).unwrap_or(&none));
        let mut found = Vec::new();
        for key in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            match (old.get(key), new.get(key)) {
                (Some(old), Some(new)) => compare(key, old, new, &mut found),
                (Some(_), None) => found.push(change(Bump::Major, format!("{key} is gone"))),
                (None, _) => found.push(change(Bump::Minor, format!("{key} is new"))),
            }
        }
        if !found.is_empty() {
            all.insert(name.clone(), found);
        }
    }
    all
}

/// Returns the largest of the changes.
pub(crate) fn bump(changes: &[Change]) -> Bump {
    changes.iter().map(|change| change.bump).max().unwrap_or_default()
}

fn change(bump: Bump, what: String) -> Change {
    Change { bump, what }
}

fn compare(key: &str, old: &Entry, new: &Entry, found: &mut Vec<Change>) {
    if old.head != new.head {
        found.push(change(Bump::Major, format!("{key}: {} was {}", new.head, old.head)));
    }
    if let Some(bump) = of_conditions(&old.condition, &new.condition) {
        found.push(change(bump, format!("{key}: its condition has changed")));
    }
    match (old.is_non_exhaustive, new.is_non_exhaustive) {
        (false, true) => found.push(change(Bump::Major, format!("{key} is non-exhaustive now"))),
        (true, false) => found.push(change(Bump::Minor, format!("{key} is exhaustive now"))),
        _ => {}
    }
    for (member, condition) in &old.members {
        match new.members.get(member) {
            Some(now) => {
                if let Some(bump) = of_conditions(condition, now) {
                    found.push(change(
                        bump,
                        format!("{key}: the condition of {member} has changed"),
                    ));
                }
            }
            // Adding a body to a trait method removes nothing.
            None if new.members.contains_key(&format!("{member}{PROVIDED}")) => {
                found.push(change(Bump::Minor, format!("{key}: {member} has a body now")));
            }
            None => found.push(change(Bump::Major, format!("{key}: {member} is gone"))),
        }
    }
    for member in new.members.keys().filter(|member| !old.members.contains_key(*member)) {
        let had_none = member.strip_suffix(PROVIDED);
        if had_none.is_some_and(|member| old.members.contains_key(member)) {
            continue;
        }
        let bump = if breaks(old, member) { Bump::Major } else { Bump::Minor };
        found.push(change(bump, format!("{key}: {member} is new")));
    }
    for name in old.traits.difference(&new.traits) {
        found.push(change(Bump::Major, format!("{key} is no {name} any more")));
    }
    for name in new.traits.difference(&old.traits) {
        found.push(change(Bump::Minor, format!("{key} is {name} now")));
    }
}

/// The mark of a method that has a body.
const PROVIDED: &str = " { .. }";

/// Returns true if adding this member breaks programs.
fn breaks(of: &Entry, member: &str) -> bool {
    let is_code = |member: &str| {
        let words = ["fn ", "async fn ", "const fn ", "unsafe fn ", "const ", "impl", "type "];
        words.iter().any(|word| member.starts_with(word))
    };
    match of.head.split(' ').next() {
        // Programs implement it.
        Some("trait") => {
            let has_default = member.ends_with(PROVIDED) || member.contains(" = ");
            is_code(member) && !member.starts_with("impl") && !has_default
        }
        // Programs match on it.
        Some("enum") => !is_code(member) && !of.is_non_exhaustive,
        // Programs build it, unless a field is private.
        Some("struct" | "union") => {
            !is_code(member) && !of.is_non_exhaustive && !of.head.ends_with("{ .. }")
        }
        _ => true,
    }
}

/// A condition takes away what was there without it; without the condition, more programs have it.
fn of_conditions(old: &str, new: &str) -> Option<Bump> {
    match (old, new) {
        (old, new) if old == new => None,
        (_, "") => Some(Bump::Minor),
        _ => Some(Bump::Major),
    }
}

fn entries(list: &str) -> Entries {
    let mut all = Entries::new();
    let (mut krate, mut key, mut block) = (String::new(), String::new(), String::new());
    // The title comes before the first crate.
    for line in list.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(name) = line.strip_prefix("# ") {
            name.clone_into(&mut krate);
            all.entry(krate.clone()).or_default();
            continue;
        }
        let Some(entries) = all.get_mut(&krate) else { continue };
        let (condition, is_non_exhaustive, rest) = attributes(line.trim_start());
        if !line.starts_with(' ') {
            key = name_of(rest);
            block.clear();
            let head = rest.to_owned();
            let entry = Entry { head, condition, is_non_exhaustive, ..Entry::default() };
            entries.insert(key.clone(), entry);
            continue;
        }
        let Some(entry) = entries.get_mut(&key) else { continue };
        // Methods of an `impl` with a head of its own are one level deeper, and only unique together with it.
        let is_nested = line.starts_with("        ");
        let mark = if is_non_exhaustive { "#[non_exhaustive] " } else { "" };
        match rest.strip_prefix("impl ") {
            Some(traits) if !is_nested && condition.is_empty() && !traits.contains([' ', '{']) => {
                entry.traits.insert(traits.to_owned());
            }
            Some(traits) if !is_nested && condition.is_empty() && !traits.contains('{') => {
                entry.traits.extend(traits.split(" + ").map(str::to_owned));
            }
            _ if is_nested => {
                entry.members.insert(format!("{mark}{rest} of {block}"), condition);
            }
            _ => {
                rest.clone_into(&mut block);
                entry.members.insert(format!("{mark}{rest}"), condition);
            }
        }
    }
    all
}

/// Takes the attributes off a line: its condition, and whether it is non-exhaustive.
fn attributes(line: &str) -> (String, bool, &str) {
    let (mut condition, mut is_non_exhaustive, mut rest) = (String::new(), false, line);
    while rest.starts_with("#[") {
        let Some((attribute, after)) = rest.split_once("] ") else { break };
        match attribute {
            "#[non_exhaustive" => is_non_exhaustive = true,
            attribute => condition.push_str(attribute),
        }
        rest = after;
    }
    (condition, is_non_exhaustive, rest)
}

/// The kind and the name of an item, by which it is found in another list.
fn name_of(head: &str) -> String {
    let mut words = Vec::new();
    for word in head.split(' ') {
        let is_keyword =
            ["async", "const", "enum", "fn", "macro", "mod", "static", "struct", "trait"]
                .contains(&word)
                || ["type", "union", "unsafe", "use"].contains(&word);
        let end = word.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        words.push(word[..end.unwrap_or(word.len())].trim_end_matches(':'));
        if !is_keyword {
            break;
        }
    }
    // `use a::B as c::B` exports the latter.
    match head.strip_prefix("use ") {
        Some(path) => format!("use {path}"),
        None => words.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expected: &[(Bump, &str)]) {
        let of = |surface: &str| format!("A title.\n\n# a\n\n{surface}\n");
        let found = changes(&of(before), &of(after)).remove("a").unwrap_or_default();
        let found: Vec<_> = found.iter().map(|change| (change.bump, &*change.what)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn equal_surfaces_need_a_patch() {
        let surface = "struct A { .. }\n    fn b()\n    impl Clone + Copy\n\nfn c()";
        check(surface, surface, &[]);
        assert_eq!(bump(&[]), Bump::Patch);
    }

    #[test]
    fn items_come_and_go() {
        check("fn a()", "fn a()\nfn b()", &[(Bump::Minor, "fn b is new")]);
        check("fn a()\nfn b()", "fn a()", &[(Bump::Major, "fn b is gone")]);
        check("fn a()", "fn a(b: u8)", &[(Bump::Major, "fn a: fn a(b: u8) was fn a()")]);
        check(
            "use b::C",
            "use b::D",
            &[(Bump::Major, "use b::C is gone"), (Bump::Minor, "use b::D is new")],
        );
    }

    #[test]
    fn new_variants_break_exhaustive_matches() {
        let new = "enum A: C is new";
        check("enum A\n    B", "enum A\n    B\n    C", &[(Bump::Major, new)]);
        check(
            "#[non_exhaustive] enum A\n    B",
            "#[non_exhaustive] enum A\n    B\n    C",
            &[(Bump::Minor, new)],
        );
        check(
            "enum A\n    B",
            "enum A\n    B\n    fn c()",
            &[(Bump::Minor, "enum A: fn c() is new")],
        );
        check(
            "enum A\n    B",
            "#[non_exhaustive] enum A\n    B",
            &[(Bump::Major, "enum A is non-exhaustive now")],
        );
        check(
            "#[non_exhaustive] enum A\n    B",
            "enum A\n    B",
            &[(Bump::Minor, "enum A is exhaustive now")],
        );
    }

    #[test]
    fn new_fields_break_struct_literals() {
        let new = "struct A: c: u8 is new";
        check("struct A\n    b: u8", "struct A\n    b: u8\n    c: u8", &[(Bump::Major, new)]);
        check(
            "struct A { .. }\n    b: u8",
            "struct A { .. }\n    b: u8\n    c: u8",
            &[(Bump::Minor, new)],
        );
        check(
            "#[non_exhaustive] struct A\n    b: u8",
            "#[non_exhaustive] struct A\n    b: u8\n    c: u8",
            &[(Bump::Minor, new)],
        );
        check(
            "struct A\n    b: u8",
            "struct A\n    b: u16",
            &[(Bump::Major, "struct A: b: u8 is gone"), (Bump::Major, "struct A: b: u16 is new")],
        );
    }

    #[test]
    fn new_required_methods_break_implementors() {
        let before = "trait A\n    fn b(&self)";
        check(
            before,
            "trait A\n    fn b(&self)\n    fn c(&self)",
            &[(Bump::Major, "trait A: fn c(&self) is new")],
        );
        check(
            before,
            "trait A\n    fn b(&self)\n    fn c(&self) { .. }",
            &[(Bump::Minor, "trait A: fn c(&self) { .. } is new")],
        );
        check(
            before,
            "trait A\n    fn b(&self) { .. }",
            &[(Bump::Minor, "trait A: fn b(&self) has a body now")],
        );
        check(
            "trait A\n    fn b(&self) { .. }",
            before,
            &[
                (Bump::Major, "trait A: fn b(&self) { .. } is gone"),
                (Bump::Major, "trait A: fn b(&self) is new"),
            ],
        );
        check(
            before,
            "trait A: Send\n    fn b(&self)",
            &[(Bump::Major, "trait A: trait A: Send was trait A")],
        );
    }

    #[test]
    fn implementations_are_compared_one_by_one() {
        let before = "struct A { .. }\n    impl Clone + Copy";
        check(
            before,
            "struct A { .. }\n    impl Clone + Copy + Eq",
            &[(Bump::Minor, "struct A is Eq now")],
        );
        check(
            before,
            "struct A { .. }\n    impl Clone",
            &[(Bump::Major, "struct A is no Copy any more")],
        );
        let block = "struct A<T> { .. }\n    impl<T: Clone> A<T>\n        fn b(&self)";
        check(
            block,
            "struct A<T> { .. }\n    impl<T: Clone> A<T>\n        fn c(&self)",
            &[
                (Bump::Major, "struct A: fn b(&self) of impl<T: Clone> A<T> is gone"),
                (Bump::Minor, "struct A: fn c(&self) of impl<T: Clone> A<T> is new"),
            ],
        );
    }

    #[test]
    fn gating_an_item_is_breaking() {
        let (free, bound) = ("fn a()", "#[cfg(feature = \"b\")] fn a()");
        check(free, bound, &[(Bump::Major, "fn a: its condition has changed")]);
        check(bound, free, &[(Bump::Minor, "fn a: its condition has changed")]);
    }

    #[test]
    fn crates_are_told_apart() {
        let found = changes(
            "# a\n\nfn a()\n\n# b\n\nfn b()\n",
            "# a\n\nfn a()\n\n# b\n\nfn b()\nfn c()\n\n# d\n\nfn d()\n",
        );
        assert_eq!(found.keys().collect::<Vec<_>>(), ["b", "d"]);
    }
}
