use oa_types::{History, Message, MessageRole, Outcome};

#[test]
fn a_clone_is_shared_and_never_changes() {
    let mut history = History::from(vec![Message::user("Hi")]);
    let snapshot = history.clone();
    assert!(std::ptr::eq(snapshot.as_ptr(), history.as_ptr()));
    history.make_mut().push(Message::system("Be brief."));
    assert_eq!((snapshot.len(), history.len()), (1, 2));
    drop(snapshot);

    // Without other clones, nothing is copied.
    history.make_mut().reserve(10);
    let place = history.as_ptr();
    drop(history.clone());
    history.make_mut().push(Message::user("Hm"));
    assert_eq!(history.as_ptr(), place);
}

#[test]
fn history_is_a_slice_stored_as_a_list() {
    let history: History =
        [Message::system("Be brief."), Message::user("Hi")].into_iter().collect();
    assert_eq!(history.last().unwrap().text(), "Hi");
    let roles: Vec<_> = history.iter().map(|message| message.role).collect();
    assert_eq!(roles, [MessageRole::System, MessageRole::User]);
    assert_eq!((&history).into_iter().count(), 2);
    let json = serde_json::to_string(&history).unwrap();
    assert_eq!(json, serde_json::to_string(&history.to_vec()).unwrap());
    assert_eq!(serde_json::from_str::<History>(&json).unwrap(), history);
    assert_eq!(History::from(history.to_vec()), history);
}

#[test]
fn outcomes_are_words() {
    let words = [
        (Outcome::Blocked, "blocked"),
        (Outcome::Cancelled, "cancelled"),
        (Outcome::Failed, "failed"),
        (Outcome::InvalidInput, "invalid_input"),
        (Outcome::Malformed, "malformed"),
        (Outcome::NotRun, "not_run"),
        (Outcome::Ok, "ok"),
        (Outcome::Panicked, "panicked"),
        (Outcome::TimedOut, "timed_out"),
        (Outcome::Unknown, "unknown"),
        (Outcome::UnknownTool, "unknown_tool"),
    ];
    for (outcome, word) in words {
        assert_eq!(outcome.to_string(), word);
        assert_eq!(serde_json::to_value(outcome).unwrap(), word);
        assert_eq!(outcome.is_ok(), word == "ok");
    }
}
