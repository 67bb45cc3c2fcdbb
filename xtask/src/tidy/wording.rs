//! Rules about words: the beginnings of docs, the length of test names, and the spelling of identifiers.

use std::collections::BTreeMap;

use super::Finding;
use super::tree::Tree;
use crate::Result;
use crate::rust::lexer::{self, Kind, Token};

/// Words with which no doc may begin: docs are statements, not questions.
const RIDDLES: [&str; 5] = ["How", "What", "What's", "Whether", "Who"];

/// The maximum length of a test's name, in characters.
const LONGEST_TEST_NAME: usize = 45;

/// Words that end in `-ise` in American English, too, beside those in `-wise`.
const ISE: &[&str] = &[
    "advertise",
    "advise",
    "anise",
    "appraise",
    "arise",
    "braise",
    "bruise",
    "chaise",
    "chastise",
    "circumcise",
    "comprise",
    "compromise",
    "concise",
    "cruise",
    "demise",
    "despise",
    "devise",
    "disguise",
    "enterprise",
    "excise",
    "exercise",
    "expertise",
    "franchise",
    "guise",
    "imprecise",
    "improvise",
    "incise",
    "merchandise",
    "mortise",
    "noise",
    "paradise",
    "poise",
    "praise",
    "precise",
    "premise",
    "promise",
    "raise",
    "reprise",
    "revise",
    "rise",
    "supervise",
    "surmise",
    "surprise",
    "televise",
    "tortoise",
    "treatise",
    "turquoise",
];

/// Words that end in `-our` in American English, too.
const OUR: &[&str] = &[
    "contour",
    "detour",
    "devour",
    "dour",
    "flour",
    "four",
    "glamour",
    "hour",
    "our",
    "paramour",
    "pour",
    "scour",
    "sour",
    "tour",
    "troubadour",
    "velour",
    "your",
];

/// Verbs whose last `l` British English doubles. Without `cancel`, on which std and tokio differ.
const DOUBLED: &[&str] = &[
    "channel", "counsel", "dial", "equal", "fuel", "funnel", "initial", "label", "level",
    "marshal", "marvel", "model", "panel", "pencil", "relabel", "rival", "shovel", "signal",
    "spiral", "total", "travel", "tunnel", "unravel",
];

/// Words that follow no rule.
const OTHERS: &[(&str, &str)] = &[
    ("acknowledgement", "acknowledgment"),
    ("ageing", "aging"),
    ("amongst", "among"),
    ("analogue", "analog"),
    ("analyse", "analyze"),
    ("artefact", "artifact"),
    ("calibre", "caliber"),
    ("catalogue", "catalog"),
    ("catalyse", "catalyze"),
    ("centre", "center"),
    ("cheque", "check"),
    ("defence", "defense"),
    ("enquire", "inquire"),
    ("enquiry", "inquiry"),
    ("fibre", "fiber"),
    ("fulfil", "fulfill"),
    ("grey", "gray"),
    ("instalment", "installment"),
    ("judgement", "judgment"),
    ("learnt", "learned"),
    ("licence", "license"),
    ("litre", "liter"),
    ("manoeuvre", "maneuver"),
    ("metre", "meter"),
    ("offence", "offense"),
    ("paralyse", "paralyze"),
    ("practise", "practice"),
    ("pretence", "pretense"),
    ("sceptic", "skeptic"),
    ("skilful", "skillful"),
    ("theatre", "theater"),
    ("tyre", "tire"),
    ("whilst", "while"),
    ("wilful", "willful"),
];

/// Docs say what an item is or does.
pub(super) fn first_lines(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (file, _) in tree.rust() {
        let mut before: Option<Kind> = None;
        for token in lexer::tokens(&file.text) {
            let is_doc = matches!(token.kind, Kind::InnerDoc | Kind::OuterDoc);
            if is_doc
                && before != Some(token.kind)
                && let Some(word) = riddle(token.text)
            {
                let message = format!(
                    "begins with `{word}`: say what it is or does (`Returns ..`, `Sets ..`, `A tool call ..`)"
                );
                findings.push(Finding::line(&file.path, token.line, message));
            }
            before = Some(token.kind);
        }
    }
    Ok(findings)
}

/// The word with which a doc should not begin.
fn riddle(doc: &str) -> Option<&str> {
    let text = doc.trim_start_matches(['/', '*', '!']).trim_start();
    let word = text.split_whitespace().next()?;
    RIDDLES.contains(&word).then_some(word)
}

/// A test's name is short enough to be read in a list and typed into a filter; a longer sentence goes into its doc.
pub(super) fn test_names(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (file, _) in tree.rust() {
        let tokens = lexer::tokens(&file.text);
        for (name, line) in tests_in(&tokens).filter(|(name, _)| name.len() > LONGEST_TEST_NAME) {
            let message = format!(
                "`{name}` has {} characters, at most {LONGEST_TEST_NAME} are allowed: put the sentence into a doc comment",
                name.len()
            );
            findings.push(Finding::line(&file.path, line, message));
        }
    }
    Ok(findings)
}

/// Returns the names of functions after `#[test]` or `#[tokio::test(..)]`, with their lines.
fn tests_in<'a>(tokens: &'a [Token<'a>]) -> impl Iterator<Item = (&'a str, usize)> {
    let mut is_test = false;
    tokens.windows(3).filter_map(move |three| {
        let [before, word, next] = three else { return None };
        // `[test]`, or `::test` with arguments; `cfg(test)` is neither.
        is_test |= word.is("test")
            && (before.is("[") || before.is("::"))
            && (next.is("]") || next.is("("));
        (word.is("fn") && std::mem::take(&mut is_test)).then_some((next.text, next.line))
    })
}

/// Identifiers and names of files are American, as std's are.
pub(super) fn spelling(tree: &Tree<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (file, _) in tree.rust() {
        let stems = file.path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
        for (british, american) in stems.flat_map(british) {
            let message = format!("`{british}` is spelled {american}");
            findings.push(Finding::file(&file.path, message));
        }
        // Each name once, where it first stands.
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let is_name = |token: &Token<'_>| matches!(token.kind, Kind::Ident | Kind::Lifetime);
        for token in lexer::tokens(&file.text).into_iter().filter(is_name) {
            seen.entry(token.text).or_insert(token.line);
        }
        for (name, line) in seen {
            for (british, american) in british(name) {
                let message = format!("`{british}` in `{name}` is spelled {american}");
                findings.push(Finding::line(&file.path, line, message));
            }
        }
    }
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(findings)
}

/// The British words in a name of either case, each with its American spelling.
fn british(name: &str) -> Vec<(String, String)> {
    let words = words(name).into_iter();
    words.filter_map(|word| american(&word).map(|american| (word, american))).collect()
}

/// The words of `a_snake`, `ACamel` and `HTTPCamel`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let chars: Vec<char> = name.chars().collect();
    let mut word = String::new();
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| chars[before]);
        let after = chars.get(at + 1);
        let begins = c.is_uppercase()
            && (before.is_some_and(char::is_lowercase) || after.is_some_and(|c| c.is_lowercase()));
        if (begins || !c.is_alphabetic()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphabetic() {
            word.extend(c.to_lowercase());
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// The American spelling of a British word.
fn american(word: &str) -> Option<String> {
    for (british, american) in OTHERS {
        let rest = word.strip_prefix(british);
        // `analyses` are also what an analysis is many of.
        let is_noun = british.ends_with("yse") && rest == Some("s");
        let is_form =
            rest.is_some_and(|rest| ["", "d", "ed", "ing", "r", "rs", "s"].contains(&rest));
        let stem = british.strip_suffix('e').unwrap_or(british);
        if (is_form && !is_noun) || word.strip_prefix(stem) == Some("ing") {
            return Some(format!("`{american}`"));
        }
    }
    for ending in ["isation", "isations", "isable", "ised", "iser", "isers", "ises", "ising", "ise"]
    {
        if let Some(stem) = word.strip_suffix(ending).filter(|stem| stem.len() > 2)
            && !stem.ends_with('w')
            && !ISE.contains(&format!("{stem}ise").as_str())
        {
            return Some(format!("`{stem}{}`", ending.replacen('s', "z", 1)));
        }
    }
    for ending in ["oured", "ouring", "ourable", "ourably", "ourite", "ourites", "ours", "our"] {
        if let Some(stem) = word.strip_suffix(ending)
            && !OUR.contains(&format!("{stem}our").as_str())
        {
            return Some(format!("`{stem}{}`", ending.replacen("our", "or", 1)));
        }
    }
    for ending in ["led", "ling", "ler", "lers"] {
        if let Some(verb) = word.strip_suffix(ending).filter(|verb| DOUBLED.contains(verb)) {
            return Some(format!("`{verb}{}`", &ending[1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::tree::File;
    use super::*;
    use crate::workspace::Workspace;

    #[track_caller]
    fn check(rule: fn(&Tree<'_>) -> Result<Vec<Finding>>, path: &str, text: &str, lines: &[usize]) {
        let workspace =
            Workspace { root: PathBuf::new(), target: PathBuf::new(), packages: Vec::new() };
        let tree = Tree { workspace: &workspace, files: vec![File::new(path, text)] };
        let found: Vec<usize> = rule(&tree).unwrap().iter().map(|finding| finding.line).collect();
        assert_eq!(found, lines, "{text}");
    }

    #[test]
    fn docs_that_begin_with_a_riddle_are_found() {
        check(first_lines, "a.rs", "//! What a is.\n\n/// Who calls.\nfn b() {}\n", &[1, 3]);
        check(first_lines, "a.rs", "struct A {\n    /// Whether it is.\n    b: bool,\n}\n", &[2]);
        check(first_lines, "a.rs", "/** What's this */\nfn a() {}", &[1]);
    }

    #[test]
    fn other_lines_may_begin_as_they_like() {
        let text = "/// Returns a.\n///\n/// What it costs, and who pays.\n// What a comment says.\nfn a() {}\n";
        check(first_lines, "a.rs", text, &[]);
        check(first_lines, "a.rs", "/// Whatever it is.\nfn a() { \"/// What\" }", &[]);
        check(first_lines, "a.md", "/// What a page shows.", &[]);
    }

    #[test]
    fn long_test_names_are_found() {
        let name = "a".repeat(46);
        let test = |attribute: &str| format!("{attribute}\n#[cfg(unix)]\nasync fn {name}() {{}}\n");
        check(test_names, "a.rs", &test("#[test]"), &[3]);
        check(test_names, "a.rs", &test("#[tokio::test(start_paused = true)]"), &[3]);
        check(test_names, "a.rs", &test("#[cfg(test)]"), &[]);
        check(test_names, "a.rs", &format!("#[test]\nfn short() {{}}\nfn {name}() {{}}"), &[]);
    }

    #[test]
    fn british_parts_of_names_are_found() {
        let all = "fn memorise_calls() {}\nstruct ColourMap;\nlet SERIALISER = 1;\nlet behaviours = centred;\n\
                   fn labelled() {}\nfn grey() {}\nfn normalisation() {}\n";
        check(spelling, "a.rs", all, &[1, 2, 3, 4, 4, 5, 6, 7]);
        check(spelling, "crates/a/src/favourites.rs", "", &[0]);
        check(spelling, "a.rs", "fn initialise() { initialise() }", &[1]);
    }

    #[test]
    fn american_names_and_texts_are_let_through() {
        let text = "fn raised_noise_otherwise() {}\nfn four_hours() {}\nfn cancelled() { \"colour\" } // colour\n\
                    fn promises() {}\nfn labeled_meter() {}\nlet advertised = precise + our + bytewise + rising + calibrations + analyses + programmer;\n\
                    fn modeling() {}\nfn fulfilled() {}\nfn dialogue() {}\nfn centers() {}";
        check(spelling, "a.rs", text, &[]);
        check(spelling, "colour.md", "colour", &[]);
    }

    #[test]
    fn the_american_spelling_is_told() {
        let told = |name: &str| {
            british(name).into_iter().map(|(_, american)| american).collect::<Vec<_>>()
        };
        assert_eq!(told("HTTPNormaliser"), ["`normalizer`"]);
        assert_eq!(told("colours_and_behaviour"), ["`colors`", "`behavior`"]);
        assert_eq!(told("signalling"), ["`signaling`"]);
        assert_eq!(told("summarisation"), ["`summarization`"]);
        assert_eq!(told("fulfil"), ["`fulfill`"]);
    }
}
