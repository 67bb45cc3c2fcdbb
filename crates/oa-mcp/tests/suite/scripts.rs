//! Servers that a script starts, as `npx.cmd` does on Windows.

use std::path::Path;
use std::time::Duration;

use oa_mcp::McpServer;

use crate::support::{call, connect, eventually, with_limits};

/// A server that ignores the end of its input, below a script in the folder.
fn below_a_script(folder: &Path) -> McpServer {
    std::fs::copy(env!("CARGO_BIN_EXE_oa-mcp-scripted"), folder.join("real.exe")).unwrap();
    let script = "@echo off\r\n\"%~dp0real.exe\" %*\r\n";
    std::fs::write(folder.join("our-server.cmd"), script).unwrap();
    let path = format!("{};{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    McpServer::stdio("s", "our-server")
        .arg("stubborn")
        .env("PATH", path)
        .limits(with_limits(|limits| limits.close_time = Duration::from_millis(300)))
        .required()
}

#[tokio::test]
async fn a_script_is_found_without_its_extension() {
    let folder = tempfile::tempdir().unwrap();
    let connected = connect(below_a_script(folder.path())).await.unwrap();
    assert!(call(&connected, "folder").await.is_ok());
    connected.close().await;
}

#[tokio::test]
async fn close_ends_the_server_below_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let connected = connect(below_a_script(folder.path())).await.unwrap();
    // The file of a running program cannot be removed.
    let file = folder.path().join("real.exe");
    std::fs::remove_file(&file).unwrap_err();
    connected.close().await;
    assert!(eventually(|| std::fs::remove_file(&file).is_ok()).await);
}
