//! `oa mcp` with the official client of the protocol. Needs npm; in CI on Linux it must be there.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::program::{Home, PROGRAM};

const INSTALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../oa-mcp/tests/start-everything.sh");
const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/check.mjs");
const SDK: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/everything");

/// Installs the client; the reason where that cannot be.
fn install() -> Result<(), String> {
    let mut npm = Command::new("npm");
    npm.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !npm.status().is_ok_and(|status| status.success()) {
        return Err("the official client of MCP needs Node and npm, which are not installed".into());
    }
    let mut install = Command::new(INSTALL);
    install.args([SDK, "install"]);
    // Without the registry, npm would try for six minutes.
    install.env("npm_config_fetch_retries", "1").env("npm_config_fetch_timeout", "20000");
    let output = install.output().map_err(|error| format!("{INSTALL}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err("the official client of MCP cannot be installed from npm's registry".into())
}

#[test]
fn the_official_client_uses_the_tools() {
    if services::or_skip(install().map_err(services::Unavailable::Missing)).is_none() {
        return;
    }
    let home = Home::new();
    let folder = home.path().join("notes");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("notes.txt"), "rain tomorrow\n").unwrap();
    std::fs::write(home.path().join("secret.txt"), "secret").unwrap();
    let output = Command::new("node")
        .args([CHECK, SDK, PROGRAM, &folder.to_string_lossy()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let got: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(got["server"]["name"], "oa");
    assert_eq!(got["server"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(got["tools"], json!(["list_files", "read_file", "find_in_files"]));
    assert_eq!(got["read"]["isError"], false);
    assert!(got["read"]["text"].as_str().unwrap().contains("rain tomorrow"), "{got}");
    assert!(got["found"]["text"].as_str().unwrap().contains("notes.txt"), "{got}");
    for refused in ["outside", "wrong"] {
        assert_eq!(got[refused]["isError"], true, "{got}");
        assert!(!got[refused]["text"].as_str().unwrap().contains("secret\n"), "{got}");
    }
    assert!(got["outside"]["text"].as_str().unwrap().contains("outside of the folder"), "{got}");
}
