use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{FnArg, Ident, Item, ItemFn, Receiver, Safety, Signature};

use crate::errors::Errors;
use crate::name::check_name;
use crate::options::Options;
use crate::parameter::Parameter;

/// The function under `#[tool]`.
pub(crate) struct Function {
    /// The function as written, without the parameter attributes that are for the tool.
    pub(crate) item: ItemFn,
    /// The parameters, without invalid ones.
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) has_receiver: bool,
}

impl Function {
    /// Reads a function, and records what keeps it from being a tool.
    ///
    /// Returns nothing for any other item.
    pub(crate) fn read(tokens: TokenStream, errors: &mut Errors) -> Option<Self> {
        let mut item = match syn::parse2(tokens) {
            Ok(Item::Fn(item)) => item,
            Ok(other) => {
                errors.at(keyword(&other), "`#[tool]` goes on a function");
                return None;
            }
            Err(error) => {
                errors.add(error);
                return None;
            }
        };
        refuse_qualifiers(&item.sig, errors);
        let (mut parameters, mut has_receiver) = (Vec::new(), false);
        let mut has_context = false;
        for parameter in &mut item.sig.inputs {
            let parameter = match parameter {
                FnArg::Receiver(receiver) => {
                    refuse_receiver(receiver, errors);
                    has_receiver = true;
                    continue;
                }
                FnArg::Typed(parameter) => parameter,
            };
            let taken = Parameter::take(parameter, errors);
            if matches!(taken, Some(Parameter::Context)) {
                if has_context {
                    errors.at(&parameter.ty, "a tool has one context");
                }
                has_context = true;
            }
            parameters.extend(taken);
        }
        Some(Self { item, parameters, has_receiver })
    }

    pub(crate) fn name(&self) -> &Ident {
        &self.item.sig.ident
    }

    /// Checks the name of the function, if it is the tool's name.
    pub(crate) fn check_name(&self, options: &Options, errors: &mut Errors) {
        if options.name.is_none()
            && let Err(message) = check_name(&self.name().unraw().to_string())
        {
            errors.at(self.name(), format!("{message}: set one with `#[tool(name = \"..\")]`"));
        }
    }
}

fn refuse_qualifiers(signature: &Signature, errors: &mut Errors) {
    if let Some(keyword) = &signature.constness {
        errors.at(keyword, "a tool cannot be `const`");
    }
    if let Safety::Unsafe(keyword) = &signature.safety {
        errors.at(keyword, "a tool cannot be `unsafe`: a model calls it as it likes");
    }
    if let Some(abi) = &signature.abi {
        errors.at(abi, "a tool cannot be `extern`");
    }
    if !signature.generics.params.is_empty() {
        let message = "a tool cannot be generic: its schema is that of one type";
        errors.at(&signature.generics.params, message);
    }
}

fn refuse_receiver(receiver: &Receiver, errors: &mut Errors) {
    let message = "a tool is a function without `self`: take shared values as `#[state] name: &T`";
    errors.at(receiver, message);
}

/// Returns the part of an item at which a mistake is reported, which is not the whole item.
fn keyword(item: &Item) -> TokenStream {
    match item {
        Item::Const(item) => item.const_token.to_token_stream(),
        Item::Enum(item) => item.enum_token.to_token_stream(),
        Item::Impl(item) => item.impl_token.to_token_stream(),
        Item::Mod(item) => item.mod_token.to_token_stream(),
        Item::Static(item) => item.static_token.to_token_stream(),
        Item::Struct(item) => item.struct_token.to_token_stream(),
        Item::Trait(item) => item.trait_token.to_token_stream(),
        Item::Type(item) => item.type_token.to_token_stream(),
        other => other.to_token_stream(),
    }
}
