//! Expansions, as a person would write them.

use insta::assert_snapshot;
use proc_macro2::TokenStream;
use quote::quote;

use super::expand;

fn expanded(options: TokenStream, function: TokenStream) -> String {
    let file = syn::parse2(expand(options, function)).unwrap();
    prettyplease::unparse(&file)
}

#[test]
fn every_parameter_kind_is_expanded() {
    let function = quote! {
        /// Returns the weather of a city.
        ///
        /// For at most a week.
        pub async fn get_weather(
            /// The city, e.g. Paris.
            city: String,
            #[default(Unit::Celsius)] unit: Unit,
            #[default("en")] language: String,
            #[default]
            #[schemars(range(max = 7))]
            days: u8,
            station: Option<String>,
            context: &ToolContext,
            #[state] forecasts: &Forecasts,
            #[state] cache: Option<&Cache>,
        ) -> Result<Weather, Error> {
            forecasts.find(city).await
        }
    };
    assert_snapshot!(expanded(quote!(), function), @r#"
    /// Returns the weather of a city.
    ///
    /// For at most a week.
    pub async fn get_weather(
        city: String,
        unit: Unit,
        language: String,
        days: u8,
        station: Option<String>,
        context: &ToolContext,
        forecasts: &Forecasts,
        cache: Option<&Cache>,
    ) -> Result<Weather, Error> {
        forecasts.find(city).await
    }
    /// The tool of the function [`get_weather`](fn@get_weather).
    #[non_exhaustive]
    pub enum get_weather {}
    impl get_weather {
        /// Returns the function as a tool.
        #[must_use]
        pub fn tool() -> ::open_agent::FnTool {
            #[derive(
                ::open_agent::__private::serde::Deserialize,
                ::open_agent::__private::schemars::JsonSchema
            )]
            #[serde(crate = "::open_agent::__private::serde")]
            #[schemars(crate = "::open_agent::__private::schemars")]
            struct __Arguments {
                /// The city, e.g. Paris.
                city: String,
                #[serde(default = "__default_unit")]
                unit: Unit,
                #[serde(default = "__default_language")]
                language: String,
                #[schemars(range(max = 7))]
                #[serde(default = "__default_days")]
                days: u8,
                station: Option<String>,
            }
            #[allow(clippy::unnecessary_wraps)]
            fn __default_unit() -> Unit {
                Unit::Celsius
            }
            #[allow(clippy::unnecessary_wraps)]
            fn __default_language() -> String {
                ::core::convert::Into::into("en")
            }
            #[allow(clippy::unnecessary_wraps)]
            fn __default_days() -> u8 {
                ::core::default::Default::default()
            }
            ::open_agent::tool(
                    "get_weather",
                    "Returns the weather of a city.\n\nFor at most a week.",
                )
                .typed_with_context(|arguments: __Arguments, context| async move {
                    let result = get_weather(
                            arguments.city,
                            arguments.unit,
                            arguments.language,
                            arguments.days,
                            arguments.station,
                            &context,
                            context.require_state::<Forecasts>()?,
                            context.state::<Cache>(),
                        )
                        .await?;
                    ::open_agent::__private::to_value(result)
                })
        }
    }
    "#);
}

#[test]
fn every_option_is_expanded() {
    let options = quote! {
        name = "delete-file", description = DESCRIPTION, category = "write", timeout = SECOND,
        max_parallel = 2, exclusive, cacheable, crate = "crate::sdk"
    };
    let function = quote! {
        /// Docs for people.
        #[cfg(unix)]
        fn delete(path: String, force: bool) -> Outcome {
            Ok(())
        }
    };
    assert_snapshot!(expanded(options, function), @r#"
    /// Docs for people.
    #[cfg(unix)]
    fn delete(path: String, force: bool) -> Outcome {
        Ok(())
    }
    #[cfg(unix)]
    /// The tool of the function [`delete`](fn@delete).
    #[non_exhaustive]
    enum delete {}
    #[cfg(unix)]
    impl delete {
        /// Returns the function as a tool.
        #[must_use]
        fn tool() -> crate::sdk::FnTool {
            #[derive(
                crate::sdk::__private::serde::Deserialize,
                crate::sdk::__private::schemars::JsonSchema
            )]
            #[serde(crate = "crate::sdk::__private::serde")]
            #[schemars(crate = "crate::sdk::__private::schemars")]
            struct __Arguments {
                path: String,
                force: bool,
            }
            crate::sdk::tool("delete-file", DESCRIPTION)
                .category("write")
                .timeout(SECOND)
                .max_parallel(2)
                .exclusive()
                .cacheable()
                .typed_blocking(|arguments: __Arguments| {
                    use crate::sdk::__private::PlainValue as _;
                    crate::sdk::__private::Returned::new(
                            delete(arguments.path, arguments.force),
                        )
                        .into_result()
                })
        }
    }
    "#);
}

#[test]
fn no_arguments_expand_to_build() {
    let function = quote! {
        /// Returns the time.
        pub(crate) async fn now() -> (u8, u8) {
            (12, 0)
        }
    };
    assert_snapshot!(expanded(quote!(), function), @r#"
    /// Returns the time.
    pub(crate) async fn now() -> (u8, u8) {
        (12, 0)
    }
    /// The tool of the function [`now`](fn@now).
    #[non_exhaustive]
    pub(crate) enum now {}
    impl now {
        /// Returns the function as a tool.
        #[must_use]
        pub(crate) fn tool() -> ::open_agent::FnTool {
            ::open_agent::tool("now", "Returns the time.")
                .build(|_| async move { ::open_agent::__private::to_value(now().await) })
        }
    }
    "#);
}

#[test]
fn state_alone_needs_no_arguments_type() {
    let function = quote! {
        #[doc = include_str!("stock.md")]
        fn stock(#[state] stock: &Stock) {}
    };
    assert_snapshot!(expanded(quote!(), function), @r#"
    #[doc = include_str!("stock.md")]
    fn stock(stock: &Stock) {}
    /// The tool of the function [`stock`](fn@stock).
    #[non_exhaustive]
    enum stock {}
    impl stock {
        /// Returns the function as a tool.
        #[must_use]
        fn tool() -> ::open_agent::FnTool {
            ::open_agent::tool(
                    "stock",
                    ::core::concat!(include_str!("stock.md"), "\n").trim(),
                )
                .build_blocking_with_context(|_, context| {
                    ::open_agent::__private::to_value(
                        stock(context.require_state::<Stock>()?),
                    )
                })
        }
    }
    "#);
}

/// Everything else of a function with a mistake is there, so that nobody else has an error.
#[test]
fn mistakes_keep_the_function() {
    let function = quote! {
        /// Takes a reference, and an argument with docs.
        async fn search(text: &str, /** Docs. */ #[default(3)] limit: u8) -> u8 {
            limit
        }
    };
    assert_snapshot!(expanded(quote!(exclusive = true), function), @r#"
    ::core::compile_error! {
        "`exclusive` takes no value: write `#[tool(exclusive)]`"
    }
    ::core::compile_error! {
        "arguments of the model are owned: take a `String` (only `#[state] name: &T` and `&ToolContext` are borrowed)"
    }
    /// Takes a reference, and an argument with docs.
    async fn search(text: &str, limit: u8) -> u8 {
        limit
    }
    /// The tool of the function [`search`](fn@search).
    #[non_exhaustive]
    enum search {}
    impl search {
        /// Returns the function as a tool.
        #[must_use]
        fn tool() -> ::open_agent::FnTool {
            ::core::unreachable!()
        }
    }
    "#);
}

#[test]
fn methods_get_no_tool() {
    let function = quote! {
        /// Is called on something.
        async fn method(&self) {}
    };
    assert_snapshot!(expanded(quote!(), function), @r#"
    ::core::compile_error! {
        "a tool is a function without `self`: take shared values as `#[state] name: &T`"
    }
    /// Is called on something.
    async fn method(&self) {}
    "#);
}
