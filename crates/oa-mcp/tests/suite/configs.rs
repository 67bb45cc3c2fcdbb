//! Servers from the JSON that editors use.

use oa_mcp::{McpServer, Servers};

#[test]
fn config_errors_name_the_server() {
    let fails = |text: &str| Servers::from_json(text, |_| None).unwrap_err().to_string();
    assert_eq!(fails("{"), "the configuration is not valid JSON (line 1)");
    assert_eq!(fails("{}"), "the configuration has no `mcpServers` object");
    let of = |entry: &str| fails(&format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#));
    assert_eq!(of("{}"), "server a: neither `command` nor `url` is set");
    assert_eq!(of(r#"{"command": 7}"#), "server a: a setting has the wrong type");
    assert_eq!(
        of(r#"{"command": "x", "env": {"A": []}}"#),
        "server a: the value of A must be a string, a number or a boolean"
    );
    assert!(of(r#"{"type": "sse", "url": "http://localhost"}"#).contains("sse is not supported"));
}

#[test]
fn byte_order_mark_is_skipped() {
    let text = "\u{feff}{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}";
    assert_eq!(Servers::from_json(text, |_| None).unwrap().servers()[0].name(), "a");
}

#[test]
fn disabled_servers_are_left_out() {
    let text = r#"{ "servers": {
        "zeta": { "command": "z", "autoApprove": ["x"], "timeout": 60 },
        "off": { "command": "o", "disabled": true },
        "alpha": { "command": "a", "env": { "PORT": 80, "DEBUG": true } }
    } }"#;
    let servers = Servers::from_json(text, |_| None).unwrap();
    let names: Vec<_> = servers.servers().iter().map(McpServer::name).collect();
    assert_eq!(names, ["zeta", "alpha"]);
}
