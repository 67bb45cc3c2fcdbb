//! Documents that the program writes, and documents about it.

use oa_cli::settings::reference;

use crate::program::{Home, text};

#[test]
fn the_reference_of_the_readme_is_the_table_of_settings() {
    let readme = include_str!("../../README.md");
    let table = reference::table();
    assert!(readme.contains(&table), "put this table into README.md:\n{table}");
}

#[test]
fn completions_and_the_manual_page_are_written() {
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
fn the_example_of_a_configuration_file_is_one() {
    let home = Home::new();
    let example = text(&home.run(&["config", "--example"], "").stdout);
    let path = home.path().join("all.toml");
    // With every setting made, except that "provider" must be the name of one.
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
    assert_eq!(text(&output.stdout).matches("all.toml, line").count(), 17, "{output:?}");
}

#[test]
fn a_wrong_configuration_file_stops_every_command() {
    let home = Home::new();
    let folder = home.path().join("config/oa");
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
