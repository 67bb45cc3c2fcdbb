use oa_types::{Message, ToolUseBlock};
use serde_json::json;

use crate::append::Append;
use crate::contract::expect;
use crate::contract::fixture::{at, create, id};
use crate::contract::turns::{append, turn};
use crate::error::ErrorKind;
use crate::pending::Pending;
use crate::session::{NewSession, SessionInfo};
use crate::store::SessionStore;

pub(super) async fn check(store: &dyn SessionStore) {
    let info = create(store, "pendings").await;
    let first = Append::new(info.revision, turn(1), at(2));
    let info = append(store, &info, turn(1)).await;
    let pending = waiting();

    let asked = set(store, &info, Some(pending.clone())).await;
    // An append clears what waits, so this is not as one would have left it.
    let again = store.append_once(&info.id, 0, first.clone()).await;
    expect::kind("a repeated append_once after a question", ErrorKind::Conflict, again);
    assert_ne!(asked.revision, info.revision, "a question changes the revision");
    assert_eq!(expect::stored(store, &asked).await.pending, Some(pending.clone()));
    // Of two answers, the second is a conflict.
    let late = store.set_pending(&info.id, info.revision, None, at(9)).await;
    expect::kind("a late answer", ErrorKind::Conflict, late);
    let withdrawn = set(store, &asked, None).await;
    assert_eq!(expect::stored(store, &withdrawn).await.pending, None);
    let again = store.append_once(&info.id, 0, first).await;
    assert_eq!(expect::ok("a repeated append_once", again), withdrawn);

    let asked = set(store, &withdrawn, Some(pending.clone())).await;
    let mut other = pending.clone();
    other.reason = None;
    other.turn = Vec::new();
    let asked = set(store, &asked, Some(other.clone())).await;
    assert_eq!(expect::stored(store, &asked).await.pending, Some(other));

    let titled = json!({"title": "Still waiting"}).as_object().cloned().unwrap_or_default();
    let asked = expect::ok("metadata", store.set_metadata(&asked.id, titled, at(4)).await);
    expect::stored(store, &asked).await;
    let fork = store.fork(&asked.id, 4, NewSession::new(id("pendings/fork"), at(5))).await;
    let fork = expect::ok("fork", fork);
    assert_eq!(expect::stored(store, &fork).await.pending, None, "a fork waits for nobody");

    // The turn completed.
    let settled = append(store, &asked, turn(2)).await;
    assert_eq!(expect::stored(store, &settled).await.pending, None);
    let asked = set(store, &settled, Some(pending.clone())).await;
    let rewound = store.rewind(&asked.id, asked.revision, 4, at(6)).await;
    let rewound = expect::ok("rewind", rewound);
    assert_eq!(expect::stored(store, &rewound).await.pending, None);

    let mut answered = pending;
    answered.turn = turn(2);
    let refused = store.set_pending(&rewound.id, rewound.revision, Some(answered), at(9)).await;
    expect::kind("a call with a result", ErrorKind::InvalidInput, refused);
    expect::stored(store, &rewound).await;
}

fn waiting() -> Pending {
    let call = ToolUseBlock::new("call_2", "delete", json!({"path": "Straße ☂"}));
    let turn = vec![Message::user("Tidy up."), Message::assistant(vec![call.clone().into()])];
    let mut pending = Pending::new(call, at(3)).with_turn(turn).with_reason("it deletes");
    pending.extra.insert("asked".to_owned(), json!(["somebody", null]));
    pending
}

async fn set(
    store: &dyn SessionStore,
    known: &SessionInfo,
    pending: Option<Pending>,
) -> SessionInfo {
    let set = store.set_pending(&known.id, known.revision, pending, at(3)).await;
    expect::ok("set_pending", set)
}
