use oa_session::{NewSession, Revision, Timestamp};
use proptest::prelude::*;

use super::*;

proptest! {
    /// Names of front ends lead to ids that stores take, different ones to different ids.
    #[test]
    fn names_map_to_distinct_ids(one in ".{1,70}", other in ".{1,70}") {
        use FrontProtocol::{AgUi, AiSdk};

        let id = |protocol, name: &str| session_id(protocol, name).expect("an id");
        prop_assert_eq!(id(AgUi, &one), id(AgUi, &one));
        prop_assert_ne!(id(AgUi, &one), id(AiSdk, &one));
        prop_assert_eq!(id(AiSdk, &one) == id(AiSdk, &other), one == other);
    }
}

#[test]
fn marks_and_answers_round_trip() {
    let id = SessionId::new("chat-1").expect("it is valid");
    let info = |members: Map<String, Value>| {
        let new = NewSession::new(id.clone(), Timestamp::from_millis(0)).with_metadata(members);
        SessionInfo::new(new, Revision::from_bits(1))
    };
    let mark = FrontMark { run: 7, message_id: "msg-1".to_owned() };
    assert_eq!(FrontMark::of(&info(run_members(Some(&mark), &[]))), Some(mark));
    assert_eq!(FrontMark::of(&info(run_members(None, &[]))), None);
    let answers = [
        EarlyAnswer {
            call_id: "a".to_owned(),
            answer: CallAnswer::Approved { input: Some(json!({"b": 1})) },
        },
        EarlyAnswer { call_id: "c".to_owned(), answer: CallAnswer::Denied { reason: None } },
    ];
    assert_eq!(early_answers(&info(answer_members(&answers))), answers);
    assert_eq!(early_answers(&info(run_members(None, &answers))), answers);
    assert!(early_answers(&info(Map::from_iter([(ANSWERS.to_owned(), json!(3))]))).is_empty());
    assert!(has_members(&info(answer_members(&answers))) && !has_members(&info(Map::new())));
}
