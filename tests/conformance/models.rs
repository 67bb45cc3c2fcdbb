//! The list of models.

use open_agent::list_models;

use crate::server::{Wanted, check};

#[test]
fn the_model_is_on_the_list() {
    check(Wanted::Any, async |server| {
        let models = list_models(&server.options().build().unwrap()).await.unwrap();
        assert!(models.contains(&server.model), "{models:?}");
        if server.is_tiny {
            assert_eq!(models, ["tiny"]);
        }
    });
}

#[test]
fn the_list_needs_the_key_where_there_is_one() {
    check(Wanted::Keyed, async |server| {
        let with = server.options().build().unwrap();
        assert_eq!(list_models(&with).await.unwrap(), ["tiny"]);
        let without = open_agent::AgentOptions::builder().base_url(&server.base_url);
        let error = list_models(&without.model("tiny").build().unwrap()).await.unwrap_err();
        assert_eq!(error.status(), Some(401), "{error:?}");
    });
}
