//! `oa chat` in a terminal.

use crate::program::Home;
use crate::terminal::Terminal;

const CHAT: [&str; 2] = ["chat", "--stand-in"];

#[test]
fn an_answer_is_rendered_as_it_comes() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("Hello\r");
    terminal.wait_for("Ctrl-C stops it");
    terminal.wait_for("tokens/s");
    terminal.wait_for_prompt();
    let text = terminal.text();
    assert!(text.contains("I am a stand-in: a few rules and no language model."), "{text}");
    assert!(text.contains("ask me to      │ and you see"), "{text}");
    assert!(text.contains("• For a real model"), "{text}");
    assert!(!text.contains("**") && !text.contains("Ctrl-C stops it"), "{text}");
    assert!(terminal.cell_at("A stand-in").bold());
    assert!(terminal.cell_at("tokens ·").dim());
    terminal.type_keys("/quit\r");
    assert!(terminal.wait_for_end().success());
}

#[test]
fn a_call_shows_progress_and_its_result() {
    let home = Home::new();
    let terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    // That for the rest of long results comes later.
    assert!(terminal.text().contains("2 tools · /help"), "{}", terminal.text());
    terminal.type_keys("count me in\r");
    terminal.wait_for("%  counting");
    terminal.wait_for("✓ count_words(text: \"count me in\")");
    terminal.wait_for("→ 3 words");
    terminal.wait_for("The tool says: 3 words");
    terminal.wait_for_prompt();
}

#[test]
fn permission_answers_are_obeyed() {
    let home = Home::new();
    let terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("keep a\u{202e}b\r");
    terminal.wait_for(r#"keep_note({"text":"keep a\u{202e}b"})? [y]es, [n]o, [a]lways:"#);
    terminal.type_keys("n not that\r");
    terminal.wait_for("denied: the user said no: not that");
    terminal.wait_for_prompt();
    terminal.type_keys("keep that\r");
    terminal.wait_for("keep that\"})? [y]es");
    terminal.type_keys("a\r");
    terminal.wait_for("The tool says: kept");
    terminal.wait_for_prompt();
    terminal.type_keys("keep more\r");
    terminal.wait_until("a call without a question", |text| {
        text.matches("The tool says: kept").count() == 2
    });
}

#[test]
fn ctrl_c_stops_only_the_answer() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("go on\r");
    terminal.wait_for("Paragraph 3:");
    terminal.type_keys("\x03");
    terminal.wait_for("stopped");
    terminal.wait_for_prompt();
    assert!(!terminal.text().contains("Paragraph 200"));
    // At the prompt: the first one only says so, and text between the two starts over.
    terminal.type_keys("\x03");
    terminal.wait_for("Press Ctrl-C again to end the program.");
    terminal.type_keys("text");
    terminal.wait_for("› text");
    terminal.type_keys("\x03");
    terminal.wait_for_prompt();
    terminal.type_keys("\x03");
    terminal.wait_until("the second hint", |text| text.matches("Ctrl-C again").count() == 2);
    terminal.wait_for_prompt();
    terminal.type_keys("\x03");
    assert!(terminal.wait_for_end().success());
}

#[test]
fn ctrl_c_at_a_question_stops_the_turn() {
    let home = Home::new();
    let terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("keep this\r");
    terminal.wait_for("? [y]es");
    terminal.type_keys("\x03");
    terminal.wait_for("stopped");
    terminal.wait_for_prompt();
    // The next question is a question of its own.
    terminal.type_keys("keep that\r");
    terminal.wait_for("keep that\"})? [y]es");
    terminal.type_keys("y\r");
    terminal.wait_for("The tool says: kept");
}

#[test]
fn typing_while_it_works_steers() {
    let home = Home::new();
    let terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("count these words\r");
    terminal.wait_for("counting");
    terminal.type_keys("and be brief\r");
    terminal.wait_for("» and be brief");
    terminal.wait_for("→ 3 words");
    terminal.wait_for("You said: and be brief");
    terminal.wait_for_prompt();
}

#[test]
fn unsent_text_moves_to_the_next_prompt() {
    let home = Home::new();
    let terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("Hello\r");
    terminal.wait_for("Ctrl-C stops it");
    terminal.type_keys("half a");
    terminal.wait_for("tokens/s");
    terminal.wait_until("the text", |text| text.ends_with("› half a"));
    terminal.type_keys(" sentence\r");
    terminal.wait_for("You said: half a sentence");
}

#[test]
fn a_paste_of_several_lines_is_one_prompt() {
    let home = Home::new();
    let terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("Hello\r");
    terminal.wait_for("tokens/s");
    terminal.wait_for_prompt();
    terminal.paste("first line\nsecond line");
    terminal.wait_for("second line");
    assert!(!terminal.text().contains("You said"));
    terminal.type_keys("\r");
    terminal.wait_for("You said: first line");
    terminal.wait_for_prompt();
    // It does not clear the screen, and is sent as it is.
    terminal.paste("a\x1b[2Jb");
    terminal.wait_for("› a?[2Jb");
    assert!(terminal.text().contains("You said: first line"));
    terminal.type_keys("\r");
    terminal.wait_for("You said: a\\u{1b}[2Jb");
}

#[test]
fn resizing_draws_the_answer_again() {
    let home = Home::new();
    let terminal = Terminal::start_sized(&home, &CHAT, 20, 80);
    terminal.wait_for_prompt();
    terminal.type_keys("go on\r");
    terminal.wait_for("Paragraph 2:");
    terminal.resize(12, 40);
    terminal.wait_until("narrow text", |text| {
        text.contains("Paragraph 9:") && text.lines().all(|line| line.chars().count() <= 40)
    });
    terminal.resize(30, 100);
    terminal.wait_for("Paragraph 14: still going on, word after word, until you stop me.");
    terminal.type_keys("\x03");
    terminal.wait_for_prompt();
    let text = terminal.text();
    assert_eq!(text.matches("Paragraph 14:").count(), 1, "{text}");
    assert_eq!(text.matches("Ctrl-C stops it").count(), 0, "{text}");
}

#[test]
fn wide_characters_and_a_narrow_terminal() {
    let home = Home::new();
    let terminal = Terminal::start_sized(&home, &CHAT, 24, 24);
    terminal.wait_for_prompt();
    terminal.type_keys("Hello\r");
    terminal.wait_for("tokens/s");
    terminal.wait_for_prompt();
    terminal.type_keys("大きさはどのくらいですか 🦀\r");
    terminal.wait_for("You said:");
    terminal.wait_for_prompt();
    let text = terminal.text();
    let answer = text.rsplit("You said:").next().unwrap_or_default();
    let shown: String =
        answer.split("tokens").next().unwrap_or_default().split_whitespace().collect();
    assert!(shown.starts_with("大きさはどのくらいですか🦀"), "{text}");
    // No word is broken, because no column of names takes the room.
    terminal.type_keys("/help\r");
    terminal.wait_for("\ntyping while the model\n  works, sends it a\n  message before its\n");
}

#[test]
fn commands_show_and_change_things() {
    let home = Home::new();
    let terminal = Terminal::start_sized(&home, &CHAT, 50, 100);
    terminal.wait_for_prompt();
    for (line, wanted) in [
        ("/help", "list the tools that the model may call"),
        ("/tools", "count_words  read  Counts the words"),
        ("/mode", "The mode is reads."),
        ("/mode ask", "The mode is ask."),
        ("/mode never", "unknown mode never"),
        ("/model", "The model is stand-in, the only one."),
        ("/model other", "The model is other."),
        ("/system Be brief.", "The system prompt is set."),
        ("/system", "The system prompt: Be brief."),
        ("/thinking", "Thinking: up to the model"),
        ("/thinking low", "Thinking: low"),
        ("/thinking off", "Thinking: off"),
        ("/context", "unknown; set `context`."),
        ("/history", "The conversation is empty."),
        ("/undo", "The conversation has no prompt."),
        ("/mcp", "There are no MCP servers"),
        ("/save trip", "Saved as trip"),
        ("/load nowhere", "session nowhere does not exist"),
        ("/load trip", "Session trip, 0 messages."),
        ("/hlep", "did you mean /help?"),
    ] {
        terminal.type_keys(&format!("{line}\r"));
        terminal.wait_for(wanted);
        terminal.wait_for_prompt();
    }
    terminal.type_keys("/clear\r");
    // The same words as those of `/history`.
    let empty = "The conversation is empty.";
    terminal.wait_until("two empty conversations", |text| text.matches(empty).count() == 2);
}

#[test]
fn the_history_of_prompts_is_kept() {
    use rustix::process::{Pid, Signal, kill_process};

    let home = Home::new();
    let modes = ["plan", "ask", "all"];
    for mode in modes {
        let mut terminal = Terminal::start(&home, &CHAT);
        terminal.wait_for_prompt();
        terminal.type_keys(&format!("/mode {mode}\r"));
        terminal.wait_for(&format!("The mode is {mode}."));
        terminal.wait_for_prompt();
        let id = Pid::from_raw(terminal.id().cast_signed()).unwrap();
        match mode {
            "plan" => terminal.type_keys("\x04"),
            // As if its window was closed.
            "ask" => kill_process(id, Signal::HUP).unwrap(),
            _ => kill_process(id, Signal::KILL).unwrap(),
        }
        terminal.wait_for_end();
    }
    let terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    for mode in modes.into_iter().rev() {
        terminal.type_keys("\x1b[A");
        terminal.wait_for(&format!("› /mode {mode}"));
    }
    use std::os::unix::fs::PermissionsExt;
    let file = home.data().join("history.txt");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn signal_restores_the_terminal() {
    use rustix::process::{Pid, Signal, kill_process};

    let home = Home::new();
    let mut terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("go on\r");
    terminal.wait_for("Paragraph 2:");
    let id = Pid::from_raw(terminal.id().cast_signed()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    assert_eq!(terminal.wait_for_end().code(), Some(143));
    terminal.wait_for_last("\x1b[?2004l\x1b[?25h");
}

/// As other line editors do: the shell gets the terminal back, and later the program does.
#[test]
fn ctrl_z_suspends_the_program() {
    let home = Home::new();
    let script =
        r#""$0" chat --stand-in; for n in 1 2 3; do echo "suspended $n"; read line; fg; done"#;
    let terminal = Terminal::start_script(&home, script);
    let suspend = |number: usize| {
        terminal.type_keys("\x1a");
        terminal.wait_for(&format!("suspended {number}"));
        assert_eq!(terminal.mode(), terminal.first_mode);
        terminal.type_keys("\r");
    };
    terminal.wait_for_prompt();
    let during = terminal.mode();
    terminal.type_keys("go on");
    terminal.wait_for("› go on");
    suspend(1);
    terminal.wait_until("the text", |text| text.ends_with("› go on"));
    terminal.type_keys("\r");
    terminal.wait_for("Paragraph 2:");
    terminal.type_keys("more");
    terminal.wait_for("› more");
    suspend(2);
    terminal.wait_until("the text", |text| text.ends_with("› more"));
    terminal.wait_for("Ctrl-C stops it");
    terminal.type_keys("\x03");
    terminal.wait_for("stopped");
    terminal.wait_until("the prompt", |text| text.ends_with("› more"));
    terminal.type_keys("\x15keep this\r");
    terminal.wait_for("? [y]es");
    suspend(3);
    terminal.wait_until("the answer", |text| text.ends_with("\n?"));
    terminal.type_keys("y\r");
    terminal.wait_for("The tool says: kept");
    terminal.wait_for_prompt();
    assert_eq!(terminal.mode(), during);
}
