//! Examples about conversations that are kept.

use std::fs;

use crate::{check, example, refuse};

#[test]
fn sessions() {
    let folder = tempfile::tempdir().expect("there is room");
    let run = || {
        let mut program = example("sessions");
        program.arg("--in").arg(folder.path());
        program
    };
    let notes = || fs::read_to_string(folder.path().join("notes.txt"));
    let waits = ["add_note", "is waiting for permission", "2 messages saved"];
    check(&mut run(), &[&["> My name is Ada"], &waits[..]].concat());
    check(&mut run(), &[&["2 messages saved in"], &waits[..]].concat());
    assert!(notes().is_err(), "nothing is written before somebody agrees");
    check(run().arg("--approve"), &["add_note = \"written down\"", "4 messages saved"]);
    assert_eq!(notes().expect("it was written"), "the ferry leaves at 10:05\n");
    check(&mut run(), &["read_notes = [", "\"the ferry leaves at 10:05\". Your name is Ada."]);

    check(run().arg("Write down: call Bob."), &["add_note", "is waiting for permission"]);
    let denied = ["permission denied: I shall think of it", "not in the notebook"];
    check(run().args(["--deny", "I shall think of it"]), &denied);
    // A prompt is also an answer.
    check(run().arg("Write down: call Bob."), &["is waiting for permission", "14 messages saved"]);
    check(run().arg("What is there?"), &["leaves at 10:05\". Your", "19 messages saved"]);
    refuse(run().arg("--approve"), "no call is waiting for permission");
}

#[cfg(feature = "session-postgres")]
#[test]
fn shared_sessions() {
    let mut program = example("shared_sessions");
    let output = program.env_remove("OPEN_AGENT_POSTGRES_URL").output().expect("it is built");
    if String::from_utf8_lossy(&output.stdout).contains("Skipped: no database.") {
        assert!(!services::is_required(), "the server is installed in CI");
        return;
    }
    let expected = [
        "I shall remember it.",
        "At 10:05.",
        "load it again",
        "Loaded again: 4 messages.",
        "Stored: The ferry, 4 messages.",
    ];
    check(&mut program, &expected);
    let gone = ["--url", "postgresql://ada:secret@127.0.0.1:1/chats"];
    refuse(program.args(gone), "cannot connect to PostgreSQL at 127.0.0.1:1");
}
