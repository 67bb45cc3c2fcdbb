use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{Error, Result};

/// The mistakes found so far. All are reported at once, each at its token.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Records a mistake in a piece of the source.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.add(Error::new_spanned(tokens, message));
    }

    /// Records a mistake at a place.
    pub(crate) fn at_span(&mut self, span: Span, message: impl std::fmt::Display) {
        self.add(Error::new(span, message));
    }

    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(known) => known.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Records the error of a result.
    pub(crate) fn ok<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Writes each mistake as a `compile_error!`.
impl ToTokens for Errors {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.0.as_ref().map(Error::to_compile_error));
    }
}
