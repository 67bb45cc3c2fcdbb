//! Documents that the program writes, and documents about it.

use oa_cli::settings::{SETTINGS, reference};

use crate::program::{Home, not_found, text};

/// The page of the manual.
fn guide() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../open-agent/src/guide/oa.md");
    std::fs::read_to_string(path).expect("the manual is in the repository")
}

#[test]
fn settings_reference_matches_the_table() {
    let table = reference::table();
    for (name, page) in [("README.md", include_str!("../../README.md")), ("oa.md", &guide())] {
        assert!(page.contains(&table), "put this table into {name}:\n{table}");
    }
}

#[test]
fn command_reference_matches_the_table() {
    let tables = oa_cli::chat::reference();
    assert!(guide().contains(&tables), "put these tables into oa.md:\n{tables}");
}

#[test]
fn mcp_servers_of_the_page_parse() {
    let guide = guide();
    let json = guide.split("```json").nth(1).and_then(|rest| rest.split("```").next());
    let servers: serde_json::Value = serde_json::from_str(json.unwrap()).unwrap();
    assert_eq!(servers["mcpServers"]["notes"]["args"][0], "mcp");
}

#[test]
fn completions_and_manual_are_written() {
    let home = Home::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = home.run(&["completions", shell], "");
        assert!(output.status.success());
        assert!(text(&output.stdout).contains("stand-in"), "{shell}");
    }
    let page = text(&home.run(&["man"], "").stdout);
    assert!(page.contains(".TH oa 1"), "{page}");
}

#[test]
fn example_config_is_valid() {
    let home = Home::new();
    let example = text(&home.run(&["config", "--example"], "").stdout);
    let path = home.path().join("all.toml");
    // With every setting made.
    let all: String = example
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(setting) if setting.contains(" = ") => format!("{setting}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    std::fs::write(&path, all).unwrap();
    let output = home.run(&["config", "--config", &path.to_string_lossy()], "");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        text(&output.stdout).matches("all.toml, line").count(),
        SETTINGS.len(),
        "{output:?}"
    );
}

#[test]
fn blank_config_variable_counts_as_not_set() {
    let home = Home::new();
    let folder = home.config();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "model = 'of-the-default'\n").unwrap();
    std::fs::write(home.path().join("other.toml"), "model = 'of-the-other'\n").unwrap();
    let model = |path: &str, flags: &[&str]| {
        let command = [&["config"], flags].concat();
        home.run_with(&command, "", &[("OPEN_AGENT_CONFIG", path)])
    };
    for blank in ["", " "] {
        assert!(text(&model(blank, &[]).stdout).contains("of-the-default"), "{blank:?}");
    }
    assert!(text(&model("other.toml", &[]).stdout).contains("of-the-other"));
    let flag = model("none.toml", &["--config", "other.toml"]);
    assert!(text(&flag.stdout).contains("of-the-other"), "{flag:?}");
    assert!(text(&model("~/other.toml", &[]).stdout).contains("of-the-other"));
    let flag = model("none.toml", &["--config=~/other.toml"]);
    assert!(text(&flag.stdout).contains("of-the-other"), "{flag:?}");
    let missing = model("none.toml", &[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains(&format!("none.toml: {}", not_found())), "{missing:?}");
}

#[test]
fn invalid_config_stops_every_command() {
    let home = Home::new();
    let folder = home.config();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "modle = 'x'\n").unwrap();
    for command in ["chat", "config", "models"] {
        let output = home.run(&[command], "x");
        assert_eq!(output.status.code(), Some(2));
        let told = text(&output.stderr);
        assert!(
            told.contains(
                "config.toml, line 1: unknown setting \"modle\"; did you mean \"model\"?"
            ),
            "{told}"
        );
    }
    assert!(home.run(&["config", "--path"], "").status.success());
}
