use proptest::prelude::*;

use super::*;
use crate::style::Line;

fn blocks(pieces: &[&str]) -> Vec<Block> {
    let mut markdown = Markdown::new(Style::PLAIN);
    let mut blocks: Vec<_> = pieces.iter().flat_map(|piece| markdown.push(piece)).collect();
    blocks.extend(markdown.finish());
    blocks
}

fn check(text: &str) -> Vec<String> {
    lines(text, 40).iter().map(Line::plain).collect()
}

fn lines(text: &str, width: usize) -> Vec<Line> {
    blocks(&[text]).iter().flat_map(|block| block.lines(width)).collect()
}

const SAMPLE: &str = "# Title\n\nSome *emphasis*, **strong** text, `code` and a [link](http://a.b).\nA second \
line.\n\n- one\n- two\n  continued\n    - nested\n1. first\n2) second\n- [x] done\n\n> quoted\n> more\n\n```rust\n\
fn main() {\n    println!(\"*no*\");\n}\n```\n\n| a | b |\n|---|:-:|\n| 1 | `x|y` |\n| long cell | \\| |\n\n---\n\n~~~\nraw\n~~~\nend\r\n";

#[test]
fn a_sample_of_everything() {
    assert_eq!(
        check(SAMPLE),
        [
            "Title",
            "",
            "Some emphasis, strong text, code and a",
            "link (http://a.b).",
            "A second line.",
            "",
            "• one",
            "• two",
            "  continued",
            "    • nested",
            "1. first",
            "2) second",
            "☑ done",
            "",
            "│ quoted",
            "│ more",
            "",
            "  rust",
            "  fn main() {",
            "      println!(\"*no*\");",
            "  }",
            "",
            "a         │  b",
            "──────────┼────",
            "1         │ x|y",
            "long cell │  |",
            "",
            "────────────────────────────────────────",
            "",
            "  raw",
            "end",
        ]
    );
}

#[test]
fn only_spaces_and_tabs_are_indents() {
    // Chinese and Japanese paragraphs begin with ideographic spaces.
    for space in ["\u{3000}", "\u{a0}", "\u{2003}", "\u{202f}"] {
        let indented = space.repeat(4) + "rain";
        assert_eq!(check(&indented), [&*indented]);
        for marker in ["# x", "- x", "> x", "---", "1. x", "```", "|a|"] {
            let text = format!("{space}{marker}");
            assert_eq!(check(&text), [&*text]);
        }
        assert_eq!(check(&format!("- {space}rain")), [format!("• {space}rain")]);
        assert_eq!(check(&format!("```\n{space}```")), [format!("  {space}```")]);
    }
    for indent in ["    ", "\t", "  \t", "   \t"] {
        assert_eq!(check(&format!("{indent}rain")), ["  rain"], "{indent:?}");
        assert_eq!(check(&format!("{indent} rain")), ["   rain"], "{indent:?}");
    }
    assert_eq!(check("- a\n\t- b"), ["• a", "    • b"]);
}

#[test]
fn columns_of_a_table_are_aligned() {
    let table =
        "| left | middle | right |\n|:--|:-:|--:|\n| a | b | c |\n| aa<br>a | bbb | 1,000 |\n";
    assert_eq!(
        check(table),
        [
            "left │ middle │ right",
            "─────┼────────┼──────",
            "a    │   b    │     c",
            "aa   │  bbb   │ 1,000",
            "a    │        │ ",
        ]
    );
}

#[test]
fn a_table_may_follow_its_paragraph() {
    let table = ["a │ b", "──┼──", "1 │ 2"];
    for text in
        ["Here:\n| a | b |\n|---|---|\n| 1 | 2 |", "Here:\n  | a | b |\n  |:--|---\n  | 1 | 2 |\n"]
    {
        let lines = check(text);
        assert_eq!(lines[0], "Here:");
        assert_eq!(lines[1..], table);
    }
    for text in ["a\n| b |\nc", "a\n| b | c |\n|---|", "a\n|---|", "a\nb\n|---|"] {
        assert_eq!(check(text).join("\n"), text);
    }
}

#[test]
fn cells_and_headlines_hold_no_blocks() {
    for text in [
        "#",
        "# of items",
        "> 10 ms",
        ">5",
        "-",
        "- 5",
        "+",
        "*",
        "1.",
        "1) x",
        "10. x",
        "---",
        "* * *",
        "___",
        "`",
        "```",
        "~~~",
        "```sh",
        "[a]: b",
        "[^1]: x",
    ] {
        assert_eq!(check(&format!("| {text} | b |\n|---|---|\n"))[0], format!("{text} │ b"));
        assert_eq!(check(&format!("## {text}. c")), [format!("{text}. c")]);
        assert_eq!(check(&format!("## {text} c")), [format!("{text} c")]);
    }
    assert_eq!(check("# **a** `b`"), ["a b"]);
    assert_eq!(check("|**a**|*b* c|_d_|`e`|\n|-|-|-|-|")[0], "a │ b c │ d │ e");
}

#[test]
fn definitions_of_links_are_shown() {
    for text in [
        "[1]: http://a.b\n[2]: http://c.d \"Title\"",
        "[1]: http://a.b\n[1]: http://c.d",
        "[^1]: note",
        "[a]:\n/b",
        "See [1].\n\n[1]: http://a.b",
    ] {
        assert_eq!(check(text).join("\n"), text);
    }
    assert_eq!(check("- [1]: http://a.b"), ["• [1]: http://a.b"]);
    assert_eq!(check("> [1]: a\n>\n> [1]: b"), ["│ [1]: a", "│ [1]: b"]);
}

#[test]
fn code_may_begin_an_item() {
    assert_eq!(
        check("1. ```sh\n   cd a\n     b\n   ```\n   text\n2. next"),
        ["1. sh", "  cd a", "    b", "   text", "2. next"]
    );
    assert_eq!(check("- - ~~~\n    # a\n    ~~~\n- b"), ["• •", "  # a", "• b"]);
    assert_eq!(check("- ```a``` b\n- c"), ["• a b", "• c"]);
    // The next item ends an item, and what is open in it.
    assert_eq!(
        check("- ~~~ opens\n- ~~~ closes\n- c\n  - d"),
        ["• opens", "• closes", "• c", "  • d"]
    );
    assert_eq!(check("1. ~~~\n   - a\n\n   1. b\n2. c"), ["1. ", "  - a", "  ", "  1. b", "2. c"]);
}

#[test]
fn headlines_in_blocks_are_bold() {
    for (text, style) in [
        ("> ## a", Style::PLAIN.italic().bold()),
        ("- # a", Style::PLAIN.bold().underline()),
        ("a\n==", Style::PLAIN.bold().underline()),
    ] {
        let lines = lines(text, 40);
        assert_eq!(lines.last().unwrap().spans.last().unwrap(), &Span::new("a", style));
    }
}

#[test]
fn a_list_in_a_quote_has_its_signs() {
    assert_eq!(check("> 1) a\n> 2) b\n"), ["│ 1) a", "│ 2) b"]);
    assert_eq!(check("- 1) a"), ["• 1) a"]);
    assert_eq!(
        check("> Steps:\n> 1. one\n> 2. two\n>    - inner\n"),
        ["│ Steps:", "│ 1. one", "│ 2. two", "│ • inner"]
    );
}

#[test]
fn lines_of_a_paragraph_stay_lines() {
    assert_eq!(check("Roses are red,\nviolets are blue"), ["Roses are red,", "violets are blue"]);
}

#[test]
fn plain_text_is_unchanged() {
    assert_eq!(check("2 * 3 * 4 = 24"), ["2 * 3 * 4 = 24"]);
    assert_eq!(check("snake_case_name"), ["snake_case_name"]);
    assert_eq!(check("#tag"), ["#tag"]);
    assert_eq!(check("1.5 liters"), ["1.5 liters"]);
    assert_eq!(check("**open"), ["**open"]);
    assert_eq!(check("|one row|"), ["|one row|"]);
    assert_eq!(check("<b>html</b>"), ["<b>html</b>"]);
}

#[test]
fn numbers_without_a_sign_are_text() {
    for text in ["1", "42", "12é", "12 é", "1234567890. a", "7\r\n", "> 42", "  9"] {
        let mut markdown = Markdown::new(Style::PLAIN);
        let mut shown = Vec::new();
        for c in text.chars() {
            shown.extend(markdown.push(c.encode_utf8(&mut [0; 4])));
            let _ = markdown.live();
        }
        shown.extend(markdown.finish());
        assert_eq!(shown, blocks(&[text]));
    }
    assert_eq!(check("42"), ["42"]);
    assert_eq!(check("12é"), ["12é"]);
    assert_eq!(check("42. a"), ["42. a"]);
}

#[test]
fn open_fences_keep_blank_lines() {
    assert_eq!(check("```\na\n\n  b"), ["  a", "  ", "    b"]);
    assert_eq!(check("  ```\n  a\n  ```\nb"), ["  a", "b"]);
    assert_eq!(check("````\n```\n````\n"), ["  ```"]);
}

#[test]
fn blank_lines_collapse_to_one_gap() {
    assert_eq!(check("\n\na\n\n\n\nb\n\n"), ["a", "", "b"]);
}

#[test]
fn escape_sequences_are_neutralized() {
    let text = "&#27;[2J \x1b]0;x\x07 `\u{9b}` &#x202e;\n```\n\x1b[1m\n```\n| \x1b |\n|-|\n";
    for line in lines(text, 60) {
        assert!(!line.ansi(false).contains(['\x1b', '\x07', '\u{9b}', '\u{202e}']), "{line:?}");
    }
}

#[test]
fn a_long_line_is_ended() {
    let mut markdown = Markdown::new(Style::PLAIN);
    let piece = "word ".repeat(100);
    for _ in 0..1_000 {
        markdown.push(&piece);
        assert!(markdown.pending.len() <= LONGEST_LINE);
        if let Some(Chunk::Text { text, .. }) = &markdown.state.chunk {
            assert!(text.len() <= LONGEST_TEXT + LONGEST_LINE);
        }
    }
}

#[test]
fn narrow_tables_are_stacked() {
    let text = "| name | value |\n|-|-|\n| one | two |\n";
    let lines = lines(text, 8);
    let lines: Vec<_> = lines.iter().map(Line::plain).collect();
    assert_eq!(lines, ["name", "  value", "one", "  two"]);
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("# "),
        Just("- "),
        Just("1. "),
        Just("1"),
        Just("42"),
        Just("."),
        Just(")"),
        Just("é"),
        Just("> "),
        Just("```"),
        Just("~~~"),
        Just("|"),
        Just("|-|"),
        Just("\n"),
        Just("\n\n"),
        Just("\r\n"),
        Just("**"),
        Just("*"),
        Just("`"),
        Just("_"),
        Just("[a](b)"),
        Just("[a]: "),
        Just("\n|a|\n|-|\n"),
        Just("- ~~~"),
        Just("---"),
        Just("    "),
        Just("\t"),
        Just(" "),
        Just("word"),
        Just("大きさ"),
        Just("🦀"),
        Just("&#27;"),
        Just("\x1b[1m"),
        Just("<b>"),
        Just("\\"),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Beginnings of everything but links with a title, which is not shown.
const MARKS: &[&str] = &[
    "",
    " ",
    "  ",
    "    ",
    "\t",
    "\n",
    "\n\n",
    "\n> ",
    "\n- ",
    "\n  ",
    "\n|",
    "\n|-|-|\n",
    "# ",
    "## ",
    "- ",
    "+ ",
    "1. ",
    "1) ",
    ">",
    "> ",
    "|",
    "---",
    "===",
    "\n==\n",
    "**",
    "*",
    "_",
    "`",
    "``",
    "~~",
    "[",
    "]",
    "![",
    "]: ",
    "[^1]: ",
    "[ ] ",
    "<",
    ">",
    "<b>",
    "<div>",
    "<!-- ",
    " -->",
    "<?",
    "<!",
    "&amp;",
    "\\",
    ":",
    "http://a.b/",
    "@",
];

proptest! {
    /// The same blocks for any split, and thus the same final screen in any width.
    #[test]
    fn splits_do_not_matter(text in pieces(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut places: Vec<_> = cuts.iter().map(|cut| floor_char_boundary(&text, cut.index(text.len() + 1))).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        let split: Vec<_> = places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        prop_assert_eq!(blocks(&split), blocks(&[&text]));
    }

    /// Whatever the syntax means, all that was said is shown.
    #[test]
    fn no_word_is_lost(marks in prop::collection::vec((any::<bool>(), prop::sample::select(MARKS)), 1..20)) {
        let mut text = String::new();
        let mut words = Vec::new();
        for (place, (is_word, mark)) in marks.into_iter().enumerate() {
            text.push_str(mark);
            if is_word {
                words.push(format!("w{place}w"));
                text.push_str(&words[words.len() - 1]);
            }
        }
        // What is behind the language of code is not shown.
        prop_assume!(!text.contains("```") && !text.contains("~~~"));
        let shown = lines(&text, 400).iter().map(Line::plain).collect::<Vec<_>>().join("\n");
        for word in words {
            prop_assert!(shown.contains(&word), "{word} of {text:?} in {shown:?}");
        }
    }

    /// The live part is drawn while any character may be the last one.
    #[test]
    fn live_after_each_character_changes_nothing(text in pieces()) {
        let mut markdown = Markdown::new(Style::PLAIN);
        let mut shown = Vec::new();
        for c in text.chars() {
            shown.extend(markdown.push(c.encode_utf8(&mut [0; 4])));
            for block in markdown.live() {
                prop_assert!(block.lines(20).iter().all(|line| line.width() <= 20));
            }
        }
        shown.extend(markdown.finish());
        prop_assert_eq!(shown, blocks(&[&text]));
    }

    /// Complete blocks are final: it is the beginning of all that comes.
    #[test]
    fn complete_blocks_are_final(text in pieces(), cut in any::<prop::sample::Index>()) {
        let cut = floor_char_boundary(&text, cut.index(text.len() + 1));
        let complete = Markdown::new(Style::PLAIN).push(&text[..cut]);
        let all = blocks(&[&text]);
        prop_assert!(all.starts_with(&complete));
    }

    /// The live part is what the end would be if the text ended here.
    #[test]
    fn live_blocks_are_those_of_finish(text in pieces()) {
        let mut markdown = Markdown::new(Style::PLAIN);
        let mut shown = markdown.push(&text);
        shown.extend(markdown.live());
        prop_assert_eq!(shown, blocks(&[&text]));
    }

    #[test]
    fn lines_fit_and_have_no_control_characters(text in pieces(), width in 20_usize..80) {
        for line in lines(&text, width) {
            prop_assert!(line.width() <= width, "{line:?}");
            prop_assert!(!line.plain().contains(|c: char| c.is_control()), "{line:?}");
        }
    }
}
