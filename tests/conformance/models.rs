//! The list of models.

use open_agent::{
    AgentOptions, Message, Provider, count_text_tokens, count_tokens, json, list_models, query,
    tool,
};

use crate::server::{Wanted, check, lacking};

#[test]
fn the_model_is_listed() {
    check(Wanted::Any, async |server| {
        let models = list_models(&server.options().build().unwrap()).await.unwrap();
        if server.is_tiny {
            assert_eq!(models, ["tiny"]);
        } else if !models.contains(&server.model) {
            lacking(&format!("{:?} on its list {models:?}", server.model));
        }
    });
}

#[test]
fn listing_models_needs_the_key() {
    check(Wanted::Keyed, async |server| {
        let with = server.options().build().unwrap();
        assert_eq!(list_models(&with).await.unwrap(), ["tiny"]);
        let without = AgentOptions::builder().base_url(&server.base_url);
        let error = list_models(&without.model("tiny").build().unwrap()).await.unwrap_err();
        assert_eq!(error.status(), Some(401), "{error:?}");
    });
}

#[test]
fn counted_tokens_equal_reported_usage() {
    check(Wanted::Tiny, async |server| {
        let weather = tool("get_weather", "Tells the weather").param("city", "string");
        let weather = weather.build(|_| async { Ok(json!("fine")) });
        let prompt = "[text] What is the weather in Paris?";
        let with = || server.options().provider(Provider::LlamaCpp).seed(1).max_tokens(4);
        for options in [with(), with().system_prompt("You are brief."), with().tool(weather)] {
            let options = options.build().unwrap();
            let counted = count_tokens(&options, &[Message::user(prompt)]).await.unwrap();
            let mut answer = query(prompt, &options).await.unwrap();
            answer.text().await.unwrap();
            assert_eq!(answer.usage().unwrap().prompt_tokens, Some(counted));
            assert_eq!(answer.prompt_cut(), None);
            let alone = count_text_tokens(&options, prompt).await.unwrap();
            assert!((1..counted).contains(&alone), "{alone} of {counted}");
        }
    });
}
