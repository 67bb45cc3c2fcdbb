//! The example `durable`, which needs a server.

use crate::{check, example};

#[test]
fn durable() {
    let mut program = example("durable");
    program.env_remove("OPEN_AGENT_RESTATE_URL");
    let output = program.output().expect("it is built");
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("Skipped: no Restate.") {
        assert!(!services::is_required(), "the server is installed in CI");
        return;
    }
    let expected = [
        "looked up the order",
        "label 1 of 3",
        "label 2 of 3",
        "The worker is killed. Another one starts.",
        "label 1 of 3",
        "label 3 of 3",
        "The 3 labels of order 1 are printed.",
        "Turn 1 of the session, 6 messages.",
    ];
    check(&mut program, &expected);
    assert_eq!(said.matches("looked up the order").count(), 1, "it was recorded: {said}");
}
