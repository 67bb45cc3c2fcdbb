//! Images that tools attach to their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oa_executor::{
    ExecutionResult, ExecutorOptions, Outcome, RetryPolicy, ToolCache, TruncationPolicy,
};
use oa_tools::{FnTool, ToolContext, ToolError, tool};
use oa_types::ImageBlock;
use serde_json::json;

use crate::{executor, one};

fn image(number: usize) -> ImageBlock {
    ImageBlock::from_url(format!("https://host/{number}.png")).expect("it is an address")
}

/// Attaches an image in each attempt, and fails so often.
fn camera(fails: usize) -> FnTool {
    let runs = Arc::new(AtomicUsize::new(0));
    tool("camera", "").cacheable().build_with_context(move |_, cx: ToolContext| {
        let run = runs.fetch_add(1, Ordering::SeqCst);
        async move {
            cx.attach_image(image(run))?;
            match run < fails {
                true => Err(ToolError::new("blurred")),
                false => Ok(json!("A long sentence about the picture that was taken.")),
            }
        }
    })
}

fn urls(result: &ExecutionResult) -> Vec<&str> {
    result.images.iter().map(|image| &*image.url).collect()
}

#[tokio::test]
async fn a_result_has_the_images_of_its_call() {
    let result = one(&executor([camera(0)], ExecutorOptions::new()), "camera", json!({})).await;
    assert_eq!(urls(&result), ["https://host/0.png"]);
    assert_eq!(result.to_block().images, result.images);
    let stored = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<ExecutionResult>(&stored).unwrap(), result);
}

#[tokio::test(start_paused = true)]
async fn images_of_failed_attempts_are_dropped() {
    let options = ExecutorOptions::new().retry(RetryPolicy::new(2));
    let result = one(&executor([camera(2)], options), "camera", json!({})).await;
    assert_eq!((result.attempts, urls(&result)), (3, vec!["https://host/2.png"]));
    let result = one(&executor([camera(9)], ExecutorOptions::new()), "camera", json!({})).await;
    assert_eq!((result.outcome, urls(&result)), (Outcome::Failed, vec![]));
}

#[tokio::test]
async fn cached_results_keep_their_images() {
    let executor = executor([camera(0)], ExecutorOptions::new().cache(ToolCache::new(4)));
    let (first, second) =
        (one(&executor, "camera", json!({})).await, one(&executor, "camera", json!({})).await);
    assert!(!first.cached && second.cached);
    assert_eq!(first.images, second.images);
    // They count: nothing of this size fits.
    let small = ToolCache::new(4).max_bytes(70);
    let executor = crate::executor([camera(0)], ExecutorOptions::new().cache(small.clone()));
    one(&executor, "camera", json!({})).await;
    assert!(small.is_empty());
}

#[tokio::test]
async fn truncation_counts_text_only() {
    let options = ExecutorOptions::new().truncation(TruncationPolicy::max_chars(20));
    let result = one(&executor([camera(0)], options), "camera", json!({})).await;
    assert!(result.truncated);
    assert_eq!(urls(&result), ["https://host/0.png"]);
}

/// A thread cannot be stopped, but what it attaches after its time is not shown.
#[tokio::test]
async fn an_attempt_that_timed_out_cannot_attach() {
    let (started, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begun, count) = (Arc::clone(&started), Arc::clone(&refused));
    let slow = tool("slow", "").timeout(Duration::from_millis(20)).build_blocking_with_context(
        move |_, cx: ToolContext| {
            begun.fetch_add(1, Ordering::SeqCst);
            while !cx.is_cancelled() {
                std::thread::yield_now();
            }
            if cx.attach_image(image(0)).is_err() {
                count.fetch_add(1, Ordering::SeqCst);
            }
            Ok(json!("late"))
        },
    );
    let executor = executor([slow], ExecutorOptions::new());
    // On a busy machine the time may be up before a thread has begun; then the handler never runs.
    while started.load(Ordering::SeqCst) == 0 {
        let result = one(&executor, "slow", json!({})).await;
        assert_eq!((result.outcome, urls(&result)), (Outcome::TimedOut, vec![]));
    }
    while refused.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
}
