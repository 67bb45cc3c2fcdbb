//! Structured output: requested by a response format, by an output tool and in instructions, and parsed as the
//! type.

use open_agent::{Client, ErrorKind, FinishReason, OutputMode, json, query_for};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::loops::check_pairing;
use crate::server::{Wanted, check, lacking};

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
struct Note {
    title: String,
    #[schemars(length(max = 3))]
    tags: Vec<String>,
    score: Option<i32>,
    mood: Mood,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mood {
    Dull,
    Merry,
}

const PROMPT: &str = "Write a note about a lamp.";

#[test]
fn query_for_returns_the_type() {
    check(Wanted::Any, async |server| {
        let options = server.options().seed(2).build().unwrap();
        let answer = match query_for::<Note>(PROMPT, &options).mode(OutputMode::Format).await {
            Err(error) if error.kind() == ErrorKind::Api && !server.is_tiny => {
                return lacking(&format!("output by a schema ({error})"));
            }
            answer => answer.unwrap(),
        };
        assert!(answer.value.tags.len() <= 3, "{:?}", answer.value);
        assert_eq!(answer.finish_reason, FinishReason::Stop);
        if server.is_tiny {
            assert_eq!(answer.tries, 1, "its grammar holds it");
        }
        println!("{:?}", answer.value);
    });
}

#[test]
fn partial_values_grow_in_a_conversation() {
    check(Wanted::Tiny, async |server| {
        let mut client = Client::new(server.options().seed(2).build().unwrap()).unwrap();
        let mut stream = client.send_for::<Note>(PROMPT).stream();
        let (mut seen, mut titles) = (0, Vec::new());
        while let Some(partial) = stream.next().await {
            seen += 1;
            titles.extend(partial.value()["title"].as_str().map(str::to_owned));
        }
        let answer = stream.finish().await.unwrap();
        assert!(seen > 5, "{seen} partial values");
        assert!(titles.windows(2).all(|pair| pair[1].starts_with(&pair[0])), "{titles:?}");
        assert_eq!(titles.last(), Some(&answer.value.title));
        // It stays text, and no format is requested any more.
        assert_eq!(client.history()[1].text(), answer.message.unwrap().text());
        let text = client.ask("Thank you.").await.unwrap().text;
        assert!(serde_json::from_str::<Note>(&text).is_err(), "{text}");
        assert_eq!(client.history().len(), 4);
    });
}

#[test]
fn output_tool_calls_become_text() {
    check(Wanted::Tiny, async |server| {
        // Sometimes it calls twice with different arguments and then talks endlessly. The server must accept
        // the resulting history anyway.
        let mut found = 0;
        for seed in 1..=8 {
            let options = server.options().seed(seed).auto_execute_tools(true).build().unwrap();
            let mut client = Client::new(options).unwrap();
            match client.send_for::<Note>(PROMPT).mode(OutputMode::Tool).await {
                Ok(answer) => {
                    let text = client.history()[1].text();
                    assert_eq!(serde_json::from_str::<Note>(&text).unwrap(), answer.value);
                    assert_eq!(client.history().len(), 2, "{}", answer.tries);
                    found += 1;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Output, "{error:?}"),
            }
            check_pairing(client.history());
            assert!(!client.ask("Thank you.").await.unwrap().text.is_empty());
        }
        println!("{found} of 8");
        assert!(found > 0);
    });
}

/// A grammar for the answer that a model which understands its prompt would give.
const GRAMMAR: &str =
    r#"root ::= "Sure: {\"title\": \"lamp\", \"tags\": [\"light\"], \"mood\": \"dull\"}""#;

#[test]
fn prompt_mode_finds_the_answer_in_text() {
    check(Wanted::Tiny, async |server| {
        let options = server.options().seed(2).extra_body(json!({ "grammar": GRAMMAR }));
        let options = options.system_prompt("Be brief.").build().unwrap();
        let asked = query_for::<Note>(PROMPT, &options).mode(OutputMode::Prompt);
        let note = asked.await.unwrap().value;
        assert_eq!((&*note.title, note.score, note.mood), ("lamp", None, Mood::Dull));
    });
}
