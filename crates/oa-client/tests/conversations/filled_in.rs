//! Markers in the text that are replaced by results.

use std::time::Duration;

use oa_chat::ToolMode;
use oa_client::{AgentEvent, AgentOptionsBuilder, Client, ErrorKind, ResponseFormat, query};
use oa_hooks::{HookDecision, Hooks, PermissionMode, PostToolUseEvent};
use oa_testkit::{Cut, MemoryServer, Reply};
use oa_tools::tool;
use oa_types::{ContentBlock, FinishReason, Message};
use serde_json::json;

use proptest::collection::vec;
use proptest::prelude::*;

use suite::talk::{
    adder, auto, cases, client, echo, failing, interrupt_after, line, manual, read, slow, stalling,
    strict, talk, told,
};

const ANSWER: &str = "Two and two is [TOOL:add:a=2, b=2], and *[TOOL:echo:say=\"a, b\"]* it is.";

fn filling(server: &MemoryServer) -> AgentOptionsBuilder {
    auto(server).tool(adder()).tool(echo()).tool_mode(ToolMode::MarkersInline)
}

fn without_ids(history: &[Message]) -> Vec<String> {
    let id = |block: &ContentBlock| match block {
        ContentBlock::ToolUse(call) => Some(call.id.clone()),
        _ => None,
    };
    let ids: Vec<_> = history.iter().flat_map(|message| &message.content).filter_map(id).collect();
    let mut lines = told(history);
    for (number, id) in ids.iter().enumerate() {
        for line in &mut lines {
            *line = line.replace(&**id, &format!("#{number}"));
        }
    }
    lines
}

#[tokio::test]
async fn results_replace_markers_in_one_request() {
    for cut in [Cut::Whole, Cut::Every(1), Cut::Random { seed: 3 }] {
        let server = strict([Reply::text(ANSWER).cut(cut), Reply::text("Hello.")]);
        let mut client = client(filling(&server));
        client.send("Calculate.").await.unwrap();
        let mut text = String::new();
        while let Some(block) = client.receive().await.unwrap() {
            if let ContentBlock::Text(block) = block {
                text.push_str(&block.text);
            }
        }
        assert_eq!(text, "Two and two is 4.0, and *a, b* it is.");
        assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
        assert_eq!(server.requests().len(), 1);
        assert_eq!(
            without_ids(client.history()),
            [
                "user: Calculate.",
                "assistant: Two and two is  [#0 add {\"a\":2,\"b\":2}] , and * \
                 [#1 echo {\"say\":\"a, b\"}] * it is.",
                "tool: #0=4.0",
                "tool: #1=\"a, b\"",
                "assistant: Two and two is 4.0, and *a, b* it is.",
            ]
        );

        talk(&mut client, "And now?").await;
        let requests = server.requests();
        let messages = requests[1].messages().iter().skip(1);
        let lines = messages.map(|message| format!("{}: {}", message["role"], message["content"]));
        insta::allow_duplicates! {
            insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
            "user": "Calculate."
            "assistant": "Two and two is [TOOL:add:a=2, b=2], and *[TOOL:echo:say=\"a, b\"]* it is."
            "user": "[RESULT:add] 4.0\n[RESULT:echo] a, b"
            "assistant": "Two and two is 4.0, and *a, b* it is."
            "user": "And now?"
            "#);
        }
    }
}

#[tokio::test]
async fn text_is_held_back_from_the_first_marker() {
    let server = strict([Reply::text(ANSWER)]);
    let mut client = client(filling(&server));
    client.send("Calculate.").await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = client.next_event().await.unwrap() {
        match event {
            AgentEvent::Block(ContentBlock::Text(block)) => {
                seen.push(format!("text {:?}", block.text));
            }
            AgentEvent::Block(ContentBlock::ToolUse(call)) => {
                seen.push(format!("call {}", call.name));
            }
            AgentEvent::Block(ContentBlock::ToolResult(result)) => {
                seen.push(format!("result {}", result.content));
            }
            AgentEvent::TurnEnd(reason) => seen.push(format!("end {reason}")),
            _ => {}
        }
    }
    insta::assert_snapshot!(seen.join("\n"), @r#"
    text "Two"
    text " and"
    text " two"
    text " is"
    text " "
    call add
    call echo
    result 4.0
    result "a, b"
    text "4.0, and *a, b* it is."
    end stop
    "#);
}

#[tokio::test]
async fn failed_calls_are_sent_to_the_model() {
    let server = strict([
        Reply::text("It says [TOOL:save], [TOOL:echo:say=x]. [TOOL:echo:say]"),
        Reply::text("It cannot be saved."),
    ]);
    let mut client = client(filling(&server).tool(failing("save")));
    let lines = talk(&mut client, "Save.").await;
    assert_eq!(lines.first().unwrap(), "It says ");
    assert_eq!(lines.last().unwrap(), "It cannot be saved.");
    assert!(!lines.iter().any(|line| line.starts_with(',')), "{lines:?}");
    let requests = server.requests();
    let told = requests[1].messages().last().unwrap()["content"].as_str().unwrap();
    insta::assert_snapshot!(told, @r#"
    [ERROR:save] {"error":"the disk is full","tool":"save"}
    [RESULT:echo] x
    [RESULT:echo] say
    "#);
}

#[tokio::test]
async fn hooks_change_inserted_results() {
    let server = strict([Reply::text("[TOOL:echo:say=secret] is it.")]);
    let masks = Hooks::new().add_post_tool_use(|_: PostToolUseEvent| async {
        Some(HookDecision::modify_result(json!("****"), "a secret"))
    });
    let mut first = client(filling(&server).hooks(masks));
    assert_eq!(talk(&mut first, "Say.").await.last().unwrap(), "**** is it.");
    assert_eq!(first.history().last().unwrap().text(), "**** is it.");
}

#[tokio::test]
async fn markers_wait_for_approval() {
    let server = strict([Reply::text("It is [TOOL:add:a=1, b=2]!")]);
    let options = filling(&server).permission_mode(PermissionMode::Ask);
    let mut first = client(options);
    assert_eq!(talk(&mut first, "Add.").await[0], "It is ");
    assert_eq!(first.finish_reason(), Some(&FinishReason::ApprovalPending));
    let saved = first.history().to_vec();
    let resume = || Client::resume(first.options().clone(), saved.clone()).unwrap();
    for mut client in [resume(), resume()] {
        let id = client.pending_approvals()[0].id.clone();
        client.approve(&id).unwrap();
        client.continue_turn().await.unwrap();
        assert_eq!(read(&mut client).await.last().unwrap(), "3.0!");
        assert_eq!(client.history().last().unwrap().text(), "It is 3.0!");
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn interrupts_keep_the_text_shown() {
    let server = strict([Reply::text("It is [TOOL:nap]!"), Reply::text("Yes?")]);
    let mut first = client(filling(&server).tool(slow("nap", Duration::from_secs(60))));
    first.send("Nap.").await.unwrap();
    interrupt_after(&first, Duration::from_secs(1));
    let lines = read(&mut first).await;
    assert_eq!(lines[0], "It is ");
    assert_eq!(first.finish_reason(), Some(&FinishReason::Interrupted));
    assert_eq!(talk(&mut first, "Well?").await, ["Yes?"]);

    let words = ["It is ", "[TOOL:add:a=1, b=2]", " and so on"];
    let server = strict([stalling(&words), Reply::text("Yes?")]);
    let mut second = client(filling(&server));
    second.send("Add.").await.unwrap();
    interrupt_after(&second, Duration::from_secs(1));
    while second.next_event().await.unwrap().is_some() {}
    assert_eq!(second.history()[1].text(), "It is ", "the rest was shown to nobody");
    assert_eq!(talk(&mut second, "Well?").await, ["Yes?"]);
}

#[tokio::test]
async fn inline_history_continues_in_native_mode() {
    let first = strict([Reply::text(ANSWER)]);
    let mut one = client(filling(&first));
    talk(&mut one, "Calculate.").await;
    let second = strict([Reply::text("As before.")]);
    let options = auto(&second).tool(adder()).tool(echo()).build().unwrap();
    let mut other = Client::with_history(options, one.history().to_vec()).unwrap();
    assert_eq!(talk(&mut other, "And natively?").await, ["As before."]);
}

#[tokio::test]
async fn queries_return_markers_as_calls() {
    let server = strict([Reply::text("It is [TOOL:add:a=1, b=2]!")]);
    let mut answer = query("Add.", &filling(&server).build().unwrap()).await.unwrap();
    let mut kinds = Vec::new();
    while let Some(block) = answer.next().await {
        match block.unwrap() {
            ContentBlock::ToolUse(call) => kinds.push(format!("[{} {}]", call.name, call.input)),
            other => kinds.push(line(&other)),
        }
    }
    assert_eq!(kinds.concat(), "It is ![add {\"a\":1,\"b\":2}]");
}

#[test]
fn inline_markers_require_auto_mode() {
    let server = strict([]);
    let error = manual(&server).tool_mode(ToolMode::MarkersInline).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("auto_execute_tools"), "{error}");
}

#[tokio::test]
async fn structured_output_needs_another_mode() {
    let server = strict([]);
    let form = ResponseFormat::new("any", json!({"type": "object"}));
    let mut client = client(filling(&server));
    let error = client.send_for_format("Go.", form).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
}

#[tokio::test]
async fn repeated_markers_are_all_replaced() {
    let server = strict([Reply::text("[TOOL:clock] ".repeat(6))]);
    let clock = tool("clock", "The time").build(|_| async { Ok(json!("12:04")) });
    let mut client = client(auto(&server).tool(clock).tool_mode(ToolMode::MarkersInline));
    let lines = talk(&mut client, "Time?").await;
    assert_eq!(*lines.last().unwrap(), "12:04 ".repeat(6));
}

/// Pieces of an answer, and what becomes of each.
const PIECES: [(&str, &str); 8] = [
    (" as ", " as "),
    ("[TOOL:echo:say=x]", "x"),
    ("[TOOL:echo:say=\"[]\\n\"]", "[]\n"),
    ("[TOOL", "[TOOL"),
    ("[RESULT:echo] ", "[RESULT:echo] "),
    ("\u{e9}\n\n", "\u{e9}\n\n"),
    ("[TOOL:add:a=1, b=2]", "3.0"),
    ("] ", "] "),
];

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn shown_text_equals_recorded_text(
        pieces in vec(0..PIECES.len(), 1..12),
        seed in any::<u64>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let written: String = pieces.iter().map(|&piece| PIECES[piece].0).collect();
            let filled: String = pieces.iter().map(|&piece| PIECES[piece].1).collect();
            let server = strict([Reply::text(&*written).cut(Cut::Random { seed })]);
            let mut client = client(filling(&server));
            let said = client.ask("Go.").await.unwrap().text;
            prop_assert_eq!(&said, &filled);
            let last = client.history().last().unwrap().text();
            prop_assert_eq!(last, filled);
            Ok(())
        })?;
    }
}
