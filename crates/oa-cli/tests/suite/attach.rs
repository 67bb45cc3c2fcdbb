//! Files that go with a prompt.

use std::time::Duration;

use oa_testkit::{Reply, Request, Script};
use serde_json::Value;

use crate::program::{Home, not_found, text};
use crate::server::Server;
#[cfg(unix)]
use crate::terminal::Terminal;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0";
const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt ";

/// A home with an image, audio and a text.
fn home() -> Home {
    let home = Home::new();
    for (name, bytes) in [("a.png", PNG), ("a.wav", WAV), ("a.txt", b"one\n"), ("b c.png", PNG)] {
        std::fs::write(home.path().join(name), bytes).expect("a file");
    }
    home
}

/// Returns a message in short: its text, and the kinds of its other parts.
fn shown(message: &Value) -> String {
    let part = |part: &Value| match part["type"].as_str() {
        Some("text") => part["text"].as_str().unwrap_or("?").to_owned(),
        kind => format!("[{}]", kind.unwrap_or("?")),
    };
    match &message["content"] {
        Value::Array(parts) => parts.iter().map(part).collect::<Vec<_>>().join("+"),
        content => content.as_str().unwrap_or("?").to_owned(),
    }
}

/// A server that says what it was sent last. To a prompt that begins with `slow`, it takes its time for each piece.
fn sees() -> Server {
    let reply = Reply::by(|request: &Request| {
        let said = request.messages().last().map(shown).unwrap_or_default();
        let slow = if said.starts_with("slow") { 300 } else { 0 };
        Reply::text(format!("saw {said}.")).delay(Duration::from_millis(slow))
    });
    Server::start(Script::new().models(["m"]).otherwise(reply))
}

/// Returns the messages of the last request.
fn sent(server: &Server) -> Vec<String> {
    let requests = server.server.requests();
    let last = requests.iter().rev().find(|request| request.model().is_some()).expect("a request");
    last.messages().iter().map(shown).collect()
}

#[test]
fn files_go_with_the_prompt_of_a_pipe() {
    let (home, server) = (home(), sees());
    let chat = ["chat", "--base-url", &server.url()];
    let ask = |more: &[&str], input: &str| {
        let output = home.run(&[&chat[..], more].concat(), input);
        assert!(output.status.success(), "{output:?}");
        sent(&server)
    };
    let asked = ask(&["--attach", "a.png", "-a", "./a.wav", "What is this?"], "");
    assert_eq!(asked, ["What is this?+[image_url]+[input_audio]"]);
    let file = "\n\n<file name=\"a.txt\">\none\n</file>";
    // A text alone is no reason for parts, which not every server takes.
    let asked = ask(&["-a", "a.txt", "Why?"], "two");
    assert_eq!(asked, [format!("Why?\n\ntwo{file}")]);
    assert_eq!(ask(&["--attach=~/a.txt"], "two"), [format!("two{file}")]);
    let asked = ask(&["-a", "-", "Why?"], "two");
    assert_eq!(asked, ["Why?\n\n<file name=\"standard input\">\ntwo\n</file>"]);
    let asked = ask(&["-a", "https://example.org/a.png", "Why?"], "");
    assert_eq!(asked, ["Why?+[image_url]"]);
}

#[test]
fn unfit_files_stop_before_anything_is_sent() {
    let (home, server) = (home(), sees());
    std::fs::write(home.path().join("a.pdf"), "%PDF-1.7").unwrap();
    let url = server.url();
    for (file, wanted) in [
        ("none.png", format!("oa: none.png: {}\n", not_found())),
        (".", "oa: .: this is a folder: attach the files in it\n".to_owned()),
        ("a.pdf", "oa: a.pdf: a PDF cannot be attached, but its text or ".to_owned()),
    ] {
        let chat = ["chat", "--base-url", &url, "-a", "a.png", "-a", file, "What is this?"];
        let output = home.run(&chat, "");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).starts_with(&wanted), "{output:?}");
    }
    let output = home.run(&["chat", "--base-url", &url, "-a", "a.png"], " ");
    assert!(text(&output.stderr).starts_with("oa: there is no prompt"), "{output:?}");
    assert!(server.server.requests().is_empty());
}

#[test]
fn a_continued_session_keeps_its_files() {
    let (home, server) = (home(), sees());
    let chat = ["chat", "--base-url", &server.url(), "--session", "trip"];
    let first = [&chat[..], &["-a", "a.png", "-a", "a.wav", "-a", "a.txt", "first"]].concat();
    assert!(home.run(&first, "").status.success());
    assert!(home.run(&[&chat[..], &["second"]].concat(), "").status.success());
    let asked = sent(&server);
    let wanted = "first+[image_url]+[input_audio]+\n<file name=\"a.txt\">\none\n</file>";
    assert_eq!(asked, [wanted, &format!("saw {wanted}."), "second"]);
}

/// Their paths begin in the folder of the input, and each is looked at before the first prompt is sent.
#[test]
fn lines_of_a_batch_have_files() {
    let (home, server) = (home(), sees());
    let folder = home.path().join("in");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("d.png"), PNG).unwrap();
    let run = |lines: &str| {
        std::fs::write(folder.join("in.jsonl"), lines).unwrap();
        home.run(&["batch", "in/in.jsonl", "-o", "out.jsonl", "--base-url", &server.url()], "")
    };
    let good = "{\"prompt\": \"one\", \"attach\": [\"d.png\", \"../a.wav\"]}\n";
    for (bad, wanted) in
        [("none", not_found()), (".", "this is a folder: attach the files in it".to_owned())]
    {
        let output = run(&format!("{good}{{\"prompt\": \"two\", \"attach\": [\"{bad}\"]}}\n"));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let told = text(&output.stderr);
        assert!(told.starts_with("oa: in/in.jsonl: line 2: ") && told.contains(&wanted), "{told}");
    }
    assert!(server.server.requests().is_empty());
    let output = run(good);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(sent(&server), ["one+[image_url]+[input_audio]"]);
    // With another content, it is another prompt.
    std::fs::write(folder.join("d.png"), [PNG, &[0]].concat()).unwrap();
    let output = run(good);
    assert!(text(&output.stderr).contains("prompt 0 is not the one"), "{output:?}");
}

/// It was there when the batch began.
#[test]
fn a_file_that_is_gone_stops_a_batch() {
    let home = home();
    let path = home.path().join("a.png");
    let gone = path.clone();
    let reply = Reply::by(move |request: &Request| {
        // When it answers the first prompt.
        let _ = std::fs::remove_file(&gone);
        Reply::text(request.messages().last().map(shown).unwrap_or_default())
    });
    let server = Server::start(Script::new().models(["m"]).otherwise(reply));
    let lines = "\"one\"\n{\"prompt\": \"two\", \"attach\": [\"a.png\"]}\n";
    std::fs::write(home.path().join("in.jsonl"), lines).unwrap();
    let url = server.url();
    let batch = ["batch", "in.jsonl", "-o", "out.jsonl", "--at-once", "1", "--base-url", &url];
    let output = home.run(&batch, "");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let wanted = format!("oa: in.jsonl: line 2: a.png: {}\n", not_found());
    assert!(text(&output.stderr).contains(&wanted), "{output:?}");
    assert!(
        !home.path().join("out.jsonl").exists() && !home.path().join("out.jsonl.part").exists()
    );
    // The first reply is not lost.
    std::fs::write(&path, PNG).unwrap();
    let output = home.run(&batch, "");
    assert!(text(&output.stderr).contains("1 replies are in the log"), "{output:?}");
    assert_eq!(sent(&server), ["two+[image_url]"]);
}

#[cfg(unix)]
fn chat(home: &Home, server: &Server, more: &[&str]) -> Terminal {
    let chat = ["chat", "--base-url", &server.url()];
    let terminal = Terminal::start_sized(home, &[&chat[..], more].concat(), 60, 100);
    terminal.wait_for_prompt();
    terminal
}

/// Types a line, and waits for what it shows.
#[cfg(unix)]
#[track_caller]
fn enter(terminal: &Terminal, line: &str, wanted: &str) {
    terminal.type_keys(&format!("{line}\r"));
    terminal.wait_for(wanted);
    terminal.wait_for_prompt();
}

#[cfg(unix)]
#[test]
fn files_go_with_the_next_prompt_only() {
    let (home, server) = (home(), sees());
    let terminal = chat(&home, &server, &["-a", "a.wav"]);
    terminal.wait_for("For the next prompt: a.wav (audio, 16 bytes)");
    enter(&terminal, "first", "saw first+[input_audio].");
    enter(&terminal, "/attach", "No files are attached; /attach FILE attaches one.");
    enter(
        &terminal,
        r"/attach b\ c.png 'a.txt'",
        "b c.png (image, 9 bytes), a.txt (text, 4 bytes)",
    );
    // Once, also if it is attached again.
    enter(&terminal, "/attach b c.png", "prompt: a.txt (text, 4 bytes), b c.png (image, 9 bytes)");
    enter(&terminal, "/attach a.wav nowhere", &format!("nowhere: {}", not_found()));
    enter(&terminal, "second", "saw second+");
    assert!(sent(&server)[2].ends_with("</file>+[image_url]"), "{:?}", sent(&server));
    enter(&terminal, "/attach a.png", "For the next prompt: a.png (image, 9 bytes)");
    enter(&terminal, "/attach none", "No files are attached; /attach FILE attaches one.\n\n›");
    enter(&terminal, "third", "saw third.");
    enter(&terminal, "/history", "› first [audio]\n  saw first+");
    terminal.wait_for("› second [file a.txt] [image]\n  saw second+");
}

#[cfg(unix)]
#[test]
fn a_prompt_sent_again_keeps_its_files() {
    let (home, server) = (home(), sees());
    let terminal = chat(&home, &server, &["--session", "trip"]);
    enter(&terminal, "/attach a.png a.txt", "For the next prompt: ");
    enter(&terminal, "first", "saw first+[image_url]+");
    let before = sent(&server);
    enter(&terminal, "/retry", "› first [image] [file a.txt]");
    let chats = |server: &Server| {
        server.server.requests().iter().filter(|request| request.model().is_some()).count()
    };
    assert_eq!((sent(&server), chats(&server)), (before.clone(), 2));
    drop(terminal);
    // Also in a conversation that was loaded.
    let terminal = chat(&home, &server, &["--session", "trip"]);
    enter(&terminal, "/retry", "› first [image] [file a.txt]");
    assert_eq!((sent(&server), chats(&server)), (before, 3));
    enter(&terminal, "/undo", "Removed: first [image] [file a.txt]");
    enter(&terminal, "/attach", "No files are attached");
}

#[cfg(unix)]
#[test]
fn the_terminal_is_no_file() {
    let (home, server) = (home(), sees());
    let chat = ["chat", "--base-url", &server.url(), "-a", "-"];
    let mut terminal = Terminal::start(&home, &chat);
    assert_eq!(terminal.wait_for_end().code(), Some(2));
    terminal
        .wait_for("oa: -: this is the terminal: send the file through a pipe, and pass a prompt");
}

/// Such as one that the model cannot see.
#[cfg(unix)]
#[test]
fn files_stay_if_the_prompt_is_not_sent() {
    let home = home();
    let reply = Reply::by(|request: &Request| {
        let said = request.messages().last().map(shown).unwrap_or_default();
        let is_refused = said.contains("image_url") && request.number() < 6;
        if is_refused { Reply::error(400, "no eyes") } else { Reply::text(format!("saw {said}.")) }
    });
    let server = Server::start(Script::new().models(["m"]).otherwise(reply));
    let terminal = chat(&home, &server, &["-a", "a.png"]);
    let remark = "The files are still attached: /attach lists them, and /attach none removes them.";
    enter(&terminal, "first", "no eyes");
    terminal.wait_for(remark);
    enter(&terminal, "/attach", "For the next prompt: a.png (image, 9 bytes)\n\n›");
    let mut tries = 0;
    while !terminal.text().contains("saw first+[image_url].") {
        tries += 1;
        assert!(tries < 8, "{}", terminal.text());
        terminal.type_keys("/retry\r");
        terminal.wait_until("an end", |text| {
            text.matches("no eyes").count() > tries || text.contains("saw first")
        });
        terminal.wait_for_prompt();
    }
    // They are in the conversation now.
    enter(&terminal, "/attach", "No files are attached");
    enter(&terminal, "second", "saw second.");
}

/// A prompt behind files is theirs, and does not reach the running answer.
#[cfg(unix)]
#[test]
fn files_typed_ahead_go_with_their_prompt() {
    let (home, server) = (home(), sees());
    let terminal = chat(&home, &server, &[]);
    terminal.type_keys("slow\r");
    terminal.wait_for("Ctrl-C stops it");
    terminal.type_keys("/attach a.png\r");
    terminal.wait_for("» /attach a.png  (waits for its turn)");
    terminal.type_keys("What is this?\r");
    terminal.wait_for("» What is this?  (waits for its turn)");
    terminal.wait_for("saw What is this?+[image_url].");
    terminal.wait_for_prompt();
    // Without its files, it is not sent.
    terminal.type_keys("slow\r");
    terminal.wait_until("the second", |text| text.matches("› slow").count() == 2);
    terminal.wait_for("Ctrl-C stops it");
    terminal.type_keys("/attach nowhere.png\r");
    terminal.wait_for("» /attach nowhere.png  (waits for its turn)");
    terminal.type_keys("And this?\r");
    terminal.wait_for("» And this?  (waits for its turn)");
    terminal.wait_for(&format!("nowhere.png: {}", not_found()));
    terminal.wait_until("the text", |text| text.ends_with("› And this?"));
    assert!(sent(&server).last().is_some_and(|last| last == "slow"));
}

#[cfg(unix)]
#[test]
fn tab_completes_names_of_files() {
    let (home, server) = (home(), sees());
    std::fs::write(home.path().join("b\u{1b}[2J.png"), PNG).unwrap();
    let terminal = chat(&home, &server, &[]);
    terminal.type_keys("/att\t b\t");
    terminal.wait_for(r"› /attach b\ c.png");
    terminal.type_keys(" a.w\t");
    terminal.wait_for(r"› /attach b\ c.png a.wav");
    enter(&terminal, "", "For the next prompt: b c.png (image, 9 bytes), a.wav (audio, 16 bytes)");
}
