use oa_session::{NewSession, Revision, Timestamp};
use oa_types::{TextBlock, ThinkingBlock, ToolUseBlock};
use proptest::prelude::*;

use super::*;

/// A message, as it is kept and as a front end sends it back.
fn message() -> impl Strategy<Value = (Message, Message)> {
    let text = "[a-c]{0,2}";
    prop_oneof![
        text.prop_map(|text| (Message::user(&text), Message::user(&text))),
        (text, any::<bool>(), "[xy]").prop_map(|(text, thinks, id)| {
            let call = ContentBlock::from(ToolUseBlock::new(id, "add", json!({"a": 1})));
            let mut kept = vec![TextBlock::new(&text).into(), call.clone()];
            if thinks {
                kept.insert(0, ThinkingBlock::new("Hm.").into());
            }
            let sent = vec![TextBlock::new(&text).into(), call];
            (Message::assistant(kept), Message::assistant(sent))
        }),
        ("[xy]", 0..3).prop_map(|(id, number)| {
            let mut kept = ToolResultBlock::new(&*id, json!({"sum": number}));
            kept.name = Some("add".into());
            let sent = ToolResultBlock::new(&*id, json!({"sum": number}).to_string().into());
            (Message::tool(kept), Message::tool(sent))
        }),
        "[xy]".prop_map(|id| {
            let mut kept = ToolResultBlock::new(&*id, json!({"error": "no", "reason": "city"}));
            let mut sent = ToolResultBlock::new(&*id, json!({"error": "no: city"}));
            (kept.is_error, sent.is_error) = (true, true);
            (Message::tool(kept), Message::tool(sent))
        }),
    ]
}

proptest! {
    /// A history that nobody changed is the one that is kept; of a changed one, everything before the change.
    #[test]
    fn stored_messages_stay_until_first_change(
        before in prop::collection::vec(message(), 0..8), after in prop::collection::vec(message(), 0..4),
        forgotten in prop::collection::vec(message(), 0..4),
    ) {
        let (kept, sent): (Vec<_>, Vec<_>) = before.iter().cloned().unzip();
        prop_assert_eq!(with_kept(&kept, &sent), kept.clone());
        let change = Message::user("changed");
        let mut now = sent.clone();
        now.push(change.clone());
        now.extend(after.iter().map(|(_, sent)| sent.clone()));
        let mut all = kept.clone();
        all.push(Message::user("before the change"));
        all.extend(forgotten.into_iter().map(|(kept, _)| kept));
        let merged = with_kept(&all, &now);
        prop_assert_eq!(&merged[..kept.len()], &kept[..]);
        prop_assert_eq!(&merged[kept.len()..], &now[kept.len()..]);
    }

    /// Whatever is kept, the model reads what the front end says: the same messages, calls, and good results.
    #[test]
    fn merged_history_says_what_was_sent(
        kept in prop::collection::vec(message(), 0..8), sent in prop::collection::vec(message(), 0..8),
    ) {
        let kept: Vec<_> = kept.into_iter().map(|(kept, _)| kept).collect();
        let sent: Vec<_> = sent.into_iter().map(|(_, sent)| sent).collect();
        let merged = with_kept(&kept, &sent);
        prop_assert_eq!(merged.len(), sent.len());
        for (merged, sent) in merged.iter().zip(&sent) {
            prop_assert_eq!(merged.text(), sent.text());
            prop_assert!(calls(merged).eq(calls(sent)));
        }
    }

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
