//! The program in pipes: plain text, no escapes, exit status.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::program::{Home, not_found, text};

#[test]
fn version_and_help_are_printed() {
    let home = Home::new();
    let version = home.run(&["--version"], "");
    assert!(version.status.success());
    assert!(text(&version.stdout).starts_with("oa 0."));
    let help = home.run(&["chat", "--help"], "");
    for word in ["--mcp", "--session", "--stand-in", "Examples:"] {
        assert!(text(&help.stdout).contains(word), "{word}");
    }
    assert_eq!(home.run(&["caht"], "").status.code(), Some(2));
}

#[test]
fn an_answer_in_a_pipe_is_plain_text() {
    let home = Home::new();
    let output = home.run(&["chat", "--stand-in"], "Hello");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answer = text(&output.stdout);
    assert!(answer.starts_with("# A stand-in\n\nI am a **stand-in**"), "{answer}");
    assert!(answer.ends_with("`/help` lists the commands.\n"), "{answer}");
    assert!(!answer.contains('\x1b'));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn arguments_come_before_the_input() {
    let home = Home::new();
    let output = home.run(&["chat", "--stand-in", "count", "these:"], "one two");
    assert_eq!(
        text(&output.stdout),
        "I count the words of your prompt.\n\nThe tool says: 4 words\n"
    );
    assert_eq!(
        text(&output.stderr),
        "✓ count_words(text: \"count these:\\n\\none two\") → 4 words\n"
    );
}

/// A scheduler or another program may pass on an input that never ends.
#[test]
fn input_without_an_end_is_explained() {
    let home = Home::new();
    let mut child = home
        .command(&["chat", "--stand-in", "Hello"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let input = child.stdin.take().expect("its input is ours");
    let mut errors = BufReader::new(child.stderr.take().expect("its errors are ours"));
    let mut told = String::new();
    errors.read_line(&mut told).expect("it is text");
    assert!(told.starts_with("waiting for the end of standard input"), "{told}");
    drop(input);
    let output = child.wait_with_output().expect("the program ends");
    assert!(
        output.status.success() && text(&output.stdout).starts_with("# A stand-in"),
        "{output:?}"
    );
}

#[test]
fn calls_in_a_pipe_are_not_asked_about() {
    let home = Home::new();
    let output = home.run(&["chat", "--stand-in"], "keep this");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("The tool says: permission cannot be requested"));
    assert!(text(&output.stderr).contains("denied: permission cannot be requested"));
    let output = home.run(&["chat", "--stand-in", "--mode", "all"], "keep this");
    assert!(text(&output.stdout).contains("The tool says: kept"));
    let output = home.run(&["chat", "--stand-in", "--mode", "plan"], "count this");
    assert!(text(&output.stderr).contains("denied"), "{output:?}");
}

#[test]
fn usage_errors_have_status_2_and_advice() {
    let home = Home::new();
    let missing = not_found();
    for (arguments, input, wanted) in [
        (&["chat", "--stand-in"][..], " \n", "there is no prompt"),
        (
            &["chat", "--stand-in", "--mode", "maybe"],
            "x",
            "the flag --mode: \"maybe\" is not one of",
        ),
        (&["chat", "--stand-in", "--tools", "shell"], "x", "use files:DIR"),
        (&["chat", "--stand-in", "--tools", "files:nowhere"], "x", &format!("nowhere: {missing}")),
        (&["chat", "--stand-in", "--mcp", "none.json"], "x", &format!("none.json: {missing}")),
        (&["chat", "--config", "none.toml"], "x", &format!("none.toml: {missing}")),
        (
            &["chat", "--stand-in", "--temperature=-1"],
            "x",
            "the flag --temperature: \"-1\" is not a number of at least 0",
        ),
        (&["batch", "none", "-o", "out", "--at-once", "0"], "", "--at-once"),
        (&["serve", "--stand-in", "--listen", "here:now"], "", "oa: here:now: invalid port"),
        (
            &["serve", "--stand-in", "--listen", "0", "--allow-origin", "here"],
            "",
            "oa: the flag --allow-origin: `here` is not an origin",
        ),
    ] {
        let output = home.run(arguments, input);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(text(&output.stderr).contains(wanted), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn session_continues_in_the_next_run() {
    let home = Home::new();
    let chat = ["chat", "--stand-in", "--session", "trip"];
    assert!(text(&home.run(&chat, "Hello").stdout).starts_with("# A stand-in"));
    assert_eq!(text(&home.run(&chat, "Again").stdout), "You said: Again\n");
    assert!(home.data().join("sessions/session-trip.jsonl").exists());
}

#[test]
fn tools_read_files_and_nothing_outside() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("notes")).unwrap();
    std::fs::write(home.path().join("notes/today.txt"), "rain").unwrap();
    std::fs::write(home.path().join("secret.txt"), "secret").unwrap();
    let chat = ["chat", "--stand-in", "--tools", "files:notes"];
    let output = home.run(&chat, "read today.txt");
    assert!(text(&output.stdout).contains("The tool says: rain\n"), "{output:?}");
    let forecast: String = (1..=500).map(|day| format!("day {day}: rain\n")).collect();
    std::fs::write(home.path().join("notes/forecast.txt"), forecast).unwrap();
    let output = home.run(&chat, "read forecast.txt");
    let told = text(&output.stdout);
    assert!(told.contains("````\nday 1: rain\nday 2: rain\n"), "{told}");
    assert!(told.ends_with("day 12: rain\n````\n\nThat has 500 lines in all.\n"), "{told}");
    std::fs::write(home.path().join("notes/forecast.txt"), "rain ".repeat(1_000)).unwrap();
    let told = text(&home.run(&chat, "read forecast.txt").stdout);
    assert!(told.ends_with("rain …\n") && told.len() < 700, "{told}");
    // A part of a long file is whole lines, and not cut off as JSON.
    let forecast = "rain, then sun\n".repeat(20_000);
    std::fs::write(home.path().join("notes/forecast.txt"), forecast).unwrap();
    let told = text(&home.run(&chat, "read forecast.txt").stdout);
    assert!(told.ends_with("rain, then sun\n````\n\nThat has 562 lines in all.\n"), "{told}");
    let output = home.run(&chat, "read ../secret.txt");
    assert!(text(&output.stdout).contains("outside of the folder"), "{output:?}");
    // A shell leaves both as they are.
    for tools in ["files:~", "files:~/notes"] {
        let output = home.run(&["chat", "--stand-in", "--tools", tools], "read today.txt");
        assert_eq!(output.status.code(), Some(0), "{tools}: {output:?}");
    }
}

/// A list and repeated flags are the same. Each folder has tools of its own.
#[test]
fn tools_of_several_folders_are_apart() {
    let home = Home::new();
    for folder in ["notes", "plans"] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
        std::fs::write(home.path().join(folder).join("a.txt"), folder).unwrap();
    }
    for tools in [
        &["--tools", "files:notes,files:plans"][..],
        &["--tools", "files:notes", "--tools", "files:plans"],
        &["--tools", "files:notes, files:plans,", "--tools", "files:./notes"],
    ] {
        let read = |prompt: &str| {
            let output = home.run(&[&["chat", "--stand-in"], tools].concat(), prompt);
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            text(&output.stdout)
        };
        assert!(read("read a.txt").contains("The tool says: notes\n"));
    }
}

/// Without a server, people see how a report looks. The rules call no tools, and the report says so.
#[cfg(feature = "serve")]
#[test]
fn the_doctor_examines_the_stand_in() {
    let home = Home::new();
    let output = home.run(&["doctor", "--stand-in"], "");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = text(&output.stdout);
    let verdict = |probe: &str| {
        let line = report.lines().find_map(|line| line.strip_prefix(probe));
        line.and_then(|line| line.split_whitespace().next()).unwrap_or("missing")
    };
    for (probe, wanted) in [
        ("reach", "ok"),
        ("models", "ok"),
        ("streaming", "ok"),
        ("usage", "ok"),
        ("auto calls", "fail"),
        ("tool results", "ok"),
        ("unknown model", "ok"),
    ] {
        assert_eq!(verdict(probe), wanted, "{probe}: {report}");
    }
    let told = text(&output.stderr);
    assert!(told.contains("a few rules, not a language model"), "{told}");
}

#[cfg(unix)]
#[test]
fn invalid_text_in_settings_is_located() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let home = Home::new();
    std::fs::write(home.path().join("bad.toml"), b"model = 'a'\n# caf\xe9\n").unwrap();
    let output = home.run(&["config", "--config", "bad.toml"], "");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(text(&output.stderr), "oa: bad.toml, line 2: not valid UTF-8\n");

    let mut command = home.command(&["config"]);
    let output = command.env("OPEN_AGENT_SYSTEM", OsStr::from_bytes(b"caf\xe9")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(text(&output.stderr), "oa: the variable OPEN_AGENT_SYSTEM: not valid UTF-8\n");
}

/// The home folder of some services is no folder: no settings are there, and none are missing.
#[cfg(unix)]
#[test]
fn a_home_that_is_no_folder_has_no_settings() {
    let home = Home::new();
    let mut command = home.command(&["config"]);
    command.env_remove("XDG_CONFIG_HOME").env("HOME", "/dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).contains("/dev/null/.config/oa/config.toml (not found)"));
}
