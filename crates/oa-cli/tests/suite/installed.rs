//! Completions, manual pages and help, which ship with the program.

use std::process::{Command, Output, Stdio};

use crate::program::{Home, text};

const COMMANDS: [&str; 7] = ["chat", "models", "doctor", "batch", "config", "completions", "man"];

/// Has a shell run a script; `None`, after a word about it, where there is no such shell.
#[expect(clippy::print_stderr, reason = "it says what was not tested")]
fn shell(home: &Home, name: &str, arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new(name);
    command.args(arguments).env_clear().envs(home.variables()).current_dir(home.path());
    let output = command.stdin(Stdio::null()).output();
    match output {
        Ok(output) => Some(output),
        Err(_) => {
            eprintln!("skipped: there is no {name}");
            None
        }
    }
}

#[test]
fn completions_complete_in_their_shells() {
    let home = Home::new();
    for (name, file) in [("bash", "oa.bash"), ("zsh", "_oa"), ("fish", "oa.fish")] {
        let script = text(&home.run(&["completions", name], "").stdout);
        for word in COMMANDS.iter().chain(&["--session", "--stand-in", "--at-once"]) {
            let word = if name == "fish" { word.trim_start_matches('-') } else { word };
            assert!(script.contains(word), "{name}: {word}");
        }
        std::fs::write(home.path().join(file), script).unwrap();
    }
    let complete = r#"source ./oa.bash; COMP_WORDS=(oa "$1"); COMP_CWORD=1; _oa oa "$1" oa; echo "${COMPREPLY[@]}""#;
    for (begun, wanted) in [("ch", "chat"), ("mo", "models"), ("d", "doctor")] {
        if let Some(output) = shell(&home, "bash", &["-c", complete, "bash", begun]) {
            assert_eq!(text(&output.stdout).trim(), wanted, "{output:?}");
        }
    }
    for (name, file) in [("zsh", "_oa"), ("fish", "oa.fish")] {
        if let Some(output) = shell(&home, name, &["-n", file]) {
            assert!(output.status.success(), "{output:?}");
        }
    }
}

#[test]
fn manual_has_commands_flags_and_settings() {
    let home = Home::new();
    let page = text(&home.run(&["man"], "").stdout);
    for name in COMMANDS {
        assert!(page.contains(&format!("oa\\-{name}(1)")), "{name}");
        let own = text(&home.run(&["man", name], "").stdout);
        assert!(own.contains(&format!(".TH oa-{name} 1")), "{own}");
        assert!(own.contains(&format!("fBoa {name}\\fR")), "{own}");
    }
    for setting in oa_cli::settings::SETTINGS {
        assert!(page.contains(setting.variable), "{}", setting.variable);
        assert!(page.contains(&format!("fB{}\\fR", setting.key)), "{}", setting.key);
    }
    let chat = text(&home.run(&["man", "chat"], "").stdout);
    assert!(chat.contains("\\-\\-session") && chat.contains("Ctrl\\-C stops"), "{chat}");
    let output = home.run(&["man", "chta"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean chat?"), "{output:?}");

    // The formatter of pages has nothing to complain about.
    std::fs::write(home.path().join("oa.1"), page).unwrap();
    std::fs::write(home.path().join("oa-chat.1"), chat).unwrap();
    for page in ["oa.1", "oa-chat.1"] {
        if let Some(output) = shell(&home, "groff", &["-man", "-Tutf8", "-ww", page]) {
            assert_eq!(text(&output.stderr), "", "{page}");
            assert!(text(&output.stdout).contains("Chat with a model"), "{output:?}");
        }
    }
}

#[test]
fn each_command_has_help_with_an_example() {
    let home = Home::new();
    let help = text(&home.run(&["--help"], "").stdout);
    for name in COMMANDS {
        assert!(help.contains(&format!("\n  {name}")), "{help}");
        let own = home.run(&[name, "--help"], "");
        assert!(own.status.success());
        let own = text(&own.stdout);
        assert!(own.contains(&format!("Usage: oa {name}")), "{own}");
        let has_example = own.contains("Examples:");
        assert_eq!(has_example, !matches!(name, "models" | "config"), "{own}");
    }
    let alone = home.run(&[], "");
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("oa chat --stand-in"), "{alone:?}");
}

#[test]
fn closed_pipe_is_silent() {
    let home = Home::new();
    let mut child = home
        .command(&["chat", "--stand-in", "go on"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(141), ""));
}
