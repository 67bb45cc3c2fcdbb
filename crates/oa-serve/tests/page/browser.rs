//! Programs of Node: the tests of the pure modules, and those of the page in Chromium.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Blocking, Stdio};
use std::sync::{Mutex, PoisonError};

use services::{Unavailable, or_skip};
use tokio::process::Command;

use crate::app::{self, TOKEN};

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page");
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/page");
const SCREENSHOTS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/../screenshots");
const PACKAGES: [(&str, &str); 2] = [("playwright-core", "1.57.0"), ("axe-core", "4.14.1")];
const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

fn runs(program: &str) -> bool {
    let mut command = Blocking::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn node() -> Result<(), Unavailable> {
    let missing =
        || Unavailable::Missing("the tests of the page need Node, which is not installed".into());
    runs("node").then_some(()).ok_or_else(missing)
}

fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Installs the driver of the browser; returns the browser's program.
fn browser() -> Result<PathBuf, Unavailable> {
    // Tests that run at the same time share the folder.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _alone = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    node()?;
    let program = BROWSERS.into_iter().find_map(find).ok_or_else(|| {
        Unavailable::Missing("the tests of the page need Chromium: apt-get install chromium".into())
    })?;
    let is_installed = |(name, version): &(&str, &str)| {
        let manifest = Path::new(FOLDER).join("node_modules").join(name).join("package.json");
        fs::read_to_string(manifest)
            .is_ok_and(|text| text.contains(&format!("\"version\": \"{version}\"")))
    };
    if PACKAGES.iter().all(is_installed) {
        return Ok(program);
    }
    if !runs("npm") {
        return Err(Unavailable::Missing(
            "the tests of the page need npm, which is not installed".into(),
        ));
    }
    let failed = |error: std::io::Error| Unavailable::Failed(error.to_string());
    fs::create_dir_all(FOLDER).map_err(failed)?;
    fs::write(Path::new(FOLDER).join("package.json"), "{\"private\": true}\n").map_err(failed)?;
    let mut npm = Blocking::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
    npm.args(PACKAGES.map(|(name, version)| format!("{name}@{version}")));
    // Without the registry, npm would try for six minutes.
    npm.env("npm_config_fetch_retries", "1").env("npm_config_fetch_timeout", "20000");
    let output = npm.current_dir(FOLDER).output().map_err(failed)?;
    if output.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Unavailable::Missing(format!(
        "the driver of the browser cannot be installed from npm's registry: {said}"
    )))
}

#[test]
fn pure_modules_pass_their_tests() {
    if or_skip(node()).is_none() {
        return;
    }
    let mut node = Blocking::new("node");
    node.arg("--test");
    for name in ["conversation", "markdown"] {
        node.arg(format!("{TESTS}/{name}.test.mjs"));
    }
    let output = node.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

/// Runs all scenarios in the browser, one after the other, and returns what they print.
async fn pass(width: u16) -> String {
    let Some(program) = or_skip(browser()) else { return String::new() };
    let app = app::start().await.expect("ports are free");
    let mut node = Command::new("node");
    node.arg(format!("{TESTS}/browser.mjs"))
        .env("PAGE_WIDTH", width.to_string())
        .env("PAGE_URL", format!("http://{}/", app.page))
        .env("DIRECT_URL", format!("http://{}/", app.direct))
        .env("CONTROL_URL", format!("http://{}", app.control))
        .env("PAGE_TOKEN", TOKEN)
        .env("CHROMIUM", program)
        .env("NODE_FOLDER", FOLDER)
        .env("SCREENSHOTS", SCREENSHOTS)
        .kill_on_drop(true);
    let output = node.output().await.expect("Node is installed");
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    // The failures come first, because a long message may be shown in part.
    assert!(output.status.success(), "{failed}\n{said}");
    said.into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_passes_on_a_phone() {
    println!("{}", pass(360).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_passes_on_a_desktop() {
    println!("{}", pass(1600).await);
}
