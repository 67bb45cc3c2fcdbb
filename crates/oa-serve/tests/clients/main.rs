//! Real clients of three protocols against a served agent: the libraries that front ends use, not imitations of them.
//!
//! The libraries come from npm and PyPI; CI on Linux requires them. `README.md` is the contract.

mod agent;
mod model;

use std::process::Output;

use oa_serve::AgentServer;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::agent::{CallCounts, agent, check_route};

const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/clients");
const INSTALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/install.sh");

/// Installs the clients once; false, after one line on standard error, where that cannot be and it is not required.
async fn are_installed() -> bool {
    static INSTALLED: OnceCell<Result<(), String>> = OnceCell::const_new();
    let installed = INSTALLED.get_or_init(install).await;
    services::or_skip(installed.clone().map_err(services::Unavailable::Missing)).is_some()
}

async fn install() -> Result<(), String> {
    for (program, what) in [("node", "Node"), ("npm", "npm"), ("python3", "Python")] {
        let version = Command::new(program).arg("--version").output().await;
        if !version.is_ok_and(|output| output.status.success()) {
            return Err(format!("the clients of agents need {what}, which is not installed"));
        }
    }
    let mut install = Command::new(INSTALL);
    // Without the registry, npm would try for six minutes.
    install.env("npm_config_fetch_retries", "1").env("npm_config_fetch_timeout", "20000");
    let output =
        install.arg(FOLDER).output().await.map_err(|error| format!("{INSTALL}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("the clients of agents cannot be installed: {}", said.trim()))
}

/// Serves an agent on a free port, and returns its URL.
async fn served(has_color: bool) -> String {
    let counts = CallCounts::default();
    let (router, conversations) = AgentServer::new(agent(has_color, &counts)).into_parts();
    let router = router.merge(check_route(conversations, counts));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap_or_else(|error| panic!("{error}"));
    let addr = listener.local_addr().unwrap_or_else(|error| panic!("{error}"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{addr}")
}

/// Runs a check against a server.
async fn check(program: &str, script: &str, url: &str, scenarios: usize) {
    check_with(&[], program, script, url, scenarios).await;
}

/// Like `check`, with variables of the environment.
async fn check_with(
    envs: &[(&str, &str)],
    program: &str,
    script: &str,
    url: &str,
    scenarios: usize,
) {
    let mut check = Command::new(program);
    check.envs(envs.iter().copied());
    check.current_dir(FOLDER).args([script, url]).env("VERBOSE", "1").kill_on_drop(true);
    if let Ok(only) = std::env::var("OPEN_AGENT_SCENARIOS") {
        check.args(["--only", &only]);
    }
    let Output { status, stdout, stderr } =
        check.output().await.unwrap_or_else(|error| panic!("{program}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{stdout}{stderr}");
    let passed = stdout.lines().filter(|line| line.starts_with("ok ")).count();
    if std::env::var("OPEN_AGENT_SCENARIOS").is_err() {
        assert_eq!(passed, scenarios, "scenarios that passed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ai_sdk() {
    if are_installed().await {
        check("node", "check-ai-sdk.mjs", &served(true).await, 34).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ai_sdk_6() {
    if are_installed().await {
        let packages = &[("AI_SDK", "ai-6"), ("AI_SDK_REACT", "ai-react-3")];
        check_with(packages, "node", "check-ai-sdk.mjs", &served(true).await, 34).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ag_ui() {
    if are_installed().await {
        check("node", "check-ag-ui.mjs", &served(false).await, 30).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ag_ui_before_1() {
    if are_installed().await {
        let version = &[("AG_UI", "0")];
        check_with(version, "node", "check-ag-ui.mjs", &served(false).await, 30).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai() {
    if are_installed().await {
        check("node", "check-openai.mjs", &served(false).await, 25).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_python() {
    if are_installed().await {
        check("venv/bin/python", "check_openai.py", &served(false).await, 5).await;
    }
}

/// Returns the programs of the manual's page in a language, with the address of this server and a prompt that it knows.
fn shown(language: &str, url: &str) -> Vec<String> {
    let page = include_str!("../../../open-agent/src/guide/serve.md");
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    let programs = blocks.filter_map(|rest| rest.split("```").next());
    let here = |program: &str| program.replace("http://127.0.0.1:8080", url);
    programs.map(|program| here(program).replace("What time", "[echo] What time")).collect()
}

/// Runs a program as its language takes one on the command line, and returns what it prints.
async fn say(program: &str, arguments: &[&str], text: &str) -> String {
    let mut command = Command::new(program);
    command.current_dir(FOLDER).args(arguments).arg(text).kill_on_drop(true);
    let output = command.output().await.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guide_programs_run() {
    if !are_installed().await {
        return;
    }
    let url = served(false).await;
    let answer = "You said: What time is it? (turn 1)";
    let [python] = &shown("python", &url)[..] else { panic!("one program in Python") };
    assert_eq!(say("venv/bin/python", &["-c"], python).await, answer);
    let [hook, ag_ui] = &shown("js", &url)[..] else { panic!("two programs in JavaScript") };
    let node = ["--input-type=module", "-e"];
    assert_eq!(say("node", &node, ag_ui).await, answer);
    // A hook runs in a component of a page only. This is the class behind it, with the options of the hook.
    let chat = hook.replace("useChat({", "new Chat({");
    assert!(chat != *hook && hook.contains("import { useChat }"), "{hook}");
    let uses = "import { Chat } from '@ai-sdk/react';\n\
        await chat.sendMessage({ text: '[echo] words' });\n\
        if (typeof useChat !== 'function') throw new Error('no useChat');\n\
        const said = chat.messages.at(-1).parts.find((part) => part.type === 'text').text;\n\
        const stopped = (await stop())?.status ?? 'nothing to wait for';\n\
        console.log(said, chat.status, stopped);";
    let said = say("node", &node, &format!("{chat}\n{uses}")).await;
    assert_eq!(said, "You said: words (turn 1) ready nothing to wait for");
}
