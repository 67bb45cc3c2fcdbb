//! Text from outside is data, whatever it looks like.

use oa_session::contract::block_on;
use oa_session::{List, NewSession, SessionId, SessionStore};
use oa_types::Message;

use crate::{Place, append, at, create, id};

const TEXTS: [&str; 8] = [
    "'; DROP TABLE sessions; --",
    "\" OR 1 = 1 --",
    "$1",
    "$$; DELETE FROM messages; $$",
    "\\'; SELECT pg_sleep(60); --",
    "%s%n{}",
    "ǅ ☂ 𝄞",
    "a",
];

#[test]
fn ids_titles_and_messages_are_parameters() {
    let Some(place) = Place::new() else { return };
    let store = place.open().unwrap();
    for text in TEXTS {
        let session = NewSession::new(SessionId::new(text).unwrap(), at(1)).with_title(text);
        let info = block_on(store.create(session)).unwrap();
        append(&store, &info, vec![Message::user(text), Message::assistant(vec![])]).unwrap();
    }
    for text in TEXTS {
        let session = block_on(store.load(&id(text))).unwrap();
        assert_eq!(session.info.title(), Some(text));
        assert_eq!(session.messages[0], Message::user(text));
        let page = block_on(store.list(List::new(1).after(oa_session::Cursor::of(&session.info))));
        assert!(page.unwrap().sessions.iter().all(|found| found.id.as_str() > text));
    }
    // Ordered by bytes, whatever the language of the database.
    let page = block_on(store.list(List::new(10))).unwrap();
    let mut expected = TEXTS;
    expected.sort_unstable();
    let ids: Vec<&str> = page.sessions.iter().map(|session| session.id.as_str()).collect();
    assert_eq!(ids, expected);
    for text in TEXTS {
        block_on(store.delete(&id(text))).unwrap();
    }
}

#[test]
fn nul_characters_are_stored() {
    let Some(place) = Place::new() else { return };
    let store = place.open().unwrap();
    let info = create(&store, "a");
    let messages = vec![Message::user("a\0b\u{1}"), Message::assistant(vec![])];
    append(&store, &info, messages.clone()).unwrap();
    assert_eq!(block_on(store.load(&info.id)).unwrap().messages, messages);
}
