use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Ident, Lit, LitStr, Path, Token, parse_quote};

use crate::errors::Errors;
use crate::name::check_name;

/// The options, in the order in which messages list them.
const KNOWN: &str = "`name`, `description`, `category`, `timeout`, `max_parallel`, `output_schema`, \
                     `exclusive`, `cacheable` and `crate`";

/// The options in `#[tool(..)]`.
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<Expr>,
    /// Calls of the builder: a method, and its argument.
    pub(crate) settings: Vec<(Ident, Option<Expr>)>,
    /// The path under which the expansion finds the facade.
    pub(crate) facade: Path,
}

impl Options {
    /// Reads the options, and records the mistakes in them.
    pub(crate) fn read(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut this = Self {
            name: None,
            description: None,
            settings: Vec::new(),
            facade: parse_quote!(::open_agent),
        };
        let parser = |input: ParseStream<'_>| {
            Punctuated::<Entry, Token![,]>::parse_terminated_with(input, Entry::parse)
        };
        let mut seen: Vec<String> = Vec::new();
        for Entry { key, value } in errors.ok(parser.parse2(tokens)).into_iter().flatten() {
            let name = key.to_string();
            if seen.contains(&name) {
                errors.at(&key, format!("`{name}` is set twice"));
                continue;
            }
            this.set(&name, &key, value, errors);
            seen.push(name);
        }
        this
    }

    fn set(&mut self, name: &str, key: &Ident, value: Option<Expr>, errors: &mut Errors) {
        match (name, value) {
            ("cacheable" | "exclusive", None) => self.settings.push((key.clone(), None)),
            ("cacheable" | "exclusive", Some(value)) => {
                errors.at(value, format!("`{name}` takes no value: write `#[tool({name})]`"));
            }
            ("category" | "output_schema" | "timeout", Some(value)) => {
                self.settings.push((key.clone(), Some(value)));
            }
            ("crate", Some(value)) => {
                if let Some(path) = text(value, name, errors) {
                    match path.parse_with(Path::parse_mod_style) {
                        Ok(path) => self.facade = path,
                        Err(_) => {
                            errors.at(path, "`crate` must be a path: `crate = \"sdk::agents\"`");
                        }
                    }
                }
            }
            ("description", Some(value)) => self.description = Some(value),
            ("max_parallel", Some(value)) => {
                // The value of any other expression is checked by the builder.
                if is_zero(&value) {
                    errors.at(&value, "`max_parallel` must be at least 1");
                }
                self.settings.push((key.clone(), Some(value)));
            }
            ("name", Some(value)) => {
                self.name = text(value, name, errors);
                if let Some(name) = &self.name
                    && let Err(message) = check_name(&name.value())
                {
                    errors.at(name, message);
                }
            }
            ("category" | "crate" | "description" | "name", None) => {
                errors.at(key, format!("`{name}` needs a value: `{name} = \"..\"`"));
            }
            ("max_parallel", None) => {
                errors.at(key, "`max_parallel` needs a value: `max_parallel = 2`");
            }
            ("output_schema", None) => {
                let example = "`output_schema = json!({ .. })`";
                errors.at(key, format!("`output_schema` needs a value: {example}"));
            }
            ("timeout", None) => {
                let example = "`timeout = Duration::from_secs(10)`";
                errors.at(key, format!("`timeout` needs a value: {example}"));
            }
            ("blocking", _) => {
                let how = "a function that is not `async` already runs on the blocking pool";
                errors.at(key, format!("`blocking` is not an option: {how}"));
            }
            (_, _) => errors.at(key, format!("unknown option `{name}`: the options are {KNOWN}")),
        }
    }
}

/// One option: `key` or `key = value`.
struct Entry {
    key: Ident,
    value: Option<Expr>,
}

impl Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        // `crate` is a keyword.
        if !input.peek(Ident::peek_any) {
            return Err(input.error(format!("expected an option: {KNOWN}")));
        }
        let key = input.call(Ident::parse_any)?;
        let value = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None if input.is_empty() || input.peek(Token![,]) => None,
            None => return Err(input.error("expected `,`, or `=` and a value")),
        };
        Ok(Self { key, value })
    }
}

/// Returns the text of a value that must be a string literal.
fn text(value: Expr, name: &str, errors: &mut Errors) -> Option<LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
        other => {
            errors.at(other, format!("`{name}` must be a string literal"));
            None
        }
    }
}

fn is_zero(value: &Expr) -> bool {
    let Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) = value else { return false };
    number.base10_parse::<u64>().is_ok_and(|number| number == 0)
}
