use futures_util::FutureExt;
use oa_tools::tool;
use oa_types::{ThinkingBlock, ToolUseBlock};
use proptest::prelude::*;

use super::*;

/// Joins histories of an agent whose tool `pick` runs in the front end.
fn joined(kept: &[Message], sent: &[Message]) -> Vec<Message> {
    let pick = tool("pick", "Picks").external();
    let agent = AgentOptions::builder().model("any").base_url("http://localhost:1").tool(pick);
    let agent = agent.build().unwrap_or_else(|error| panic!("{error}"));
    let joined = join(kept, sent, &agent, &[]).now_or_never();
    let joined = joined.unwrap_or_else(|| panic!("it waits for no hook"));
    joined.unwrap_or_else(|error| panic!("{error}")).messages
}

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
        prop_assert_eq!(joined(&kept, &sent), kept.clone());
        let change = Message::user("changed");
        let mut now = sent.clone();
        now.push(change.clone());
        now.extend(after.iter().map(|(_, sent)| sent.clone()));
        let mut all = kept.clone();
        all.push(Message::user("before the change"));
        all.extend(forgotten.into_iter().map(|(kept, _)| kept));
        let merged = joined(&all, &now);
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
        let merged = joined(&kept, &sent);
        prop_assert_eq!(merged.len(), sent.len());
        for (merged, sent) in merged.iter().zip(&sent) {
            prop_assert_eq!(merged.text(), sent.text());
            prop_assert!(calls(merged).eq(calls(sent)));
        }
    }
}

fn result(name: &str, content: Value) -> Message {
    let mut block = ToolResultBlock::new("call_1", content);
    block.name = Some(name.into());
    Message::tool(block)
}

/// A hook may have changed the stored result. Only the front end's own tools have another one there.
#[test]
fn results_of_own_tools_stay() {
    let sent = [result("", json!("the secret"))];
    let kept = [result("read", json!("****"))];
    assert_eq!(joined(&kept, &sent), kept);
    assert_eq!(joined(&[result("pick", json!("****"))], &sent), sent);
}

/// The front end sets it anew with each request.
#[test]
fn system_message_may_change() {
    let answer = |thinks: bool| {
        let mut content: Vec<ContentBlock> = vec![TextBlock::new("Hi.").into()];
        if thinks {
            content.insert(0, ThinkingBlock::new("Hm.").into());
        }
        Message::assistant(content)
    };
    let user = Message::user("Hello");
    let kept = [Message::system("at noon"), user.clone(), answer(true)];
    let later = [Message::system("at one"), user.clone(), answer(false)];
    assert_eq!(joined(&kept, &later), [later[0].clone(), user.clone(), answer(true)]);
    assert_eq!(joined(&kept, &later[1..]), [user, answer(true)]);
}

#[test]
fn waiting_calls_were_not_run() {
    let call = |id: &str| ContentBlock::from(ToolUseBlock::new(id, "read", json!({})));
    let answer = Message::assistant(vec![call("call_0"), call("call_1")]);
    let given = result("read", json!("text"));
    let history = closed(vec![Message::user("Go"), answer.clone(), given.clone()]);
    assert_eq!((history.len(), &history[3]), (4, &given));
    let block = results(&history[2]).next().unwrap_or_else(|| panic!("a result"));
    assert!(block.is_error && block.content["error"] == "not run: the user moved on without it");
    assert_eq!(closed(history.clone()), history);
}
