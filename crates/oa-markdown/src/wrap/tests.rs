use proptest::prelude::*;

use super::*;

fn check(text: &str, width: usize) -> Vec<String> {
    let spans = [Span::new(text, Style::PLAIN)];
    let bullet = [Span::new("• ", Style::PLAIN)];
    let indent = [Span::new("  ", Style::PLAIN)];
    wrap(&spans, &bullet, &indent, width).iter().map(Line::plain).collect()
}

#[test]
fn words_stay_whole_where_they_fit() {
    assert_eq!(check("one two  three", 9), ["• one two", "  three"]);
    assert_eq!(check("abcdefghijkl", 6), ["• abcd", "  efgh", "  ijkl"]);
    assert_eq!(check("a 大きさ", 7), ["• a 大", "  きさ"]);
    assert_eq!(check("one\ntwo", 40), ["• one", "  two"]);
    assert_eq!(check("", 10), ["• "]);
}

proptest! {
    #[test]
    fn lines_fit_and_hold_all_words(text in "[a-z大 🦀\n]{0,60}", width in 8_usize..30) {
        let lines = check(&text, width);
        for line in &lines {
            prop_assert!(line.width() <= width, "{line:?}");
        }
        let letters = |text: &str| text.replace(['•', ' ', '\n'], "");
        prop_assert_eq!(letters(&lines.concat()), letters(&text));
    }

    #[test]
    fn folded_code_keeps_every_character(text in "[a-z大 {}]{0,60}", width in 8_usize..30) {
        let indent = [Span::new("  ", Style::PLAIN)];
        let lines = fold(&[Span::new(&text, Style::PLAIN)], &indent, width);
        let joined: String = lines.iter().map(|line| line.plain()[2..].to_owned()).collect();
        prop_assert_eq!(joined, text);
        prop_assert!(lines.iter().all(|line| line.width() <= width));
    }
}
