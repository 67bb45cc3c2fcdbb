//! Cached results.

use std::sync::atomic::Ordering;

use oa_executor::{Batch, ExecutorOptions, RunCaps, ToolCache, TruncationPolicy};
use oa_tools::tool;
use serde_json::{Value, json};

use crate::{calls, counting, end, executor, one};

#[tokio::test]
async fn equal_calls_are_answered_from_the_cache() {
    let (count, runs) = counting("count");
    let cache = ToolCache::new(10);
    let executor = executor([count], ExecutorOptions::new().cache(cache.clone()));
    let run = async |input: &str| {
        let input: Value = serde_json::from_str(input).unwrap();
        let result = one(&executor, "count", input).await;
        (result.result.as_u64().unwrap(), result.cached, result.attempts)
    };
    assert_eq!(run(r#"{"a": 1, "b": {"x": 1, "y": [2, 3]}}"#).await, (1, false, 1));
    assert_eq!(run(r#"{"b": {"y": [2, 3], "x": 1}, "a": 1}"#).await, (1, true, 0));
    assert_eq!(run(r#"{"a": 1, "b": {"x": 1, "y": [3, 2]}}"#).await, (2, false, 1));
    assert_eq!(run("{}").await, (3, false, 1));
    assert_eq!((cache.len(), runs.load(Ordering::SeqCst)), (3, 3));
    cache.clear();
    assert_eq!(run("{}").await, (4, false, 1));
}

#[tokio::test]
async fn defaults_are_part_of_the_arguments() {
    let tool = tool("t", "")
        .param("n", "integer")
        .default("n", 5)
        .cacheable()
        .build(|args| std::future::ready(Ok(args)));
    let executor = executor([tool], ExecutorOptions::new().cache(ToolCache::new(10)));
    assert!(!one(&executor, "t", json!({})).await.cached);
    for same in [json!({ "n": 5 }), json!({ "n": 5.0 }), json!({ "n": null })] {
        assert!(one(&executor, "t", same).await.cached);
    }
    assert!(!one(&executor, "t", json!({ "n": 6 })).await.cached);
}

#[tokio::test]
async fn only_successful_cacheable_calls_are_kept() {
    let plain = tool("plain", "").build(|_| async { Ok(json!(1)) });
    let fails = tool("fails", "").cacheable().build(|_| async { Err("no".into()) });
    let cache = ToolCache::new(10);
    let executor = executor([plain, fails], ExecutorOptions::new().cache(cache.clone()));
    for name in ["plain", "fails", "plain", "fails"] {
        assert!(!one(&executor, name, json!({})).await.cached);
    }
    assert!(cache.is_empty());
}

#[tokio::test]
async fn the_least_recently_used_result_makes_room() {
    let (count, _) = counting("count");
    let executor = executor([count], ExecutorOptions::new().cache(ToolCache::new(2)));
    let cached = async |n: u8| one(&executor, "count", json!({ "n": n })).await.cached;
    assert_eq!((cached(1).await, cached(2).await), (false, false));
    assert!(cached(1).await);
    assert!(!cached(3).await, "in place of 2");
    assert!(cached(1).await && cached(3).await);
    assert!(!cached(2).await);
}

#[tokio::test]
async fn bytes_are_bounded() {
    let text = tool("text", "").param("n", "integer").cacheable().build(|args| async move {
        Ok(json!("x".repeat(args["n"].as_u64().unwrap_or_default() as usize)))
    });
    let cache = ToolCache::new(100).max_bytes(1_000);
    let executor = executor([text], ExecutorOptions::new().cache(cache.clone()));
    let cached = async |n: u64| one(&executor, "text", json!({ "n": n })).await.cached;
    assert!(!cached(2_000).await && !cached(2_000).await, "too large to keep");
    assert!(cache.is_empty());
    for n in 300..310 {
        cached(n).await;
    }
    assert_eq!(cache.len(), 3);
}

#[tokio::test]
async fn the_whole_result_is_kept() {
    let tool = tool("t", "").cacheable().build(|_| async { Ok(json!("0123456789")) });
    let cut = TruncationPolicy::max_chars(4);
    let options = ExecutorOptions::new().cache(ToolCache::new(1)).truncation(cut);
    let executor = executor([tool], options);
    let (first, second) =
        (one(&executor, "t", json!({})).await, one(&executor, "t", json!({})).await);
    assert!(second.cached && second.truncated);
    assert_eq!((first.full(), &first.result), (second.full(), &second.result));
}

#[tokio::test]
async fn cached_results_do_not_count_as_calls() {
    let (count, _) = counting("count");
    let options = ExecutorOptions::new()
        .cache(ToolCache::new(1))
        .caps(RunCaps::none().calls(1))
        .max_parallel(1);
    let executor = executor([count], options);
    let end = end(&executor, calls(vec![("count", json!({})); 3]), Batch::new()).await;
    assert!(end.execution_results.iter().all(|result| result.result == json!(1)));
}
