//! The list of models.

use open_agent::{AgentOptions, list_models};

use crate::server::{Wanted, check, lacking};

#[test]
fn the_model_is_on_the_list() {
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
fn the_list_needs_the_key_where_there_is_one() {
    check(Wanted::Keyed, async |server| {
        let with = server.options().build().unwrap();
        assert_eq!(list_models(&with).await.unwrap(), ["tiny"]);
        let without = AgentOptions::builder().base_url(&server.base_url);
        let error = list_models(&without.model("tiny").build().unwrap()).await.unwrap_err();
        assert_eq!(error.status(), Some(401), "{error:?}");
    });
}
