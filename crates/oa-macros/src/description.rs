use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the text of doc comments as an expression, or nothing if there is none.
///
/// As in rustdoc, the indentation that all lines share and blank lines at both ends are removed.
pub(crate) fn of_docs(attributes: &[Attribute]) -> Option<TokenStream> {
    let lines: Vec<&Expr> = attributes.iter().filter_map(doc).collect();
    let texts: Option<Vec<String>> = lines.iter().map(|line| literal(line)).collect();
    match texts {
        Some(texts) => {
            let text = unindented(&texts.join("\n"));
            let text = text.trim();
            (!text.is_empty()).then(|| quote!(#text))
        }
        // Only the compiler knows the texts of other macros, such as `#[doc = include_str!("..")]`.
        None => {
            // The shared indentation is not known either, so each literal loses only the space behind `///`.
            let lines = lines.iter().map(|line| match literal(line) {
                Some(text) => text.strip_prefix(' ').unwrap_or(&text).to_token_stream(),
                None => line.to_token_stream(),
            });
            Some(quote!(::core::concat!(#(#lines, "\n"),*).trim()))
        }
    }
}

fn unindented(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let filled = text.lines().filter(|line| !line.trim().is_empty());
    let shared = filled.map(indent).min().unwrap_or(0);
    // A blank line may be shorter than the shared indentation.
    let lines: Vec<&str> = text.lines().map(|line| line.get(shared..).unwrap_or("")).collect();
    lines.join("\n")
}

/// Returns the text of a doc attribute.
fn doc(attribute: &Attribute) -> Option<&Expr> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => Some(&meta.value),
        _ => None,
    }
}

fn literal(line: &Expr) -> Option<String> {
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = line else { return None };
    Some(text.value())
}
