//! Type-ahead: text that is typed before prompts and during answers, commands and questions.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use oa_testkit::{Reply, Request, Script};

use crate::program::Home;
#[cfg(target_os = "linux")]
use crate::program::PROGRAM;
use crate::server::Server;
use crate::terminal::Terminal;

const CHAT: [&str; 2] = ["chat", "--stand-in"];

/// A server that lists its models so many times, and then answers nothing any more. Returns its address.
fn falls_silent_after(lists: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let mut silent = Vec::new();
        for (number, stream) in listener.incoming().flatten().enumerate() {
            if number < lists { list_models(stream) } else { silent.push(stream) }
        }
    });
    format!("http://{address}/v1")
}

fn list_models(mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => head.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
    let body = r#"{"data": [{"id": "tiny"}]}"#;
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    let _ = stream.write_all((head + body).as_bytes());
}

#[test]
fn lines_typed_ahead_of_the_prompt_are_sent() {
    let home = Home::new();
    let terminal = Terminal::start_sized(&home, &CHAT, 50, 80);
    terminal.wait_for_prompt();
    // At once: while the first is worked on, nobody reads the others.
    terminal.type_keys("/mode ask\r/system Be brief.\r/system\rHello\r");
    terminal.wait_for("The mode is ask.");
    terminal.wait_for("The system prompt: Be brief.");
    terminal.wait_for("I am a stand-in");
    terminal.wait_for("tokens/s");
    terminal.wait_for_prompt();
}

/// More than the reader of keys takes at once, as from a terminal that does not bracket what is pasted.
#[test]
fn long_text_that_comes_at_once_is_whole() {
    let home = Home::new();
    let length = |request: &Request| {
        let last = request.messages().last().and_then(|last| last["content"].as_str());
        Reply::text(format!(
            "{} bytes came. {}",
            last.unwrap_or("").len(),
            "And so on. ".repeat(40)
        ))
    };
    let reply = Reply::by(move |request| length(request).delay(Duration::from_millis(50)));
    let server = Server::start(Script::new().models(["m"]).otherwise(reply));
    let terminal = Terminal::start(&home, &["chat", "--base-url", &server.url()]);
    terminal.wait_for_prompt();
    for size in [1_500, 3_000] {
        terminal.type_keys(&format!("{}\r", "x".repeat(size)));
        terminal.wait_for(&format!("{size} bytes came."));
    }
    terminal.wait_for("Ctrl-C stops");
    terminal.type_keys(&format!("{}\r", "y".repeat(3_500)));
    terminal.wait_for("3500 bytes came.");
}

#[test]
fn a_slow_start_takes_keys_and_can_be_stopped() {
    let home = Home::new();
    let url = falls_silent_after(0);
    let mut terminal = Terminal::start(&home, &["chat", "--base-url", &url]);
    terminal.wait_for("looking for a model");
    terminal.type_keys("Hello");
    terminal.wait_for("› Hello");
    terminal.type_keys("\x03");
    assert_eq!(terminal.wait_for_end().code(), Some(130));
    terminal.wait_for("oa: stopped");
}

#[test]
fn ctrl_c_stops_a_command_and_not_the_program() {
    let home = Home::new();
    let url = falls_silent_after(1);
    let mut terminal = Terminal::start(&home, &["chat", "--base-url", &url]);
    terminal.wait_for_prompt();
    terminal.type_keys("/model\r");
    terminal.wait_for("working");
    terminal.type_keys("/mode\r");
    terminal.wait_for("» /mode  (waits for its turn)");
    terminal.type_keys("half a line");
    terminal.wait_for("› half a line");
    terminal.type_keys("\x03");
    terminal.wait_for("stopped");
    // What was sent meanwhile runs, and what was not sent is still there.
    terminal.wait_for("The mode is reads.");
    terminal.wait_until("the text", |text| text.ends_with("› half a line"));
    terminal.type_keys("\x15/quit\r");
    assert!(terminal.wait_for_end().success());
}

/// A prompt without an answer is not part of the conversation, and is still the last one.
#[test]
fn an_unanswered_prompt_is_sent_again() {
    let home = Home::new();
    let url = falls_silent_after(1);
    let terminal = Terminal::start(&home, &["chat", "--base-url", &url]);
    terminal.wait_for_prompt();
    for (number, line) in ["Hello", "/retry"].into_iter().enumerate() {
        terminal.type_keys(&format!("{line}\r"));
        terminal.wait_for("Ctrl-C stops");
        terminal.type_keys("\x03");
        let is_stopped = |text: &str| text.matches("stopped").count() == number + 1;
        terminal.wait_until("the end", is_stopped);
        terminal.wait_for_prompt();
    }
    terminal.type_keys("/undo\r");
    terminal.wait_for("Removed: Hello");
    terminal.wait_for_prompt();
    terminal.type_keys("/retry\r");
    terminal.wait_for("The conversation has no prompt.");
}

#[test]
fn a_command_waits_for_the_end_of_the_answer() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("go on\r");
    terminal.wait_for("Paragraph 2:");
    terminal.type_keys("/mode plan\r");
    terminal.wait_for("» /mode plan  (waits for its turn)");
    // A mistake is told at once, and can be corrected.
    terminal.type_keys("/hlep\r");
    terminal.wait_for("unknown command /hlep; did you mean /help?");
    terminal.wait_for("› /hlep");
    terminal.type_keys("\x15");
    terminal.wait_until("no hint", |text| !text.contains("did you mean"));
    terminal.type_keys("\x04");
    terminal.wait_for("Ctrl-C stops the answer; /quit ends the program");
    terminal.type_keys("\x03");
    terminal.wait_for("The mode is plan.");
    terminal.wait_for_prompt();
    terminal.type_keys("\x1b[A");
    terminal.wait_for("› /mode plan");
    terminal.type_keys("\x15go on\r");
    terminal.wait_for("Paragraph 2:");
    terminal.type_keys("/quit\r");
    assert!(terminal.wait_for_end().success());
}

#[test]
fn text_before_a_question_does_not_answer() {
    let home = Home::new();
    let terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("keep this\ryes, and be brief");
    terminal.wait_for("? [y]es");
    terminal.wait_until("an empty answer", |text| text.ends_with("\n?"));
    terminal.type_keys("\r");
    terminal.wait_for("y runs the call; n or n REASON denies it");
    terminal.type_keys("maybe\r");
    terminal.wait_for("? maybe");
    assert!(!terminal.text().contains("denied") && !terminal.text().contains("kept"));
    terminal.type_keys("\x15y\r");
    terminal.wait_for("The tool says: kept");
    terminal.wait_until("the text", |text| text.ends_with("› yes, and be brief"));
}

#[test]
fn ctrl_c_twice_at_once_ends_the_program() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("\x03\x03");
    assert!(terminal.wait_for_end().success());
}

#[test]
fn steered_messages_are_in_the_history() {
    let home = Home::new();
    let terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("count these words\r");
    terminal.wait_for("counting");
    terminal.type_keys("and be brief\r");
    terminal.wait_for("You said: and be brief");
    terminal.wait_for_prompt();
    terminal.type_keys("\x1b[A");
    terminal.wait_until("the message", |text| text.ends_with("› and be brief"));
    terminal.type_keys("\x1b[A");
    terminal.wait_until("the prompt", |text| text.ends_with("› count these words"));
}

/// Has a message wait for the next prompt: it was sent during an answer that was then stopped.
fn with_a_late_message(home: &Home) -> Terminal {
    let terminal = Terminal::start_sized(home, &CHAT, 50, 80);
    terminal.wait_for_prompt();
    terminal.type_keys("go on\r");
    terminal.wait_for("Paragraph 2:");
    terminal.type_keys("and this\r");
    terminal.wait_for("» and this  (waits for the next step)");
    terminal.type_keys("\x03");
    terminal.wait_for("» and this  (will be sent with your next prompt)");
    terminal.wait_for_prompt();
    terminal
}

/// Undoes what was sent last, each in turn.
fn undo(terminal: &Terminal, removed: &[&str]) {
    for removed in removed {
        terminal.type_keys("/undo\r");
        terminal.wait_for(&format!("Removed: {removed}"));
        terminal.wait_for_prompt();
    }
    terminal.type_keys("/undo\r");
    terminal.wait_for("The conversation has no prompt.");
}

#[test]
fn undo_first_removes_what_waits() {
    let home = Home::new();
    undo(&with_a_late_message(&home), &["and this", "go on"]);
}

/// It belongs to the prompt that it was sent with.
#[test]
fn undo_removes_a_prompt_with_late_messages() {
    let home = Home::new();
    let terminal = with_a_late_message(&home);
    terminal.type_keys("Hello\r");
    terminal.wait_for("You said: and this");
    terminal.wait_for_prompt();
    // Both are sent again, and neither of them twice.
    terminal.type_keys("/retry\r");
    terminal.wait_until("the answer", |text| text.matches("You said: and this").count() == 2);
    terminal.wait_for_prompt();
    terminal.type_keys("/context\r");
    terminal.wait_for("in 5 messages");
    terminal.wait_for_prompt();
    undo(&terminal, &["Hello\nRemoved: and this", "go on"]);
}

/// A prompt behind a tool that was stopped is no message that was sent while the tool ran.
#[test]
fn undo_after_a_stopped_tool_removes_one_prompt() {
    let home = Home::new();
    let terminal = Terminal::start_sized(&home, &CHAT, 50, 80);
    terminal.wait_for_prompt();
    terminal.type_keys("count these words\r");
    terminal.wait_for("counting");
    terminal.type_keys("\x03");
    terminal.wait_for("stopped");
    terminal.wait_for_prompt();
    terminal.type_keys("Hello\r");
    terminal.wait_for("You said: Hello");
    terminal.wait_for_prompt();
    undo(&terminal, &["Hello", "count these words"]);
}

/// A conversation that has become shorter during a turn still has its prompt.
#[test]
fn undo_in_a_short_context_removes_the_prompt() {
    let home = Home::new();
    let chat = ["chat", "--stand-in", "--context", "200"];
    let terminal = Terminal::start_sized(&home, &chat, 200, 80);
    terminal.wait_for_prompt();
    let messages = |asked: usize| {
        terminal.type_keys("/context\r");
        let is_told = |text: &str| text.matches(" messages, ").count() == asked;
        terminal.wait_until("the number of messages", is_told);
        let text = terminal.text();
        let (before, _) = text.rsplit_once(" messages, ").expect("it is there");
        let (_, count) = before.rsplit_once(' ').expect("a number");
        count.parse::<usize>().expect("a number")
    };
    let is_cut = "older parts of the conversation were left out";
    for number in 0..20 {
        let prompt = format!("prompt {number} {}", "word ".repeat(30));
        terminal.type_keys(&format!("{prompt}\r"));
        terminal.wait_until("an answer", |text| text.matches("context ").count() > number);
        terminal.wait_for_prompt();
        if terminal.text().contains(is_cut) {
            break;
        }
    }
    assert!(terminal.text().contains(is_cut), "{}", terminal.text());
    let before = messages(1);
    terminal.type_keys("/undo\r");
    terminal.wait_for("Removed: prompt ");
    terminal.wait_for_prompt();
    assert_eq!(messages(2), before - 2);
}

/// Such as by `kill -STOP`, with a shell that takes the terminal meanwhile.
#[test]
fn terminal_mode_is_kept_when_stopped() {
    use rustix::process::{Pid, Signal, kill_process};

    let home = Home::new();
    let terminal = Terminal::start(&home, &CHAT);
    let id = Pid::from_raw(terminal.id().cast_signed()).unwrap();
    terminal.wait_for_prompt();
    for (keys, shown) in [("go on\r", "Paragraph 2:"), ("\x03", "stopped")] {
        let during = terminal.mode();
        kill_process(id, Signal::STOP).unwrap();
        terminal.set_first_mode();
        kill_process(id, Signal::CONT).unwrap();
        terminal.wait_until("its mode", |_| terminal.mode() == during);
        terminal.type_keys(keys);
        terminal.wait_for(shown);
    }
    terminal.wait_for_prompt();
}

#[test]
fn terminal_mode_is_restored_at_the_end() {
    use rustix::process::{Pid, Signal, kill_process};

    let home = Home::new();
    let signals = [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT].map(Some);
    let keys = ["/quit\r", "\x04"].map(|keys| (keys, None));
    for (keys, signal) in keys.into_iter().chain(signals.map(|signal| ("", signal))) {
        let mut terminal = Terminal::start(&home, &CHAT);
        let before = terminal.first_mode.clone();
        terminal.wait_for_prompt();
        assert_ne!(terminal.mode(), before);
        terminal.type_keys(keys);
        if let Some(signal) = signal {
            let id = Pid::from_raw(terminal.id().cast_signed()).unwrap();
            kill_process(id, signal).unwrap();
        }
        let status = terminal.wait_for_end().code();
        assert_eq!(terminal.mode(), before, "{keys:?} {signal:?}");
        assert_eq!(status, Some(signal.map_or(0, |signal| 128 + signal.as_raw())));
    }
}

/// It gets no signal if its terminal is not the controlling one.
#[cfg(target_os = "linux")]
#[test]
fn the_program_ends_with_its_terminal() {
    use std::time::Instant;

    use pty_process::blocking::{Command, open};

    let home = Home::new();
    let (mut pty, pts) = open().expect("a terminal");
    let script = r#"exec setsid -w sh -c 'echo $$ > id; exec "$0" chat --stand-in' "$0""#;
    let shell = Command::new("/bin/sh").args(["-c", script, PROGRAM]);
    let shell = shell.env_clear().envs(home.variables()).current_dir(home.path());
    let mut shell = shell.spawn(pts).expect("the program starts");
    let (mut shown, mut buffer, mut asked) = (String::new(), [0; 4096], 0);
    while !shown.contains('\u{203a}') {
        let count = pty.read(&mut buffer).expect("the program writes");
        shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
        // It asks where the cursor is.
        let now = shown.matches("\x1b[6n").count();
        pty.write_all("\x1b[1;1R".repeat(now - asked).as_bytes()).expect("the terminal answers");
        asked = now;
    }
    let id = std::fs::read_to_string(home.path().join("id")).expect("an id");
    let stat = format!("/proc/{}/stat", id.trim());
    // Nobody may have waited for one that has ended.
    let runs = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(runs());
    drop(pty);
    shell.wait().expect("the shell ends");
    let began = Instant::now();
    while runs() {
        assert!(began.elapsed() < Duration::from_secs(30), "the program goes on");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Such as a shell within an editor.
#[test]
fn a_terminal_that_does_not_answer_is_told_of() {
    use pty_process::blocking::{Command, open};

    let home = Home::new();
    let (mut pty, pts) = open().expect("a terminal");
    let program = Command::new(PROGRAM).args(CHAT).env_clear().envs(home.variables());
    let mut program = program.spawn(pts).expect("the program starts");
    let (mut shown, mut buffer) = (String::new(), [0; 4096]);
    while !shown.contains("pass a prompt") {
        let count = pty.read(&mut buffer).expect("the program writes");
        assert!(count > 0, "{shown}");
        shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    assert_eq!(program.wait().expect("the program ends").code(), Some(1));
}
