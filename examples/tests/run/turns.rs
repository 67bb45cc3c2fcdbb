//! Examples about what can be done while a turn runs.

#[cfg(unix)]
use std::io::Read;
#[cfg(unix)]
use std::process::{Command, Stdio};

use crate::{check, example};

#[test]
fn interrupt() {
    let interrupted = "finish reason: interrupted";
    let expected = [
        "After a time\n1 2 3",
        interrupted,
        "By something in its answer\n1 2 3 4 5 6 7 8 9 10 11 12 13\n",
        interrupted,
        "From another task\n1 2 3",
        interrupted,
        "In the middle of a tool",
        interrupted,
        "not 60",
        "By Ctrl-C",
        "1 2 3",
        // Nobody pressed it.
        "300\n  finish reason: stop",
        "Hello!",
    ];
    check(&mut example("interrupt"), &expected);
}

#[test]
fn steps() {
    let expected = [
        "> How long is the Danube?",
        r#"search(query: "Danube")"#,
        "It is 2,850 km long.",
        "the turn ended: stop\n",
        "report()",
        "report = \"reported\"",
        "the turn ended: stopped",
    ];
    check(&mut example("steps"), &expected);
}

#[test]
fn long_run() {
    let expected = [
        "> Read the whole log, and say how often the door opened.",
        "results cleared",
        "messages became a summary",
        "The door opened 60 times.",
        "messages were archived",
        "> How loud was it at noon?",
        "read_result(",
        "1 of 1440 lines contain",
        "At noon it was 30 dB loud.",
    ];
    check(&mut example("long_run"), &expected);
}

#[test]
fn steering() {
    let expected = [
        r#"paint(color: "red")"#,
        "one wall is red",
        "> Take blue instead of red.",
        r#"paint(color: "blue")"#,
        "The last wall is blue.",
        "finish reason: stop",
    ];
    check(&mut example("steering"), &expected);
}

#[test]
fn sub_agents() {
    let expected = [
        "I ask both.",
        r#"[rivers] calls look_up {"what":"longest river"}"#,
        "[rivers] says: the Volga, 3,531 km",
        "[rivers] is done: stop",
        "and its highest mountain Mount Elbrus, 5,642 m.",
        "finish reason: stop",
    ];
    check(&mut example("sub_agents"), &expected);
    let expected = ["[mountains] says: Mount Elbrus", "[mountains] is done: stop"];
    check(&mut example("sub_agents"), &expected);
}

#[test]
fn ask_user() {
    let expected = [
        r#"ask_user(question: "For how many people?")"#,
        r#"asks: "For how many people?""#,
        "The program could exit here",
        "book(people: 4)",
        "Booked: a table for four.",
    ];
    check(&mut example("ask_user"), &expected);
}

#[cfg(unix)]
#[test]
fn interrupt_by_ctrl_c() {
    let mut program = example("interrupt").stdout(Stdio::piped()).spawn().expect("it is built");
    let mut output = program.stdout.take().expect("it is piped");
    let (mut said, mut buffer) = (String::new(), [0; 1024]);
    let mut is_pressed = false;
    loop {
        let read = output.read(&mut buffer).expect("it can be read");
        said += &String::from_utf8_lossy(&buffer[..read]);
        let counts = |(_, after): (&str, &str)| after.contains(" 5 6 7");
        if !is_pressed && said.split_once("By Ctrl-C").is_some_and(counts) {
            let mut kill = Command::new("kill");
            let sent = kill.args(["-INT", &program.id().to_string()]).status();
            assert!(sent.is_ok_and(|status| status.success()));
            is_pressed = true;
        }
        if read == 0 {
            break;
        }
    }
    assert!(program.wait().is_ok_and(|status| status.success()), "{said}");
    let (_, rest) = said.split_once("By Ctrl-C").expect("it comes to that");
    let (_, rest) = rest.split_once("finish reason: interrupted").expect("it was interrupted");
    assert!(rest.contains("and so on, up to 300."), "{rest}");
}
