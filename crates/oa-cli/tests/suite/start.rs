//! The start of the program, up to its first prompt. Work is counted, not timed, because times depend on the machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{Home, text};
use crate::server::{Server, echo};
use crate::terminal::Terminal;

/// Returns the inodes of the sockets that a process has for a network.
#[cfg(target_os = "linux")]
fn network(id: u32) -> Vec<String> {
    let tables = ["tcp", "tcp6", "udp", "udp6"]
        .map(|name| fs::read_to_string(format!("/proc/{id}/net/{name}")).unwrap_or_default());
    let known: Vec<&str> = tables
        .iter()
        .flat_map(|table| table.lines().skip(1))
        .filter_map(|line| line.split_whitespace().nth(9))
        .collect();
    let open = fs::read_dir(format!("/proc/{id}/fd")).expect("the program runs");
    let open = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let sockets = open.filter_map(|link| {
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        Some(inode.to_owned())
    });
    sockets.filter(|inode| known.contains(&&**inode)).collect()
}

/// Returns the files in a folder, however deep.
#[cfg(target_os = "linux")]
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path.display().to_string());
        }
    }
    found
}

#[cfg(target_os = "linux")]
/// No connection, no session, and at most two threads.
#[test]
fn first_prompt_needs_few_resources() {
    let home = Home::new();
    let terminal = Terminal::start(&home, &["chat", "--stand-in"]);
    terminal.wait_for_prompt();
    let id = terminal.id();
    assert_eq!(network(id), Vec::<String>::new());
    let threads = fs::read_dir(format!("/proc/{id}/task")).expect("the program runs").count();
    assert!(threads <= 2, "{threads} threads");
    // The history of prompts, in which nothing is yet.
    let history = home.data().join("history.txt");
    assert_eq!(files(home.path()), [history.display().to_string()]);
    assert_eq!(fs::read_to_string(history).unwrap(), "");
}

#[test]
fn one_request_before_the_first_prompt() {
    let (home, server) = (Home::new(), Server::start(echo()));
    let terminal = Terminal::start(&home, &["chat", "--base-url", &server.url()]);
    terminal.wait_for_prompt();
    let asked: Vec<String> =
        server.server.requests().iter().map(|request| request.path().to_owned()).collect();
    assert_eq!(asked, ["/v1/models"]);
}

/// A configuration file that nobody ever writes: whoever reads it waits for ever.
#[test]
fn version_and_help_read_no_config() {
    let home = Home::new();
    let folder = home.config();
    fs::create_dir_all(&folder).unwrap();
    let made = Command::new("mkfifo").arg(folder.join("config.toml")).status().unwrap();
    assert!(made.success());
    let version = text(&home.run(&["--version"], "").stdout);
    assert_eq!(version, format!("oa {}\n", env!("CARGO_PKG_VERSION")));
    for arguments in [&["--help"][..], &["chat", "--help"], &["completions", "bash"], &["man"]] {
        assert!(home.run(arguments, "").status.success(), "{arguments:?}");
    }
}
