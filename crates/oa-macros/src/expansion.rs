use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Ident, LitStr, Path};

use crate::description;
use crate::errors::Errors;
use crate::function::Function;
use crate::options::Options;
use crate::parameter::{Argument, DefaultValue, Parameter, State};
use crate::returned::{Returned, own};

/// Expands `#[tool(options)]` on a function.
///
/// With a mistake, the function and the name of its tool stay, so that the mistake is the only error.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = Options::read(options, &mut errors);
    let Some(function) = Function::read(item.clone(), &mut errors) else {
        return quote!(#errors #item);
    };
    function.check_name(&options, &mut errors);
    let description = match &options.description {
        Some(description) => description.to_token_stream(),
        None => description::of_docs(&function.item.attrs).unwrap_or_else(|| {
            let message = "the model needs a description of the tool: add a doc comment, or \
                           `#[tool(description = \"..\")]`";
            errors.at(function.name(), message);
            TokenStream::new()
        }),
    };
    let expansion = Expansion { options: &options, function: &function, description };
    if errors.is_empty() {
        let build = expansion.build();
        expansion.with_tool(&build)
    } else if function.has_receiver {
        // A type cannot be declared beside a method.
        let item = &function.item;
        quote!(#errors #item)
    } else {
        let tool = expansion.with_tool(&quote!(::core::unreachable!()));
        quote!(#errors #tool)
    }
}

struct Expansion<'a> {
    options: &'a Options,
    function: &'a Function,
    description: TokenStream,
}

impl Expansion<'_> {
    /// Writes the function, and beside it a type of the same name that makes the tool.
    ///
    /// Types and functions have separate namespaces, so the two do not conflict.
    fn with_tool(&self, body: &TokenStream) -> TokenStream {
        let (item, facade) = (&self.function.item, &self.options.facade);
        let (visibility, name) = (&item.vis, at(self.function.name(), item.sig.ident.span()));
        let attributes = |word: &'static str| -> Vec<&Attribute> {
            item.attrs.iter().filter(|attribute| attribute.path().is_ident(word)).collect()
        };
        // Under the same `cfg` as the function, or the tool would name a function that does not exist.
        let (conditions, deprecated) = (attributes("cfg"), attributes("deprecated"));
        // The deprecation warning is for users of the tool, not for the generated code.
        let quiet = (!deprecated.is_empty()).then(|| quote!(#[allow(deprecated)]));
        let docs = format!(" The tool of the function [`{name}`](fn@{name}).");
        quote! {
            #item

            #(#conditions)*
            #(#deprecated)*
            #[doc = #docs]
            #[non_exhaustive]
            #visibility enum #name {}

            #(#conditions)*
            #quiet
            impl #name {
                /// Returns the function as a tool.
                #[must_use]
                #visibility fn tool() -> #facade::FnTool {
                    #body
                }
            }
        }
    }

    /// Writes the tool as a person would with the builder.
    fn build(&self) -> TokenStream {
        let (facade, description) = (&self.options.facade, &self.description);
        let arguments: Vec<&Argument> =
            self.function.parameters.iter().filter_map(argument).collect();
        // Every other parameter is read from the context, state included.
        let takes_context = arguments.len() < self.function.parameters.len();
        let signature = &self.function.item.sig;
        let is_async = signature.asyncness.is_some();

        let name = match &self.options.name {
            Some(name) => name.clone(),
            None => LitStr::new(&self.function.name().unraw().to_string(), Span::call_site()),
        };
        let settings = self.options.settings.iter().map(|(method, value)| quote!(.#method(#value)));
        let build = format_ident!(
            "{}{}{}",
            if arguments.is_empty() { "build" } else { "typed" },
            if is_async { "" } else { "_blocking" },
            if takes_context { "_with_context" } else { "" },
        );
        let result = self.result();
        let result = if is_async { quote!(async move { #result }) } else { quote!({ #result }) };
        let first = match arguments.is_empty() {
            true => quote!(_),
            false => {
                let name = local("arguments");
                quote!(#name: __Arguments)
            }
        };
        let second = takes_context.then(|| local("context"));
        let second = second.map(|context| quote!(, #context));
        let arguments = (!arguments.is_empty()).then(|| declare(&arguments, facade));
        quote! {
            #arguments
            #facade::tool(#name, #description)
                #(#settings)*
                .#build(|#first #second| #result)
        }
    }

    /// Writes the call of the function, and the conversion of the value that it returns.
    fn result(&self) -> TokenStream {
        let signature = &self.function.item.sig;
        Returned::of(signature).written(&self.options.facade, |span| {
            let function = at(&signature.ident, span);
            let values = self.function.parameters.iter().map(value);
            let wait = signature.asyncness.map(|_| quote_spanned!(span=> .await));
            quote_spanned!(span=> #function(#(#values),*)#wait)
        })
    }
}

/// Writes the type of the arguments, and a function for each default.
fn declare(arguments: &[&Argument], facade: &Path) -> TokenStream {
    let fields = arguments.iter().map(|Argument { name, ty, attributes, default }| {
        let default = default.as_ref().map(|_| {
            let function = default_of(name).to_string();
            quote!(#[serde(default = #function)])
        });
        quote!(#(#attributes)* #default #name: #ty)
    });
    let defaults = arguments.iter().filter_map(|Argument { name, ty, default, .. }| {
        let function = default_of(name);
        let value = match default.as_ref()? {
            // So that `#[default("en")]` fits a `String`.
            DefaultValue::Expression(text) if DefaultValue::is_text(text) => {
                quote!(::core::convert::Into::into(#text))
            }
            DefaultValue::Expression(value) => value.to_token_stream(),
            // A function, although serde has a keyword for it: so the compiler reports a type without `Default` here.
            DefaultValue::OfType(word) => {
                quote_spanned!(own(word.span())=> ::core::default::Default::default())
            }
        };
        // The user may have asked for a function that always returns `Some`.
        Some(quote! {
            #[allow(clippy::unnecessary_wraps)]
            fn #function() -> #ty {
                #value
            }
        })
    });
    let private = quote!(#facade::__private);
    let [serde, schemars] = ["serde", "schemars"].map(|name| {
        let name = format_ident!("{name}");
        quote!(#private::#name).to_string().replace(' ', "")
    });
    quote! {
        #[derive(#private::serde::Deserialize, #private::schemars::JsonSchema)]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
        struct __Arguments {
            #(#fields,)*
        }
        #(#defaults)*
    }
}

fn argument(parameter: &Parameter) -> Option<&Argument> {
    match parameter {
        Parameter::Argument(argument) => Some(argument),
        Parameter::Context | Parameter::State(_) => None,
    }
}

/// Writes the value that the function gets for a parameter.
fn value(parameter: &Parameter) -> TokenStream {
    let context = local("context");
    match parameter {
        Parameter::Argument(argument) => {
            let (arguments, name) = (local("arguments"), &argument.name);
            quote!(#arguments.#name)
        }
        Parameter::Context => quote!(&#context),
        Parameter::State(state) => {
            let State { ty, is_optional } = &**state;
            let span = own(ty.span());
            match is_optional {
                true => quote_spanned!(span=> #context.state::<#ty>()),
                false => quote_spanned!(span=> #context.require_state::<#ty>()?),
            }
        }
    }
}

/// Returns the name of the function that makes a default.
fn default_of(argument: &Ident) -> Ident {
    format_ident!("__default_{}", argument.unraw(), span = own(argument.span()))
}

/// Returns a variable that the user's code can neither name nor shadow.
fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Returns a name as the macro's own, with this span.
fn at(name: &Ident, span: Span) -> Ident {
    let mut name = name.clone();
    name.set_span(own(span));
    name
}

#[cfg(test)]
mod tests;
