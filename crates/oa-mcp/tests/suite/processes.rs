//! Nothing is left of a server.

use std::time::{Duration, Instant};

use crate::support::{call, connect, eventually, scripted, soak, with_limits};

async fn processes(connected: &oa_mcp::Connected) -> Vec<String> {
    let ids = call(connected, "child").await.unwrap_or_default();
    ids.as_str().unwrap_or_default().split(' ').map(str::to_owned).collect()
}

#[tokio::test]
async fn close_ends_the_server_and_its_children() {
    let connected = connect(scripted("plain")).await.unwrap();
    let ids = processes(&connected).await;
    assert_eq!(ids.len(), 2);
    assert!(ids.iter().all(|id| is_alive(id)));
    connected.close().await;
    assert!(!is_alive(&ids[0]), "reaped when close returns");
    assert!(eventually(|| !is_alive_unless_zombie(&ids[1])).await);
}

#[tokio::test]
async fn drop_ends_the_server_and_its_children() {
    let connected = connect(scripted("plain")).await.unwrap();
    let ids = processes(&connected).await;
    drop(connected);
    assert!(eventually(|| !is_alive(&ids[0]) && !is_alive_unless_zombie(&ids[1])).await);
}

#[tokio::test]
async fn a_tool_keeps_its_connection() {
    let connected = connect(scripted("plain")).await.unwrap();
    let tools = connected.tools();
    let ids = processes(&connected).await;
    drop(connected);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(is_alive(&ids[0]));
    drop(tools);
    assert!(eventually(|| !is_alive(&ids[0])).await);
}

#[test]
fn runtime_shutdown_ends_the_server() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let ids = runtime.block_on(async {
        let connected = connect(scripted("plain")).await.unwrap();
        let ids = processes(&connected).await;
        std::mem::forget(connected);
        ids
    });
    drop(runtime);
    let end = Instant::now() + Duration::from_secs(5);
    while ids.iter().any(|id| is_alive_unless_zombie(id)) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!ids.iter().any(|id| is_alive_unless_zombie(id)));
}

#[tokio::test]
async fn unresponsive_server_is_killed() {
    let server = scripted("stubborn")
        .limits(with_limits(|limits| limits.close_time = Duration::from_millis(300)));
    let connected = connect(server).await.unwrap();
    let ids = processes(&connected).await;
    let start = Instant::now();
    connected.close().await;
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(550) && took < Duration::from_secs(4), "{took:?}");
    assert!(eventually(|| !ids.iter().any(|id| is_alive_unless_zombie(id))).await);
}

#[tokio::test]
async fn abandoned_handshake_leaves_no_process() {
    let server = scripted("hang in vain").connect_timeout(Duration::from_secs(30));
    let given_up = tokio::time::timeout(Duration::from_millis(300), connect(server)).await;
    assert!(given_up.is_err());
    let own = std::process::id().to_string();
    assert!(eventually(|| children(&own, "hang in vain").is_empty()).await);
}

#[tokio::test]
async fn a_closed_connection_is_not_opened_again() {
    let connected = connect(scripted("plain")).await.unwrap();
    let tools = connected.tools();
    connected.close().await;
    let error = tools[0].execute(serde_json::json!({ "what": "child" })).await.unwrap_err();
    assert!(error.to_string().contains("the connection is closed"), "{error}");
}

/// 50 times by default; `OPEN_AGENT_SOAK=1000` sets another number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_leaves_no_process_and_no_task() {
    let own = std::process::id().to_string();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let count = soak(50);
    let start = Instant::now();
    for _ in 0..count {
        let connected = connect(scripted("count")).await.unwrap();
        connected.close().await;
    }
    let took = start.elapsed();
    assert!(eventually(|| tasks() <= before).await, "{before} tasks before, {} after", tasks());
    assert!(eventually(|| children(&own, "count").is_empty()).await);
    println!("{count} connects and closes in {took:?}: 0 processes and 0 tasks are left");
}

/// The part of the next test that is killed: it starts a server, says its processes, and waits.
#[tokio::test]
async fn process_that_another_test_kills() {
    if std::env::var_os("OA_MCP_HOLD").is_none() {
        return;
    }
    let connected = connect(scripted("plain")).await.unwrap();
    println!("held {}", processes(&connected).await.join(" "));
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn server_ends_when_our_process_is_killed() {
    let mut own = std::process::Command::new(std::env::current_exe().unwrap());
    own.args(["processes::process_that_another_test_kills", "--exact", "--nocapture"]);
    own.env("OA_MCP_HOLD", "1").stdout(std::process::Stdio::piped());
    let mut holder = own.spawn().unwrap();
    let lines = std::io::BufReader::new(holder.stdout.take().unwrap());
    let held = std::io::BufRead::lines(lines).map_while(Result::ok);
    let held = held.filter_map(|line| Some(line.split_once("held ")?.1.to_owned())).next().unwrap();
    let server = held.split(' ').next().unwrap().to_owned();
    assert!(is_alive(&server));
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(eventually(|| !is_alive_unless_zombie(&server)).await);
    // What it had started is nobody's now; only the server itself is promised.
    for id in held.split(' ').skip(1) {
        let _ = std::process::Command::new("kill").arg(id).status();
    }
}

/// The children of a process with this argument, zombies among them.
fn children(parent: &str, mode: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let is_child = after_name.split_whitespace().nth(1) == Some(parent);
        if is_child && (line.split('\0').nth(1) == Some(mode) || line.is_empty()) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// True if a process runs. One that has ended and waits for whoever adopts it does not.
fn is_alive_unless_zombie(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().next().map(str::to_owned);
    state.is_some_and(|state| state != "Z")
}

/// True if a process runs; a zombie counts.
fn is_alive(id: &str) -> bool {
    std::path::Path::new("/proc").join(id).exists()
}
