use open_agent::{Message, ToolUseBlock, json};
use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn event(json: open_agent::Value) -> AgentEvent {
    serde_json::from_value(json).unwrap()
}

fn text(text: &str) -> AgentEvent {
    AgentEvent::Block(ContentBlock::Text(open_agent::TextBlock::new(text)))
}

fn thinking(text: &str) -> AgentEvent {
    AgentEvent::Block(ContentBlock::Thinking(open_agent::ThinkingBlock::new(text)))
}

fn start() -> AgentEvent {
    event(json!({"type": "tool", "data": {
        "type": "tool_call_start", "call_id": "c1", "tool_name": "count", "input": {"text": "a\u{202e}b", "n": 2}
    }}))
}

fn complete(outcome: &str) -> AgentEvent {
    event(json!({"type": "tool", "data": {
        "type": "tool_call_complete", "call_id": "c1", "tool_name": "count", "input": {}, "outcome": outcome,
        "result": "two\nwords", "truncated": false, "duration_us": 1_500_000, "attempts": 1, "cached": false,
        "dropped_events": 0
    }}))
}

fn lines(events: &[AgentEvent]) -> Vec<String> {
    let mut view = View::new(60);
    events.iter().for_each(|event| view.push(event, SECOND));
    view.end();
    view.take_lines().iter().map(Line::plain).collect()
}

#[test]
fn a_turn_with_a_call() {
    let call = ToolUseBlock::new("c1", "count", json!({}));
    let events = [
        AgentEvent::AnswerStart,
        thinking("hm"),
        text("I count.\n"),
        AgentEvent::Block(ContentBlock::ToolUse(call)),
        start(),
        complete("ok"),
        text("It is **2**."),
    ];
    assert_eq!(
        lines(&events),
        [
            "hm",
            "",
            "I count.",
            "",
            r#"✓ count(text: "a\u{202e}b", n: 2)  1.5 s"#,
            "  → two words",
            "",
            "It is 2.",
        ]
    );
}

#[test]
fn a_running_call_shows_time_and_progress() {
    let mut view = View::new(60);
    view.push(&start(), SECOND);
    view.push(
        &event(json!({"type": "tool", "data": {
            "type": "tool_progress", "call_id": "c1", "tool_name": "count", "done": 1, "total": 4, "message": "half"
        }})),
        SECOND,
    );
    let rows: Vec<_> = view.rows(3 * SECOND).iter().map(Line::plain).collect();
    assert_eq!(rows[0], r#"⠋ 2.0 s  25 %  half  count(text: "a\u{202e}b", n: 2)"#);
    assert!(rows[1].contains("running tools  3.0 s"));
    view.end();
    let lines: Vec<_> = view.take_lines().iter().map(Line::plain).collect();
    assert_eq!(lines[1], "  → stopped");
}

#[test]
fn reported_numbers_may_have_any_size() {
    let mut view = View::new(60);
    view.push(&start(), SECOND);
    for (done, expected) in [(u64::MAX / 2, " 49 % "), (u64::MAX, " 100 % ")] {
        view.push(
            &event(json!({"type": "tool", "data": {
                "type": "tool_progress", "call_id": "c1", "tool_name": "count", "done": done, "total": u64::MAX
            }})),
            SECOND,
        );
        let rows = view.rows(SECOND);
        assert!(rows[0].plain().contains(expected), "{rows:?}");
    }
    view.push(
        &event(json!({"type": "prompt_progress", "data": {"processed": u64::MAX, "total": u64::MAX, "cached": 0, "elapsed_ms": 0}})),
        SECOND,
    );
    let mut usage = Usage::default();
    usage.completion_tokens = Some(u64::MAX);
    usage.generation_time = Some(Duration::MAX);
    for _ in 0..2 {
        let mut answer = open_agent::AssistantMessage::new(vec![]);
        answer.usage = Some(usage);
        view.push(&AgentEvent::AnswerEnd(answer.into()), SECOND);
    }
    view.figures(None, Some(&usage), Some(u64::MAX), SECOND);
}

#[test]
fn a_question_stays_with_its_answer() {
    let mut view = View::new(60);
    view.ask("remove({})? [y]es, [n]o: ".to_owned());
    assert!(view.is_asking());
    assert_eq!(view.rows(SECOND).last().unwrap().plain(), "remove({})? [y]es, [n]o:");
    assert!(view.answer("y"));
    assert!(!view.answer("y"));
    assert_eq!(view.take_lines()[0].plain(), "remove({})? [y]es, [n]o: y");
}

/// On any screen: the rows above the last scroll like an answer.
#[test]
fn long_questions_are_shown_in_full() {
    let mut view = View::new(20);
    let call = format!("sh({{\"cmd\":\"{}\"}})", "abcde ".repeat(100));
    view.ask(format!("{call}? [y]es, [n]o, [a]lways: "));
    assert_eq!(view.rows(SECOND).len(), 1);
    let mut shown: Vec<_> = view.take_lines().iter().map(Line::plain).collect();
    assert!(view.answer("y"));
    shown.extend(view.take_lines().iter().map(Line::plain));
    assert!(shown.last().is_some_and(|row| row.ends_with("[a]lways: y")), "{shown:?}");
    let words = |text: &str| text.replace(char::is_whitespace, "");
    assert_eq!(words(&shown.concat()), words(&format!("{call}? [y]es, [n]o, [a]lways: y")));
}

#[test]
fn remarks_may_have_several_lines() {
    let tool = |data: open_agent::Value| event(json!({"type": "tool", "data": data}));
    let log = json!({"type": "tool_log", "call_id": "c1", "tool_name": "count", "level": "info", "message": "one\n\ttwo\n"});
    assert_eq!(lines(&[tool(log)]), ["count: one", "    two"]);
    let mut view = View::new(60);
    view.push(&start(), SECOND);
    let status =
        json!({"type": "tool_status", "call_id": "c1", "tool_name": "count", "status": "one\ntwo"});
    view.push(&tool(status), SECOND);
    assert!(view.rows(SECOND)[0].plain().contains("one two"), "{:?}", view.rows(SECOND));
    view.push(
        &event(json!({"type": "call_denied", "data": {
            "call_id": "c1", "tool_name": "count", "input": {}, "reason": "not\nnow"
        }})),
        SECOND,
    );
    assert_eq!(view.take_lines()[1].plain(), "  → denied: not now");
}

/// Characters that languages and emoji need are escaped only in calls.
#[test]
fn messages_are_shown_as_they_were_typed() {
    let said = "東京\u{3000}\u{2764}\u{fe0f} \u{645}\u{6cc}\u{200c}\u{62e}";
    let mut view = View::new(60);
    view.steer(said);
    assert!(view.rows(SECOND)[0].plain().starts_with(&format!("» {said}  (waits")));
    view.ask("remove({})? [y]es, [n]o: ".to_owned());
    view.answer(&format!("n {said}"));
    assert!(view.take_lines()[0].plain().ends_with(&format!(": n {said}")));
    view.note(&format!("» {said}"), Style::DIMMED);
    assert_eq!(view.take_lines()[1].plain(), format!("» {said}"));
}

#[test]
fn steered_messages_wait_for_the_next_step() {
    let mut view = View::new(60);
    view.steer("shorter");
    assert!(view.rows(SECOND)[0].plain().contains("» shorter  (waits"));
    view.push(&AgentEvent::Steered(Message::user("shorter\nand better")), SECOND);
    let lines: Vec<_> = view.take_lines().iter().map(Line::plain).collect();
    assert_eq!(lines, ["» shorter", "  and better"]);
    assert!(view.take_steered().is_empty());
}

#[test]
fn figures_are_one_line_about_the_whole_turn() {
    let answer = |tokens, prompt| {
        let mut usage = Usage::default();
        usage.prompt_tokens = Some(prompt);
        usage.completion_tokens = Some(tokens);
        usage.generation_time = Some(SECOND);
        let mut answer = open_agent::AssistantMessage::new(vec![]);
        answer.usage = Some(usage);
        answer
    };
    let mut view = View::new(80);
    view.push(&text("one"), SECOND);
    let last = answer(200, 1_034);
    for answer in [answer(34, 900), last.clone()] {
        view.push(&AgentEvent::AnswerEnd(answer.into()), SECOND);
    }
    view.take_lines();
    view.figures(None, last.usage.as_ref(), Some(8_192), 61 * SECOND);
    let figures = "234 tokens · 117.0 tokens/s · context 1,234 of 8,192 · 1 min 1 s";
    assert_eq!(view.take_lines().last().unwrap().plain(), figures);
    view.figures(Some("stopped"), None, None, SECOND);
    assert!(view.take_lines().last().unwrap().plain().starts_with("stopped · "));
}

#[test]
fn empty_answers_are_reported() {
    let mut view = View::new(60);
    view.push(&AgentEvent::AnswerStart, SECOND);
    view.figures(None, None, None, SECOND);
    assert_eq!(view.take_lines()[0].plain(), "the answer is empty · 1.0 s");
}

#[test]
fn sub_agents_show_their_calls_and_text() {
    let nested = |agent: &str, event| {
        AgentEvent::Nested(Box::new(open_agent::NestedEvent::new("c1", agent, event)))
    };
    let mut view = View::new(90);
    view.push(&start(), SECOND);
    view.push(&nested("researcher", text("I look\nit up, and ")), SECOND);
    view.push(&nested("researcher", text("then I write.")), SECOND);
    let row = |view: &View| view.rows(2 * SECOND)[0].plain();
    assert!(row(&view).contains("researcher: it up, and then I write."), "{}", row(&view));
    view.push(&nested("researcher", start()), SECOND);
    assert!(row(&view).contains("researcher > count(text:"), "{}", row(&view));
    view.push(&nested("researcher", complete("ok")), SECOND);
    view.push(&nested("researcher", nested("reader", complete("ok"))), SECOND);
    let lines: Vec<_> = view.take_lines().iter().map(Line::plain).collect();
    let call = "count() → two words";
    assert_eq!(
        lines,
        [format!("  ✓ researcher > {call}"), format!("  ✓ researcher > reader > {call}")]
    );
    // Of a call that is not known, nothing is shown.
    view.push(
        &AgentEvent::Nested(Box::new(open_agent::NestedEvent::new("c9", "x", start()))),
        SECOND,
    );
    assert!(view.take_lines().is_empty());
}

#[test]
fn text_before_a_call_is_final() {
    let mut view = View::new(20);
    view.push(&text("a **b"), SECOND);
    assert!(view.take_lines().is_empty());
    let call = ToolUseBlock::new("c1", "count", json!({}));
    view.push(&AgentEvent::Block(ContentBlock::ToolUse(call)), SECOND);
    assert_eq!(view.take_lines()[0].plain(), "a **b");
}

proptest! {
    /// The same lines however text and thinking are split into events.
    #[test]
    fn splits_do_not_matter(parts in prop::collection::vec((any::<bool>(), "[a-c*`# \n|-]{1,30}"), 1..6), cut in 1_usize..5) {
        let make = |is_text: bool, piece: &str| if is_text { text(piece) } else { thinking(piece) };
        let whole: Vec<_> = parts.iter().map(|(is_text, part)| make(*is_text, part)).collect();
        let split: Vec<_> = parts.iter().flat_map(|(is_text, part)| {
            let chars: Vec<_> = part.chars().collect();
            chars.chunks(cut).map(|chunk| make(*is_text, &chunk.iter().collect::<String>())).collect::<Vec<_>>()
        }).collect();
        prop_assert_eq!(lines(&whole), lines(&split));
    }
}
