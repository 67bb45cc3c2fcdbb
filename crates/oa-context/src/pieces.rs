//! Splits long texts where a tokenizer would split them anyway.

/// Splits a text into pieces of at most 16 KiB: before a space that follows a letter or digit if possible,
/// otherwise at any character boundary.
///
/// Exact tokenizers split text with regular expressions that panic or take quadratic time on a megabyte of
/// spaces or of one letter, which a tool may well return.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(end_of_piece(rest));
        rest = after;
        Some(piece)
    })
}

fn end_of_piece(text: &str) -> usize {
    if text.len() <= MOST {
        return text.len();
    }
    let bytes = &text.as_bytes()[..MOST];
    let is_seam = |pair: &[u8]| pair[0].is_ascii_alphanumeric() && pair[1] == b' ';
    if let Some(place) = bytes.windows(2).rposition(is_seam) {
        return place + 1;
    }
    // A character has at most four bytes.
    (MOST - 3..=MOST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(text.len())
}

const MOST: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_before_spaces() {
        let text = "some words, and more of them ".repeat(2_000);
        let cut: Vec<&str> = pieces(&text).collect();
        assert_eq!(cut.concat(), text);
        assert!(cut.len() >= text.len() / MOST && cut.len() <= text.len() / MOST + 2);
        assert!(cut[1..].iter().all(|piece| piece.starts_with(' ')));
    }

    #[test]
    fn without_spaces_no_character_is_cut() {
        let text = "木".repeat(20_000);
        assert_eq!(pieces(&text).collect::<String>(), text);
        assert!(pieces(&text).all(|piece| piece.len() <= MOST));
        assert_eq!(pieces("").count(), 0);
    }
}
