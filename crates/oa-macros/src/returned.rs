use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericArgument, Ident, Path, PathArguments, ReturnType, Signature, Type};

/// The return type of a function, as far as its signature shows it.
pub(crate) enum Returned {
    /// A type that is called `Result`, such as `anyhow::Result<T>`.
    Result { value: Span, error: Span },
    /// A type whose name may be that of a `Result`.
    Unknown(Span),
    /// A type that is not a `Result`.
    Value(Span),
}

impl Returned {
    pub(crate) fn of(signature: &Signature) -> Self {
        let ty = match &signature.output {
            ReturnType::Default => return Self::Value(signature.ident.span()),
            ReturnType::Type(_, ty) => &**ty,
        };
        let path = match ty {
            Type::Path(path) => &path.path,
            Type::Array(_) | Type::ImplTrait(_) | Type::Reference(_) | Type::Tuple(_) => {
                return Self::Value(ty.span());
            }
            _ => return Self::Unknown(ty.span()),
        };
        // Any other name may be an alias of a `Result`, which only the compiler knows.
        let Some(last) = path.segments.last().filter(|last| last.ident == "Result") else {
            return Self::Unknown(ty.span());
        };
        let arguments = match &last.arguments {
            PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
            PathArguments::None | PathArguments::Parenthesized(_) => None,
        };
        let types = arguments.into_iter().flatten().filter_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty.span()),
            _ => None,
        });
        let mut types = types.collect::<Vec<_>>().into_iter();
        let value = types.next().unwrap_or_else(|| last.ident.span());
        Self::Result { value, error: types.next().unwrap_or_else(|| last.ident.span()) }
    }

    /// Writes the conversion of a return value: to JSON, or to an error for the model.
    ///
    /// Each part has the span of the type that it requires something of, because the compiler reports mistakes there.
    pub(crate) fn written(
        &self,
        facade: &Path,
        call: impl FnOnce(Span) -> TokenStream,
    ) -> TokenStream {
        match *self {
            Self::Result { value, error } => {
                let call = call(own(error));
                let result = Ident::new("result", Span::mixed_site().located_at(value));
                let unwrap = quote_spanned!(own(error)=> let #result = #call?;);
                let facade = moved(facade, value);
                let write = quote_spanned!(own(value)=> #facade::__private::to_value(#result));
                quote!(#unwrap #write)
            }
            Self::Unknown(ty) => {
                // Method lookup prefers the inherent method that `Returned` has for every `Result`.
                let (facade, call) = (moved(facade, ty), call(own(ty)));
                quote_spanned! {own(ty)=>
                    use #facade::__private::PlainValue as _;
                    #facade::__private::Returned::new(#call).into_result()
                }
            }
            Self::Value(ty) => {
                let (facade, call) = (moved(facade, ty), call(own(ty)));
                quote_spanned!(own(ty)=> #facade::__private::to_value(#call))
            }
        }
    }
}

/// Returns a span whose tokens are the macro's own, so that lints for the user's code ignore them.
pub(crate) fn own(place: Span) -> Span {
    Span::call_site().located_at(place)
}

/// Returns a path with another span, resolved as before.
fn moved(path: &Path, place: Span) -> TokenStream {
    let tokens = path.to_token_stream().into_iter();
    let tokens = tokens.map(|mut token| {
        token.set_span(token.span().located_at(place));
        token
    });
    tokens.collect()
}
