use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::{
    Attribute, Error, Expr, ExprLit, GenericArgument, Ident, Lit, Meta, Pat, PatType, Path,
    PathArguments, Result, Type, TypeReference,
};

use crate::errors::Errors;

/// A parameter of the function.
pub(crate) enum Parameter {
    Argument(Box<Argument>),
    Context,
    State(Box<State>),
}

/// A parameter whose value the model chooses.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// Docs, and what serde and schemars are told.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) default: Option<DefaultValue>,
}

/// The value of an argument that the model omits.
pub(crate) enum DefaultValue {
    /// `#[default(expression)]`
    Expression(Expr),
    /// `#[default]`, with the word at its place.
    OfType(Ident),
}

/// A value from the agent's state.
pub(crate) struct State {
    /// The type behind the reference.
    pub(crate) ty: Type,
    /// True for `Option<&T>`.
    pub(crate) is_optional: bool,
}

impl Parameter {
    /// Reads a parameter, and removes the attributes that are only for the tool.
    ///
    /// Returns nothing if it makes a mistake, which is then recorded.
    pub(crate) fn take(parameter: &mut PatType, errors: &mut Errors) -> Option<Self> {
        // The marks first: `#[state]` makes a parameter state whatever its type. Without it, a `ToolContext`
        // is the context, and everything else an argument.
        let marks = Marks::take(&mut parameter.attrs, errors);
        let ty = ungrouped(&parameter.ty);
        if marks.state.is_some() {
            marks.refuse_for_model("state is not an argument of the model", errors);
            let state = State::of(ty);
            if state.is_none() {
                let message = "state is shared: take `&T`, or `Option<&T>` if it may be missing";
                errors.at(ty, message);
            }
            return state.map(|state| Self::State(Box::new(state)));
        }
        if names_context(ty) {
            errors.at(ty, "the context is borrowed: take `&ToolContext`");
            return None;
        }
        if let Type::Reference(TypeReference { mutability, elem, .. }) = ty
            && names_context(ungrouped(elem))
        {
            marks.refuse_for_model("the context is not an argument of the model", errors);
            if let Some(mutability) = mutability {
                errors.at(mutability, "the context is shared: take `&ToolContext`");
            }
            return Some(Self::Context);
        }
        let name = name(&parameter.pat, errors);
        let is_owned = is_owned(ty, errors);
        let argument = Argument {
            name: name?,
            ty: (*parameter.ty).clone(),
            attributes: marks.for_field,
            default: marks.default,
        };
        is_owned.then(|| Self::Argument(Box::new(argument)))
    }
}

impl State {
    fn of(ty: &Type) -> Option<Self> {
        let shared = |ty: &Type| match ungrouped(ty) {
            Type::Reference(TypeReference { mutability: None, elem, .. }) => Some((**elem).clone()),
            _ => None,
        };
        if let Some(ty) = shared(ty) {
            return Some(Self { ty, is_optional: false });
        }
        let Type::Path(path) = ty else { return None };
        // A macro sees names, not types: an alias of `Option` is not recognized, and reported as a mistake.
        let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
        let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
        match arguments.args.first()? {
            GenericArgument::Type(ty) => Some(Self { ty: shared(ty)?, is_optional: true }),
            _ => None,
        }
    }
}

/// The attributes of a parameter that are for the tool.
#[derive(Default)]
struct Marks {
    /// Docs, and what serde and schemars are told.
    for_field: Vec<Attribute>,
    default: Option<DefaultValue>,
    /// The word `default`, if present.
    default_mark: Option<Path>,
    state: Option<Path>,
}

impl Marks {
    fn take(attributes: &mut Vec<Attribute>, errors: &mut Errors) -> Self {
        let mut this = Self::default();
        let mut kept = Vec::new();
        for attribute in attributes.drain(..) {
            let path = attribute.path();
            let word = path.get_ident().map(ToString::to_string).unwrap_or_default();
            match &*word {
                "default" if this.default_mark.is_some() => {
                    errors.at(path, "`default` is set twice");
                }
                "state" if this.state.is_some() => errors.at(path, "`state` is set twice"),
                "default" => {
                    this.default_mark = Some(path.clone());
                    this.default = errors.ok(DefaultValue::read(&attribute.meta));
                }
                "state" => {
                    if let Some(error) = attribute.meta.require_path_only().err() {
                        errors.at_span(error.span(), "`state` takes no value: write `#[state]`");
                    }
                    this.state = Some(path.clone());
                }
                "doc" | "schemars" | "serde" => this.for_field.push(attribute),
                "allow" | "deny" | "expect" | "forbid" | "warn" => kept.push(attribute),
                "cfg" | "cfg_attr" => {
                    errors.at(path, "parameters of a tool cannot depend on a `cfg`");
                }
                _ => {
                    let message = "unknown attribute: a parameter of a tool takes `default`, \
                                   `state`, `serde` and `schemars`";
                    errors.at(path, message);
                }
            }
        }
        *attributes = kept;
        this
    }

    /// Records attributes that only arguments may have, for a parameter that is not one.
    fn refuse_for_model(&self, message: &str, errors: &mut Errors) {
        let others =
            self.for_field.iter().map(Attribute::path).filter(|path| !path.is_ident("doc"));
        for path in self.default_mark.iter().chain(others) {
            errors.at(path, message);
        }
    }
}

impl DefaultValue {
    fn read(meta: &Meta) -> Result<Self> {
        match meta {
            Meta::Path(path) => Ok(Self::OfType(path.require_ident()?.clone())),
            Meta::List(list) if list.tokens.is_empty() => {
                let message =
                    "expected a value: `#[default(3)]`, or `#[default]` without parentheses";
                Err(Error::new_spanned(list, message))
            }
            Meta::List(list) => list.parse_args_with(|input: ParseStream<'_>| {
                let value = input.parse()?;
                match input.is_empty() {
                    true => Ok(Self::Expression(value)),
                    false => Err(input.error("expected one value: `#[default(3)]`")),
                }
            }),
            Meta::NameValue(meta) => {
                let message = "the value goes in parentheses: `#[default(3)]`";
                Err(Error::new_spanned(meta.eq_token, message))
            }
        }
    }

    /// Returns true for a string literal, which is converted to the type of the parameter.
    pub(crate) fn is_text(expression: &Expr) -> bool {
        matches!(expression, Expr::Lit(ExprLit { lit: Lit::Str(_), .. }))
    }
}

/// Returns the name of a parameter, which the model sees.
fn name(pattern: &Pat, errors: &mut Errors) -> Option<Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            Some(name.ident.clone())
        }
        Pat::TupleStruct(pattern) if pattern.path.is_ident("State") => {
            errors.at(pattern, "state is borrowed, without a pattern: `#[state] name: &T`");
            None
        }
        other => {
            errors
                .at(other, "the model needs a name for each argument: destructure it in the body");
            None
        }
    }
}

/// Checks that the type of an argument has a name and borrows nothing, and records a mistake if not.
fn is_owned(ty: &Type, errors: &mut Errors) -> bool {
    match offense(ty.to_token_stream()) {
        None => true,
        Some((TokenTree::Ident(keyword), _)) => {
            let message = "an argument of the model needs a type with a name, not `impl Trait`";
            errors.at(keyword, message);
            false
        }
        Some((reference, behind)) => {
            let instead = match behind {
                Some(TokenTree::Ident(word)) if word == "str" => "take a `String`",
                Some(TokenTree::Group(_)) => "take a `Vec`",
                _ => "take it without `&`",
            };
            let message = format!(
                "arguments of the model are owned: {instead} (only `#[state] name: &T` and \
                 `&ToolContext` are borrowed)"
            );
            errors.at(reference, message);
            false
        }
    }
}

/// Returns the first `impl` or `&` in a type, and the first token of what a `&` borrows.
fn offense(tokens: TokenStream) -> Option<(TokenTree, Option<TokenTree>)> {
    // Tokens rather than parsed types: a `&` counts wherever it is, such as in `Vec<(&str, u8)>`.
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Ident(word) if word == "impl" => return Some((token, None)),
            TokenTree::Punct(sign) if sign.as_char() == '&' => {
                let borrowed = match tokens.next() {
                    // A lifetime is a quote and its name.
                    Some(TokenTree::Punct(quote)) if quote.as_char() == '\'' => tokens.nth(1),
                    other => other,
                };
                return Some((token, borrowed));
            }
            TokenTree::Group(group) => {
                if let Some(found) = offense(group.stream()) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

fn names_context(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "ToolContext")
}

/// Returns a type without the invisible group around what a `macro_rules!` was given.
fn ungrouped(mut ty: &Type) -> &Type {
    while let Type::Group(group) = ty {
        ty = &group.elem;
    }
    ty
}
