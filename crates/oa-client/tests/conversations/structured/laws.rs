//! Laws for any value, cut anywhere.

use oa_client::{OutputMode, ResponseFormat};
use oa_testkit::{Cut, MemoryServer, Reply, Script};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use suite::talk::{adder, auto, cases, client, letters, open_calls, told};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-dé\"]{0,3}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    btree_map("[a-dé\"]{0,3}", value(), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn begins(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::String(part), Value::String(whole)) => whole.starts_with(&**part),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len()
                && part.iter().zip(whole).all(|(part, whole)| begins(part, whole))
        }
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| begins(part, whole)))
        }
        (part, whole) => part == whole,
    }
}

/// One turn of a model before it gives a valid answer.
#[derive(Clone, Debug)]
enum Turn {
    Text(String),
    Broken(String),
    Add,
    AddAndAnswer,
    Answer,
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        "[a-z {}\"]{0,12}".prop_map(Turn::Text),
        "[a-z{}\":]{0,12}".prop_map(Turn::Broken),
        Just(Turn::Add),
        Just(Turn::AddAndAnswer),
        Just(Turn::Answer),
    ]
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn partial_values_grow_into_the_answer(
        value in object(),
        cut in 1_usize..40,
        by_tool in any::<bool>(),
        around in any::<bool>(),
    ) {
        let text = value.to_string();
        let reply = match (by_tool, around) {
            (true, _) => Reply::new().call("final_answer", text),
            (false, true) => Reply::text(format!("Sure:\n```json\n{text}\n```\n")),
            (false, false) => Reply::text(text),
        };
        let server = MemoryServer::new(Script::from(reply.cut(Cut::Every(cut))).strict());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (seen, answer) = runtime.block_on(async {
            let mut client = client(auto(&server));
            let format = ResponseFormat::new("any", json!({"type": "object"}));
            let mode = if by_tool { OutputMode::Tool } else { OutputMode::Format };
            let mut stream = client.send_for_format("Go.", format).mode(mode).stream();
            let mut seen = Vec::new();
            while let Some(partial) = stream.next().await {
                seen.push(partial.value().clone());
            }
            (seen, stream.finish().await)
        });
        prop_assert_eq!(&answer.unwrap().value, &value);
        for pair in seen.windows(2) {
            prop_assert!(begins(&pair[0], &pair[1]) && pair[0] != pair[1], "{:?}", pair);
        }
        prop_assert_eq!(seen.last(), Some(&value));
    }

    #[test]
    fn history_stays_valid_and_free_of_failures(
        turns in vec(turn(), 0..7),
        tries in 1_u32..4,
        by_tool in any::<bool>(),
    ) {
        let reply = |turn: &Turn| match turn {
            Turn::Text(text) => Reply::text(&**text),
            Turn::Broken(arguments) if by_tool => Reply::new().call("final_answer", &**arguments),
            Turn::Broken(text) => Reply::text(&**text),
            Turn::Add => Reply::new().call("add", json!({"a": 1, "b": 2})),
            Turn::AddAndAnswer => {
                Reply::new().call("add", json!({})).call("final_answer", json!({"n": 1}))
            }
            Turn::Answer if by_tool => Reply::new().call("final_answer", json!({"n": 1})),
            Turn::Answer => Reply::text(json!({"n": 1}).to_string()),
        };
        let replies: Vec<Reply> = turns.iter().map(reply).collect();
        let server = MemoryServer::new(Script::new().strict().otherwise(Reply::by(move |request| {
            let reply = replies.get(request.number() - 1);
            reply.cloned().unwrap_or_else(|| Reply::text("{\"n\": 2}"))
        })));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (answer, history) = runtime.block_on(async {
            let mut client = client(auto(&server).tool(adder()).repeat_guard(None));
            let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
            let mode = if by_tool { OutputMode::Tool } else { OutputMode::Format };
            let format = ResponseFormat::new("any", schema);
            let answer = client.send_for_format("Go.", format).mode(mode).tries(tries).await;
            let history = client.history().to_vec();
            client.ask("And now?").await.expect("the conversation is one that a strict server takes");
            (answer, history)
        });
        prop_assert!(open_calls(&history).is_empty());
        let lines = told(&history);
        prop_assert!(!lines.iter().any(|line| line.contains("No answer yet")), "{:?}", lines);
        if let Ok(answer) = answer {
            prop_assert!(answer.tries <= tries);
            // Prompt, tool rounds, answer.
            let told = letters(&history);
            prop_assert!(told.ends_with('a') && told.matches('a').count() == 1, "{}", told);
            prop_assert_eq!(told.matches('u').count(), 1);
        }
    }
}
