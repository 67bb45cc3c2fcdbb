//! Sessions: their storage and continuation.

use std::sync::Arc;

use oa_testkit::{Reply, Request, Script};

use crate::program::{Home, text};
use crate::server::Server;

#[test]
fn sessions_are_listed_and_deleted() {
    let home = Home::new();
    let list = || text(&home.run(&["sessions"], "").stdout);
    assert_eq!(list(), "");
    for name in ["trip", "notes"] {
        let output = home.run(&["chat", "--stand-in", "--session", name], "Hello");
        assert!(output.status.success(), "{output:?}");
    }
    let listed = list();
    let mut names: Vec<_> = listed.lines().collect();
    names.sort_unstable();
    assert_eq!(names, ["notes", "trip"]);

    let output = home.run(&["sessions", "--delete", "trip", "--delete", ""], "");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(list(), listed, "a wrong name deletes none");
    let output = home.run(&["sessions", "--delete", "trip"], "");
    assert_eq!((output.status.code(), &*text(&output.stderr)), (Some(0), "deleted trip\n"));
    assert_eq!(list(), "notes\n");
    let output = home.run(&["sessions", "--delete", "trip"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("trip"), "{output:?}");
}

/// Another program continues the session while the model answers.
#[test]
fn unsaved_conversation_is_a_failure() {
    let home = Arc::new(Home::new());
    let other = Arc::clone(&home);
    let reply = Reply::by(move |_: &Request| {
        let output = other.run(&["chat", "--stand-in", "--session", "trip"], "Hello");
        assert!(output.status.success(), "{output:?}");
        Reply::text("an answer")
    });
    let server = Server::start(Script::new().models(["m"]).otherwise(reply));
    let output = home.run(&["chat", "--session", "trip", "--base-url", &server.url()], "Hi");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(text(&output.stdout), "an answer\n");
    let told = text(&output.stderr);
    let why =
        "oa: the conversation could not be saved: session trip was changed by another writer: ";
    assert!(told.starts_with(why) && told.lines().count() == 1, "{told}");
}

#[cfg(unix)]
#[test]
fn chat_says_once_that_it_is_not_saved() {
    use crate::terminal::Terminal;

    let home = Home::new();
    let chat = ["chat", "--stand-in", "--session", "trip"];
    let terminal = Terminal::start(&home, &chat);
    terminal.wait_for_prompt();
    assert!(home.run(&chat, "Hello").status.success());
    // The prompt, the call and the answer cannot be saved.
    terminal.type_keys("count these words\r");
    terminal.wait_for("The tool says: 3 words");
    terminal.wait_for_prompt();
    let text = terminal.text();
    assert_eq!(text.matches("the conversation could not be saved").count(), 1, "{text}");
    // As it says, it can be loaded again.
    terminal.type_keys("/load trip\r");
    terminal.wait_for("Session trip, 2 messages.");
}

/// A person sees more than names.
#[cfg(unix)]
#[test]
fn list_in_a_terminal_has_facts() {
    use crate::terminal::Terminal;

    let home = Home::new();
    let mut terminal = Terminal::start(&home, &["sessions"]);
    assert!(terminal.wait_for_end().success());
    assert!(terminal.text().contains("There are no sessions."), "{}", terminal.text());
    for name in ["trip", "大阪への旅", "cafe\u{301}"] {
        home.run(&["chat", "--stand-in", "--session", name], "Hello");
    }
    let mut terminal = Terminal::start_sized(&home, &["sessions"], 20, 80);
    assert!(terminal.wait_for_end().success());
    let text = terminal.text();
    // In the same column, however wide the characters of a name are.
    for (name, columns) in [("trip", 4), ("大阪への旅", 10), ("cafe\u{301}", 4)] {
        let row = format!("{name}{}2 messages     just now", " ".repeat(25 - columns));
        assert!(text.lines().any(|line| line == row), "{row:?} in\n{text}");
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn sqlite_sessions_continue_in_the_next_run() {
    let home = Home::new();
    let chat = ["chat", "--stand-in", "--sessions", "all.sqlite", "--session"];
    let ask = |session, prompt| {
        let output = home.run(&[&chat[..], &[session]].concat(), prompt);
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    };
    assert!(ask("trip", "Hello").starts_with("# A stand-in"));
    assert!(ask("other", "Hello").starts_with("# A stand-in"));
    assert_eq!(ask("trip", "Again"), "You said: Again\n");
    assert_eq!(ask("other", "And here"), "You said: And here\n");
    let head = std::fs::read(home.path().join("all.sqlite")).unwrap();
    assert!(head.starts_with(b"SQLite format 3\0"));
    assert!(!home.data().join("sessions").exists());
}

#[cfg(unix)]
#[test]
fn prompts_are_removed_and_sent_again() {
    use crate::terminal::Terminal;

    let home = Home::new();
    let mut terminal =
        Terminal::start_sized(&home, &["chat", "--stand-in", "--session", "trip"], 60, 80);
    terminal.wait_for_prompt();
    let enter = |line: &str, wanted: &str| {
        terminal.type_keys(&format!("{line}\r"));
        terminal.wait_for(wanted);
        terminal.wait_for_prompt();
    };
    enter("Hello", "A stand-in");
    enter("Who are you?", "You said: Who are you?");
    enter("/undo", "Removed: Who are you?");
    enter("count these words", "The tool says: 3 words");
    terminal.type_keys("/retry\r");
    terminal.wait_until("a second answer", |text| text.matches("The tool says").count() == 2);
    terminal.wait_for_prompt();
    enter("/context", "6 messages");
    enter("/undo", "Removed: count these words");
    terminal.type_keys("\x04");
    assert!(terminal.wait_for_end().success());

    let output = home.run(&["chat", "--stand-in", "--session", "trip"], "Again");
    assert_eq!(text(&output.stdout), "You said: Again\n");
    let file = home.data().join("sessions/session-trip.jsonl");
    let mut terminal = Terminal::start(&home, &["chat", "--stand-in", "--session", "trip"]);
    terminal.wait_for_prompt();
    terminal.type_keys("/context\r");
    terminal.wait_for("4 messages");
    terminal.wait_for_prompt();
    for _ in 0..2 {
        terminal.type_keys("/undo\r");
        terminal.wait_for("Removed: ");
        terminal.wait_for_prompt();
    }
    terminal.type_keys("/history\r");
    terminal.wait_for("The conversation is empty.");
    terminal.wait_for_prompt();
    terminal.type_keys("\x04");
    assert!(terminal.wait_for_end().success());
    assert!(file.exists());
}

/// A message that was sent while the model worked belongs to its prompt, and a prompt behind a stopped tool is one of its
/// own.
#[cfg(unix)]
#[test]
fn undo_after_a_restart_knows_the_prompts() {
    use crate::terminal::Terminal;

    let home = Home::new();
    let chat = ["chat", "--stand-in", "--session", "trip"];
    let mut terminal = Terminal::start_sized(&home, &chat, 60, 80);
    terminal.wait_for_prompt();
    terminal.type_keys("Hello\r");
    terminal.wait_for("A stand-in");
    terminal.type_keys("and this\r");
    terminal.wait_for("You said: and this");
    terminal.wait_for_prompt();
    terminal.type_keys("count these words\r");
    terminal.wait_for("counting");
    terminal.type_keys("\x03");
    terminal.wait_for("stopped");
    terminal.wait_for_prompt();
    terminal.type_keys("What now?\r");
    terminal.wait_for("You said: What now?");
    terminal.wait_for_prompt();
    terminal.type_keys("/quit\r");
    assert!(terminal.wait_for_end().success());
    assert!(home.run(&chat, "One more").status.success());

    let terminal = Terminal::start_sized(&home, &chat, 60, 80);
    terminal.wait_for_prompt();
    for removed in ["One more", "What now?", "count these words", "Hello"] {
        terminal.type_keys("/undo\r");
        terminal.wait_for(&format!("Removed: {removed}"));
        terminal.wait_for_prompt();
    }
    terminal.type_keys("/undo\r");
    terminal.wait_for("The conversation has no prompt.");
    assert!(!terminal.text().contains("Removed: and this"), "{}", terminal.text());
}

#[cfg(unix)]
#[test]
fn saved_conversation_loads_and_continues() {
    use crate::terminal::Terminal;

    let home = Home::new();
    let mut terminal = Terminal::start(&home, &["chat", "--stand-in"]);
    terminal.wait_for_prompt();
    terminal.type_keys("count these words\r");
    terminal.wait_for("The tool says: 3 words");
    terminal.wait_for_prompt();
    terminal.type_keys("/save trip\r");
    terminal.wait_for("Saved as trip, now and after every answer.");
    terminal.wait_for_prompt();
    // Saved without being told.
    terminal.type_keys("What now?\r");
    terminal.wait_for("You said: What now?");
    terminal.wait_for_prompt();
    terminal.type_keys("/save trip\r/quit\r");
    assert!(terminal.wait_for_end().success());

    let mut terminal = Terminal::start_sized(&home, &["chat", "--stand-in"], 40, 80);
    terminal.wait_for_prompt();
    terminal.type_keys("/load\r");
    terminal.wait_for("trip                     6 messages     just now");
    terminal.wait_for_prompt();
    terminal.type_keys("/load trip\r");
    terminal.wait_for("Session trip, 6 messages.");
    terminal.wait_for_prompt();
    let text = terminal.text();
    for line in [
        "› count these words",
        "  count_words(text: \"count these words\")",
        "  → 3 words",
        "  The tool says: 3 words",
        "› What now?",
        "  You said: What now?",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line:?} in\n{text}");
    }
    // The model has the conversation: to the first prompt of one it says something else.
    terminal.type_keys("And then?\r");
    terminal.wait_for("You said: And then?");
    terminal.wait_for_prompt();
    terminal.type_keys("/save other\r");
    terminal.wait_for("Saved as other");
    terminal.wait_for_prompt();
    terminal.type_keys("/save trip\r");
    terminal.wait_for("session trip already exists; /load trip continues it");
    terminal.wait_for_prompt();
    terminal.type_keys("\x04");
    assert!(terminal.wait_for_end().success());
    let saved = |name: &str| {
        let file = home.data().join(format!("sessions/session-{name}.jsonl"));
        std::fs::read_to_string(file).unwrap()
    };
    assert!(saved("trip").contains("And then?"), "{}", saved("trip"));
    assert!(saved("other").contains("count these words"), "{}", saved("other"));
}
