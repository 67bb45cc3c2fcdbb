use oa_types::Message;
use serde_json::{Value, json};

use crate::contract::expect;
use crate::contract::fixture::{at, id};
use crate::contract::turns::{append, turn};
use crate::error::ErrorKind;
use crate::session::NewSession;
use crate::store::SessionStore;

pub(super) async fn check(store: &dyn SessionStore) {
    let new = |text: &str| NewSession::new(id(text), at(7));
    let source = expect::ok("create", store.create(new("forks/source").with_title("Rain")).await);
    let source = append(store, &source, turn(1)).await;
    let source = append(store, &source, turn(2)).await;
    let all: Vec<Message> = turn(1).into_iter().chain(turn(2)).collect();

    for keep in [0, 1, 3, 4, 8] {
        let members = json!({"from": "source"}).as_object().cloned().unwrap_or_default();
        let fork = new(&format!("forks/{keep}")).with_metadata(members);
        let fork = expect::ok("fork", store.fork(&source.id, keep, fork).await);
        assert_eq!((fork.created_at, fork.updated_at, fork.message_count), (at(7), at(7), keep));
        let expected = json!({"title": "Rain", "from": "source"});
        assert_eq!(Value::Object(fork.metadata.clone()), expected);
        assert_eq!(expect::stored(store, &fork).await.messages, all[..keep]);

        let longer = append(store, &fork, turn(9)).await;
        let expected = [&all[..keep], &turn(9)].concat();
        assert_eq!(expect::stored(store, &longer).await.messages, expected);
        assert_eq!(expect::stored(store, &source).await.messages, all, "the source has changed");
    }
    for keep in [2, 6, 9] {
        let fork = store.fork(&source.id, keep, new("forks/refused")).await;
        expect::kind(&format!("a fork at {keep}"), ErrorKind::InvalidInput, fork);
    }
    expect::kind("refused", ErrorKind::NotFound, store.load(&id("forks/refused")).await);
    let taken = store.fork(&source.id, 0, new("forks/4")).await;
    expect::kind("a fork over another", ErrorKind::AlreadyExists, taken);
    expect::ok("delete", store.delete(&source.id).await);
    let fork = expect::ok("load", store.load(&id("forks/8")).await);
    assert_eq!(fork.messages.len(), 12, "a fork needs its source");
}
