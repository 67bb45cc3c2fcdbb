//! `oa mcp` with the official client of the protocol. Needs npm; CI on Linux requires it.

use std::process::Command;

use serde_json::{Value, json};
use services::McpPackages;

use crate::program::{Home, PROGRAM};

const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/check.mjs");

#[test]
fn the_official_client_uses_the_tools() {
    let Some(packages) = services::or_skip(McpPackages::install()) else { return };
    let home = Home::new();
    let folder = home.path().join("notes");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("notes.txt"), "rain tomorrow\n").unwrap();
    std::fs::write(home.path().join("secret.txt"), "secret").unwrap();
    let output = Command::new("node")
        .arg(CHECK)
        .arg(packages.folder())
        .args([PROGRAM, &folder.to_string_lossy()])
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
