//! Sessions of `oa serve` in which a call waits for permission.

use serde_json::json;

use crate::program::{Home, text};
use crate::serve::Served;
use crate::terminal::Terminal;

/// Has a served agent ask for permission, and ends the server. Returns the id of the conversation.
fn waiting(home: &Home) -> String {
    let served = Served::start(home, &[], &[]);
    let (_, created) = served.ask("POST", "/api/conversations", Some(json!({})), None);
    let id = created["id"].as_str().expect("an id").to_owned();
    let prompt = format!("/api/conversations/{id}/prompt");
    served.ask("POST", &prompt, Some(json!({"text": "keep this"})), None);
    let waiting = served.wait_for(&id, 2);
    assert_eq!(waiting["waiting"][0]["name"], "keep_note", "{waiting}");
    id
}

#[test]
fn a_call_that_waits_is_asked_about_and_runs() {
    let home = Home::new();
    let id = waiting(&home);
    let chat = ["chat", "--stand-in", "--session", &id];
    let mut terminal = Terminal::start(&home, &chat);
    terminal.wait_for("The last answer is waiting for permission:");
    terminal.wait_for(r#"keep_note({"text":"keep this"})? [y]es, [n]o, [a]lways:"#);
    // Stopped, it goes on waiting.
    terminal.type_keys("\x03");
    terminal.wait_for("It is still waiting");
    terminal.wait_for_prompt();
    terminal.type_keys("\x04");
    assert!(terminal.wait_for_end().success());

    let terminal = Terminal::start(&home, &chat);
    terminal.wait_for("? [y]es, [n]o");
    terminal.type_keys("y\r");
    terminal.wait_for("✓ keep_note(text: \"keep this\")");
    terminal.wait_for("The tool says: kept, until the program ends");
    terminal.wait_for_prompt();
    terminal.type_keys("And now?\r");
    terminal.wait_for("You said: And now?");
    terminal.wait_for_prompt();
    drop(terminal);
    // It is answered for good.
    let output = home.run(&chat, "And here?");
    assert_eq!(
        (text(&output.stdout).as_str(), text(&output.stderr).as_str()),
        ("You said: And here?\n", "")
    );
}

/// The person reads why before the question.
#[test]
fn one_prompt_asks_after_its_text() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, &["chat", "--stand-in", "keep this"]);
    terminal.wait_for("? [y]es, [n]o");
    let screen = terminal.text();
    let (before, _) = screen.split_once("keep_note(").expect("the question names the call");
    assert!(before.contains("I keep that as a note, if I may."), "{screen}");
    terminal.type_keys("y\r");
    terminal.wait_for("The tool says: kept, until the program ends");
    assert!(terminal.wait_for_end().success());
}

/// The terminal shows `^C` behind the question.
#[test]
fn a_stopped_question_ends_its_line() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, &["chat", "--stand-in", "keep this"]);
    terminal.wait_for("? [y]es, [n]o");
    terminal.type_keys("\x03");
    assert_eq!(terminal.wait_for_end().code(), Some(130));
    terminal.wait_for("\noa: stopped");
}

#[test]
fn a_call_that_waits_is_denied_with_a_reason() {
    let home = Home::new();
    let id = waiting(&home);
    let terminal = Terminal::start(&home, &["chat", "--stand-in", "--session", &id]);
    terminal.wait_for("? [y]es, [n]o");
    terminal.type_keys("n not today\r");
    terminal.wait_for("The tool says: the user said no: not today");
    terminal.wait_for_prompt();
}

#[test]
fn waiting_call_needs_person_or_mode_all() {
    let home = Home::new();
    let id = waiting(&home);
    let chat = ["chat", "--stand-in", "--session", &id];
    let output = home.run(&[&chat[..], &["--mode", "all"]].concat(), "And now?");
    assert_eq!(
        text(&output.stdout),
        "The tool says: kept, until the program ends\n\nYou said: And now?\n",
        "{output:?}"
    );

    let id = waiting(&home);
    let output = home.run(&["chat", "--stand-in", "--session", &id], "And now?");
    assert_eq!(text(&output.stdout), "You said: And now?\n", "{output:?}");
    assert_eq!(
        text(&output.stderr),
        "✗ keep_note(text: \"keep this\") waited for permission and was not run\n"
    );
    let file = home.data().join(format!("sessions/session-{id}.jsonl"));
    let saved = std::fs::read_to_string(file).unwrap();
    assert!(saved.contains("not run: the user moved on without it"), "{saved}");
}
