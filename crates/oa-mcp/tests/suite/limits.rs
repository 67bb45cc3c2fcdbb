//! Limits that no other test reaches, and the folder and variables with which a server is started.

use std::path::Path;
use std::time::Duration;

use oa_mcp::Limits;
use oa_tools::{Cancel, ToolContext};
use serde_json::json;

use crate::support::{call, call_with, connect, scripted, tool, with_limits};

#[tokio::test]
async fn long_server_texts_are_cut() {
    let server = scripted("plain").limits(with_limits(|limits| {
        limits.description_bytes = 6;
        limits.instruction_bytes = 5;
    }));
    let connected = connect(server).await.unwrap();
    assert_eq!(tool(&connected, "s__echo").unwrap().description(), "Tool e...");
    let instructions = connected.connection("s").unwrap().instructions().await;
    assert_eq!(instructions.as_deref(), Some("Be ki..."));
    connected.close().await;
}

/// The number of warnings about them is bounded.
#[tokio::test]
async fn large_schemas_drop_their_tools() {
    let small = |limits: &mut Limits| limits.schema_bytes = 10;
    let connected = connect(scripted("plain").limits(with_limits(small))).await.unwrap();
    assert!(connected.tools().is_empty());
    let warnings = connected.connection("s").unwrap().warnings();
    assert!(warnings.iter().all(|warning| warning.contains("is left out")), "{warnings:?}");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    connected.close().await;
    let one = with_limits(|limits| (limits.schema_bytes, limits.warnings) = (10, 1));
    let connected = connect(scripted("plain").limits(one)).await.unwrap();
    assert_eq!(connected.connection("s").unwrap().warnings().len(), 1);
    connected.close().await;
}

/// A call over the limit waits for the end of another one.
#[tokio::test]
async fn concurrent_calls_are_bounded() {
    let server = scripted("plain").limits(with_limits(|limits| limits.calls = 2));
    let connected = connect(server).await.unwrap();
    let (first, second) = (Cancel::new(), Cancel::new());
    let silent = |cancel: &Cancel| {
        let cx = ToolContext::new("c", "s__do").with_cancel(cancel.clone());
        call_with(&connected, json!({ "what": "nothing" }), cx)
    };
    let third = async {
        let mut third = std::pin::pin!(call(&connected, "string id"));
        let early = tokio::time::timeout(Duration::from_millis(300), third.as_mut()).await;
        assert!(early.is_err(), "it does not run beside the other two");
        first.cancel();
        assert_eq!(third.await, Ok(json!("accepted")));
        second.cancel();
    };
    let (one, other, ()) = tokio::join!(silent(&first), silent(&second), third);
    let interrupted = Err("s: the call was interrupted".to_owned());
    assert_eq!((one, other), (interrupted.clone(), interrupted));
    connected.close().await;
}

/// The part of the error output that is kept begins after a line break: half a secret could not be masked.
#[tokio::test]
async fn partial_secrets_in_stderr_are_cut_off() {
    for (bytes, told) in [
        (16, "s: the server exited with status 3"),
        (64, "s: the server exited with status 3; its last error output: no config file, key ****"),
    ] {
        let server = scripted("die").limits(with_limits(|limits| limits.stderr_bytes = bytes));
        assert_eq!(connect(server).await.unwrap_err().to_string(), told);
    }
}

#[tokio::test]
async fn child_gets_its_folder_and_variables() {
    let folder = std::env::temp_dir();
    // Cargo has set it for us.
    let server = scripted("plain").current_dir(&folder).inherit_env(["CARGO_MANIFEST_DIR", "NONE"]);
    let connected = connect(server).await.unwrap();
    let names = call(&connected, "environment").await.unwrap();
    let names: Vec<&str> = names.as_str().unwrap().split(' ').collect();
    assert!(names.contains(&"CARGO_MANIFEST_DIR") && !names.contains(&"NONE"), "{names:?}");
    assert!(!names.contains(&"CARGO_PKG_NAME"), "{names:?}");
    let called = call(&connected, "folder").await.unwrap();
    // Either path may lead through links.
    let resolved = |path: &Path| path.canonicalize().unwrap();
    assert_eq!(resolved(Path::new(called.as_str().unwrap())), resolved(&folder));
    connected.close().await;
}

/// The queues that they bound have limits of their own.
#[tokio::test]
async fn largest_limits_are_accepted() {
    let server = scripted("plain").limits(with_limits(|limits| {
        (limits.calls, limits.questions) = (usize::MAX, usize::MAX);
        (limits.message_bytes, limits.stderr_bytes) = (usize::MAX, usize::MAX);
    }));
    let connected = connect(server).await.unwrap();
    assert_eq!(call(&connected, "string id").await, Ok(json!("accepted")));
    let died = call(&connected, "die").await.unwrap_err();
    assert!(died.contains("its last error output: out of memory"), "{died}");
    connected.close().await;
}
