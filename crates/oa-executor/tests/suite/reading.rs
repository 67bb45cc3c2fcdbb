//! Full results, and the tool that reads them.

use std::collections::BTreeSet;

use oa_executor::{
    Batch, ExecutionResult, ExecutorOptions, ResultStore, ToolEvent, ToolExecutor,
    TruncationPolicy, read_result,
};
use oa_tools::{Registry, State, Tool, ToolContext, ToolError, tool};
use oa_types::ToolUseBlock;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{calls, end, executor};

fn read(store: &ResultStore, limit: usize, input: Value) -> Result<String, ToolError> {
    let cx = ToolContext::new("reader", "read_result");
    let cx = cx.with_state(State::new().with(store.clone()));
    let tool = read_result(TruncationPolicy::max_chars(limit));
    let input = tool.prepare(input).map_err(|error| ToolError::new(error.to_string()))?;
    let handler = tool.blocking().expect("it scans a text");
    let text = handler.run(input, cx)?;
    Ok(text.as_str().expect("it is text").to_owned())
}

fn kept(text: &str) -> ResultStore {
    let store = ResultStore::new();
    assert_eq!(store.keep("a", &json!(text)).as_deref(), Some("a"));
    store
}

/// The numbers and texts of the lines on a page that carry this mark, and the line to go on with.
fn lines(page: &str, mark: char) -> (Vec<(usize, &str)>, Option<u64>) {
    let numbered = |line| -> Option<(usize, &str)> {
        let (number, text) = str::split_once(line, ' ')?;
        Some((number.strip_suffix(mark)?.parse().ok()?, text))
    };
    let found = page.split('\n').skip(1).filter_map(numbered).collect();
    let last = page.rsplit('\n').next().unwrap_or_default();
    let next = last.strip_prefix("[Continue with from_line ");
    let next = next.and_then(|next| next.split([' ', '.']).next()?.parse().ok());
    (found, next)
}

fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        6 => "[a-c ]{0,30}",
        1 => "[a-c木é😀]{0,30}",
        1 => (1..800_usize).prop_map(|count| "ab木 ".repeat(count)),
    ];
    vec(line, 1..120).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_lines_are_reached_in_pages(
        text in text(),
        limit in 0..3_000_usize,
        count in proptest::option::of(1..50_u32),
    ) {
        let store = kept(&text);
        let mut from = Some(1);
        let mut whole = String::new();
        let mut expected = 1;
        while let Some(next) = from {
            let mut input = json!({ "id": "a", "from_line": next });
            if let Some(count) = count {
                input["lines"] = count.into();
            }
            let page = read(&store, limit, input).unwrap();
            prop_assert!(page.chars().count() <= limit.max(400), "{} characters", page.chars().count());
            let (found, next) = lines(&page, ':');
            prop_assert!(found.len() <= count.unwrap_or(u32::MAX) as usize);
            prop_assert!(!found.is_empty() || text.is_empty(), "{page}");
            for (number, line) in found {
                prop_assert_eq!(number, expected);
                prop_assert!(line.chars().count() <= 500);
                whole.push_str(line);
                expected += 1;
            }
            from = next;
        }
        prop_assert_eq!(whole, text.replace('\n', ""));
    }

    #[test]
    fn search_pages_contain_every_match(
        rows in vec("[abAB é]{0,12}", 1..200),
        words in "[abéÉ]{1,3}",
        limit in 0..1_500_usize,
        count in proptest::option::of(1..9_u32),
    ) {
        let store = kept(&rows.join("\n"));
        let is_match = |row: &&String| row.to_lowercase().contains(&words.to_lowercase());
        let total = rows.iter().filter(is_match).count();
        let (mut from, mut found) = (Some(1), BTreeSet::new());
        while let Some(next) = from {
            let mut input = json!({ "id": "a", "from_line": next, "search": words });
            if let Some(count) = count {
                input["lines"] = count.into();
            }
            let page = read(&store, limit, input).unwrap();
            prop_assert!(page.chars().count() <= limit.max(400));
            let (matches, next) = lines(&page, ':');
            prop_assert_eq!(matches.is_empty(), total == 0, "{}", page);
            for (number, line) in matches {
                prop_assert!(found.insert(number), "twice: {}", page);
                prop_assert_eq!(line, &rows[number - 1]);
            }
            for (number, line) in lines(&page, '-').0 {
                prop_assert_eq!(line, &rows[number - 1]);
            }
            from = next;
        }
        prop_assert_eq!(found.len(), total);
    }
}

#[test]
fn matches_include_adjacent_lines() {
    let rows: Vec<String> = (1..=20).map(|number| format!("row {number}")).collect();
    let store = kept(&rows.join("\n"));
    let found = read(&store, 10_000, json!({ "id": "a", "search": "ROW 1" })).unwrap();
    assert!(found.starts_with("Result \"a\": 11 of 20 lines contain \"ROW 1\":\n1: row 1\n2- row 2\n--\n9- row 9\n10: row 10\n11: row 11\n"), "{found}");
    assert!(found.ends_with("19: row 19\n20- row 20"), "{found}");
    let none = read(&store, 10_000, json!({ "id": "a", "search": "column" })).unwrap();
    assert_eq!(none, "Result \"a\": none of the 20 lines contains \"column\".");
}

#[test]
fn words_are_found_where_a_long_line_is_cut() {
    let text = format!("{}needle{}", "x".repeat(497), "y".repeat(2_000));
    let found = read(&kept(&text), 10_000, json!({ "id": "a", "search": "Needle" })).unwrap();
    assert!(found.starts_with("Result \"a\": 1 of 6 lines contain"), "{found}");
    assert!(lines(&found, ':').0[0].1.ends_with("nee") && found.contains("2- dley"));
}

#[test]
fn search_counts_matches_in_the_whole_result() {
    let found = |text: &str, from: usize, words: &str| {
        let input = json!({ "id": "a", "from_line": from, "search": words });
        read(&kept(text), 10_000, input).unwrap()
    };
    assert_eq!(
        found("alpha\nbeta", 2, "alpha"),
        "Result \"a\": 1 of 2 lines contain \"alpha\", but none from line 2 on."
    );
    assert_eq!(
        found("a1\nb\nc\na2", 2, "a"),
        "Result \"a\": 2 of 4 lines contain \"a\":\n3- c\n4: a2"
    );
    assert_eq!(
        found("beta", 1, "alpha"),
        "Result \"a\": the only line does not contain \"alpha\"."
    );
}

#[test]
fn long_words_are_found_across_three_pieces() {
    // On the smallest page, a line is cut after 100 characters.
    let words = "needle".repeat(33);
    let text = format!("{}{words}{}", "x".repeat(99), "y".repeat(300));
    let found = read(&kept(&text), 0, json!({ "id": "a", "search": words })).unwrap();
    assert_eq!(lines(&found, ':').0.len(), 1, "{found}");
    assert!(lines(&found, ':').0[0].1.ends_with("xn"), "{found}");
}

#[test]
fn gaps_are_marked_at_the_end_of_a_page() {
    // A page of 400 characters has 120 for lines: the line before the second match does not fit.
    let rows = ["match", "b", "c", &"d".repeat(100), "match"];
    let page = read(&kept(&rows.join("\n")), 0, json!({ "id": "a", "search": "match" })).unwrap();
    assert!(page.ends_with(":\n1: match\n2- b\n--\n5: match"), "{page}");
}

#[test]
fn errors_name_the_mistake() {
    let why = |store: &ResultStore, input: Value| {
        read(store, 1_000, input).unwrap_err().message().to_owned()
    };
    assert_eq!(
        why(&ResultStore::new(), json!({ "id": "x" })),
        "no result is stored under the id \"x\"; call its tool again if you need it"
    );
    let store = kept("one\ntwo");
    assert_eq!(
        why(&store, json!({ "id": "x" })),
        "no result is stored under the id \"x\"; the latest ones are \"a\""
    );
    assert_eq!(
        why(&store, json!({ "id": "a", "from_line": 3 })),
        "the result \"a\" has 2 lines, and from_line is 3"
    );
    assert_eq!(
        why(&store, json!({ "id": "a", "search": "x".repeat(201) })),
        "search must have at most 200 characters"
    );
    let read = read(&store, 1_000, json!({ "id": "a", "from_line": 0, "lines": 0 })).unwrap();
    assert_eq!(read, "Result \"a\", lines 1 to 1 of 2:\n1: one\n[Continue with from_line 2.]");
}

#[test]
fn the_store_is_bounded_and_the_oldest_leave() {
    let store = ResultStore::with_limits(1_000, 3);
    for number in 0..5 {
        let id = format!("call_{number}");
        assert_eq!(store.keep(&id, &json!("x".repeat(100))), Some(id));
    }
    assert_eq!(store.ids(), ["call_2", "call_3", "call_4"]);
    assert_eq!(store.keep("large", &json!("x".repeat(1_001))), None);
    assert_eq!(store.keep("call_5", &json!("x".repeat(850))).as_deref(), Some("call_5"));
    assert_eq!(store.ids(), ["call_4", "call_5"]);
    store.forget("call_5");
    assert_eq!(store.ids(), ["call_4"]);
    assert_eq!(ResultStore::with_limits(1_000, 0).keep("a", &json!("x")), None);
}

#[test]
fn reused_call_ids_get_a_number() {
    let store = ResultStore::new();
    assert_eq!(store.keep("call", &json!("one")).as_deref(), Some("call"));
    assert_eq!(store.keep("call", &json!("one")).as_deref(), Some("call"));
    assert_eq!(store.keep("call", &json!("two")).as_deref(), Some("call_2"));
    assert_eq!(store.get("call_2").as_deref(), Some("two"));
    let long = json!({ "text": "x".repeat(100) });
    assert_eq!(store.keep("json", &long).as_deref(), Some("json"));
    let cut = format!("{} [read_result]", &long.to_string()[..90]);
    assert_eq!(store.keep("json", &json!(cut)).as_deref(), Some("json"), "its beginning");
    store.forget("call");
    assert_eq!(store.ids(), ["json"]);
}

#[test]
fn forgetting_a_call_keeps_similar_ids() {
    let store = ResultStore::new();
    let ids = ["a", "a_", "a_2", "a__2", "ab"];
    for id in ids {
        assert_eq!(store.keep(id, &json!(format!("of {id}"))).as_deref(), Some(id));
    }
    assert_eq!(store.keep("a", &json!("another")).as_deref(), Some("a_3"));
    store.forget("a");
    assert_eq!(store.ids(), ids[1..]);
}

#[test]
fn equal_results_of_two_calls_are_both_kept() {
    let store = ResultStore::new();
    let kept = ["a", "a", "a_2"].map(|id| store.keep(id, &json!(format!("of {}", &id[..1]))));
    assert_eq!(kept.map(Option::unwrap), ["a", "a", "a_2"]);
    assert_eq!(store.keep("a", &json!("two")).as_deref(), Some("a_3"));
    assert_eq!(store.keep("a_3", &json!("two")).as_deref(), Some("a_3_2"), "of another call");
    store.forget("a");
    assert_eq!(store.ids(), ["a_2", "a_3_2"]);
}

async fn run(
    store: Option<&ResultStore>,
    limit: usize,
    calls: Vec<ToolUseBlock>,
) -> Vec<ExecutionResult> {
    let mut tools = Registry::new();
    let text = (1..=100).map(|number| format!("line {number}\n")).collect::<String>();
    let failing = text.clone();
    tools
        .add(tool("log", "Logs").build(move |_| std::future::ready(Ok(json!(text)))))
        .expect("good options");
    let fail = move |_| std::future::ready(Err(ToolError::new(failing.clone())));
    tools.add(tool("fail", "Fails").build(fail)).expect("good options");
    let truncation = TruncationPolicy::max_chars(limit);
    tools.add(read_result(truncation)).expect("good options");
    let options = ExecutorOptions::new().truncation(truncation);
    let executor = ToolExecutor::with_options(tools, options).expect("good options");
    let state = store.map_or_else(State::new, |store| State::new().with(store.clone()));
    let mut events = executor.execute_batch_streaming(calls, Batch::new().state(state));
    let mut results = Vec::new();
    while let Some(event) = events.next().await {
        if let ToolEvent::CallComplete(result) = event {
            results.push(ExecutionResult::clone(&result));
        }
    }
    results
}

#[tokio::test]
async fn a_truncated_result_is_kept_and_read_on() {
    let store = ResultStore::new();
    let log = || ToolUseBlock::new("call_1", "log", json!({}));
    let [result] = &run(Some(&store), 40, vec![log()]).await[..] else { panic!() };
    let shown = result.result.as_str().unwrap();
    assert!(
        shown.ends_with(
            "[752 of 792 characters left out; to read on, call read_result with the id \"call_1\"]"
        ),
        "{shown}"
    );
    let read =
        ToolUseBlock::new("call_2", "read_result", json!({ "id": "call_1", "from_line": 99 }));
    let [result] = &run(Some(&store), 40, vec![read]).await[..] else { panic!() };
    assert_eq!(
        result.result,
        "Result \"call_1\", lines 99 to 100 of 100:\n99: line 99\n100: line 100"
    );
    assert!(!result.truncated && store.ids() == ["call_1"], "pages are not cut again");
    let [result] = &run(None, 40, vec![log()]).await[..] else { panic!() };
    assert!(result.result.as_str().unwrap().ends_with("[752 of 792 characters left out]"));
}

#[tokio::test]
async fn a_truncated_error_is_kept_too() {
    let store = ResultStore::new();
    let call = ToolUseBlock::new("call_1", "fail", json!({}));
    let [result] = &run(Some(&store), 40, vec![call]).await[..] else { panic!() };
    assert!(result.result.to_string().contains("read_result"), "{}", result.result);
    assert!(store.get("call_1").unwrap().contains("line 100"));
}

#[tokio::test]
async fn the_hint_follows_the_text_that_was_cut() {
    let shown = async |reason: &'static str| {
        let options = ExecutorOptions::new()
            .truncation(TruncationPolicy::max_chars(5))
            .skip_if(move |_, _| Some(reason.into()));
        let tools = [tool("t", "").build(|input| async { Ok(input) })];
        let state = State::new().with(ResultStore::new());
        let call = calls([("t", json!({}))]);
        let end = end(&executor(tools, options), call, Batch::new().state(state)).await;
        end.execution_results[0].result.clone()
    };
    let hint = "; to read on, call read_result with the id \"c0\"]";
    assert_eq!(
        shown("odd").await,
        json!({
            "error": format!("not r\n[2 of 7 characters left out{hint}"),
            "tool": "t",
            "reason": "odd",
        })
    );
    assert_eq!(
        shown("very odd").await,
        json!({
            "error": "not r\n[2 of 7 characters left out]",
            "tool": "t",
            "reason": format!("very \n[3 of 8 characters left out{hint}"),
        })
    );
}
