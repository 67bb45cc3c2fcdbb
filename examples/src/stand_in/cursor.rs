use super::token::Token;

/// A position in a prompt.
#[derive(Debug)]
pub(crate) struct Cursor {
    tokens: Vec<Token>,
    at: usize,
}

impl Cursor {
    pub(crate) fn new(tokens: Vec<Token>) -> Self {
        Self { tokens, at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    pub(crate) fn next(&mut self) -> Option<Token> {
        let token = self.peek();
        self.at += usize::from(token.is_some());
        token
    }

    /// Advances if this token is next.
    pub(crate) fn eat(&mut self, token: Token) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    /// Skips all tokens of a kind and returns them.
    pub(crate) fn skip(&mut self, is_skipped: impl Fn(&Token) -> bool) -> Vec<Token> {
        let rest = self.tokens[self.at..].iter().copied();
        let skipped: Vec<_> = rest.take_while(is_skipped).collect();
        self.at += skipped.len();
        skipped
    }

    pub(crate) fn place(&self) -> usize {
        self.at
    }

    pub(crate) fn go_to(&mut self, place: usize) {
        self.at = place;
    }
}
