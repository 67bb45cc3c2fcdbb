use oa_redact::Secrets;

/// The maximum characters of an excerpt.
const EXCERPT: usize = 1_000;

/// The last bytes of a program's error output, for the error when it ends.
///
/// Holds at most twice the limit, or one piece more than the limit if pieces are longer.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    /// Adds a piece of output. At least the last `limit` bytes are kept.
    pub fn push(&mut self, piece: &[u8], limit: usize) {
        self.bytes.extend_from_slice(piece);
        // Trimmed in large steps, so that the cost per byte stays constant.
        if self.bytes.len() > limit.saturating_mul(2).max(limit.saturating_add(piece.len())) {
            let from = self.bytes.len() - limit;
            self.bytes.drain(..from);
            self.is_cut = true;
        }
    }

    /// Returns the end of the last `limit` bytes, masked and on one line, with at most 1,000 characters. `None` if
    /// there was no output, or no line break in what is left of a longer one.
    #[must_use]
    pub fn excerpt(&self, secrets: &Secrets, limit: usize) -> Option<String> {
        let tail = &self.bytes[self.bytes.len().saturating_sub(limit)..];
        let mut text = String::from_utf8_lossy(tail);
        if self.is_cut || tail.len() < self.bytes.len() {
            // Start after a line break: a secret that was cut in half would not be masked, but each of its lines is.
            let start = text.find('\n')?;
            text = text[start..].to_owned().into();
        }
        let masked = secrets.mask(&text);
        let from = masked.char_indices().rev().nth(EXCERPT - 1).map_or(0, |(at, _)| at);
        let excerpt = Secrets::new().excerpt(&masked[from..], EXCERPT);
        Some(excerpt).filter(|excerpt| !excerpt.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept_and_cut_lines_left_out() {
        let mut tail = Tail::default();
        assert_eq!(tail.excerpt(&Secrets::new(), 16), None);
        for line in 0..1_000 {
            tail.push(format!("line {line}\n").as_bytes(), 16);
            assert!(tail.bytes.len() <= 32, "{}", tail.bytes.len());
        }
        assert_eq!(tail.excerpt(&Secrets::new(), 16).as_deref(), Some("line 999"));
    }

    #[test]
    fn secrets_are_masked_also_across_pieces() {
        let mut secrets = Secrets::new();
        secrets.add("sk-canary-0123456789");
        let mut tail = Tail::default();
        for piece in ["the key sk-canary", "-0123456789 was\nrejected"] {
            tail.push(piece.as_bytes(), 1_000);
        }
        let excerpt = tail.excerpt(&secrets, 1_000).unwrap();
        assert!(excerpt.contains("rejected") && !excerpt.contains("0123"), "{excerpt}");
    }
}
