use super::*;

#[test]
fn the_command_line_is_consistent() {
    command().debug_assert();
}

#[test]
fn help_lists_the_settings_of_a_command() {
    for (name, ..) in EFFECTS {
        let mut cli = command();
        let Some(command) = cli.find_subcommand_mut(name) else { continue };
        let help = command.render_long_help().to_string();
        for setting in SETTINGS {
            let Some(flag) = setting.flag else { continue };
            let is_there = help.split_whitespace().any(|word| word == format!("--{flag}"));
            assert_eq!(is_there, has_effect(name, setting.key), "{name} --{flag}");
        }
    }
    assert!(has_effect("models", "stand_in") && has_effect("chat", "sessions"));
    assert!(!has_effect("batch", "sessions") && !has_effect("serve", "color"));
}

#[test]
fn examples_fit_a_terminal_of_90_columns() {
    for command in command().get_subcommands() {
        let Some(help) = command.get_after_help() else { continue };
        for line in help.to_string().lines().filter(|line| line.starts_with("  ")) {
            assert!(line.chars().count() <= 90, "{}: {line}", command.get_name());
        }
    }
}

/// The words of a line of shell, of which `oa` is the program after the last `|`.
fn words(line: &str) -> Vec<String> {
    let command = line.rsplit_once(" | oa ").map_or(line, |(_, rest)| rest);
    let command = command.strip_prefix("oa ").unwrap_or(command);
    let command = command.split(" | ").next().unwrap_or_default();
    let command = command.split(" > ").next().unwrap_or_default();
    // In quotes, a blank does not end a word.
    let mut words = vec!["oa".to_owned(), String::new()];
    for (place, part) in command.split('"').enumerate() {
        for (at, piece) in part.split(' ').enumerate() {
            match words.last_mut() {
                Some(word) if place % 2 == 1 && at > 0 => word.push_str(&format!(" {piece}")),
                Some(word) if at == 0 || word.is_empty() => word.push_str(piece),
                _ => words.push(piece.to_owned()),
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn commands_of_pages_are_commands() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let mut count = 0;
    for page in ["README.md", "../open-agent/src/guide/oa.md"] {
        let text = std::fs::read_to_string(format!("{folder}/{page}")).unwrap();
        for block in text.split("```sh\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            for line in block.lines().map(|line| line.split("  #").next().unwrap_or_default()) {
                if line.starts_with("oa ") || line.contains(" | oa ") {
                    let parsed = command().try_get_matches_from(words(line.trim()));
                    assert!(parsed.is_ok(), "{line}: {parsed:?}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 12, "{count}");
}

#[test]
fn each_setting_has_its_flag_and_is_passed_on() {
    for setting in SETTINGS {
        let Some(flag) = setting.flag else { continue };
        let mut words = vec!["oa".to_owned(), "chat".to_owned(), format!("--{flag}")];
        if flag != "stand-in" {
            words.push("value".to_owned());
        }
        let Command::Chat(chat) = Cli::parse_from(words).command else { panic!("not a chat") };
        let told = chat.settings.told();
        assert_eq!(told.len(), 1, "{flag}");
        assert_eq!(told[0].0, setting.key);
    }
}
