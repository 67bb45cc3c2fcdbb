//! The look of a chat: styles, widths, failures of a server.

use oa_testkit::{Reply, Request, Script};

use crate::program::Home;
use crate::server::Server;
use crate::terminal::Terminal;

const CHAT: [&str; 2] = ["chat", "--stand-in"];

#[test]
fn thinking_is_dimmed_and_the_answer_is_not() {
    let home = Home::new();
    let terminal = Terminal::start(&home, &CHAT);
    terminal.wait_for_prompt();
    terminal.type_keys("think\r");
    terminal.wait_for("all that came of it");
    terminal.wait_for_prompt();
    assert!(terminal.cell_at("The user wants to see me think").dim());
    assert!(!terminal.cell_at("I have thought").dim());
}

#[test]
fn without_colors_there_are_no_styles() {
    let home = Home::new();
    let variables = ["NO_COLOR=1", "TERM=dumb", "OPEN_AGENT_COLOR=never"];
    for (name, value) in variables.iter().filter_map(|variable| variable.split_once('=')) {
        let variable = (name.to_owned(), value.to_owned());
        let terminal = Terminal::start_with(&home, &CHAT, &[variable]);
        terminal.wait_for_prompt();
        terminal.type_keys("think\r");
        terminal.wait_for("all that came of it");
        terminal.wait_for_prompt();
        for style in ["\x1b[2m", "\x1b[1m", "\x1b[36m", "\x1b[31m"] {
            assert!(!terminal.written().contains(style), "{name}: {style:?}");
        }
    }
}

/// A server that says what a prompt asks for.
fn server() -> Server {
    let reply = Reply::by(|request: &Request| {
        let last = request.messages().last();
        match last.and_then(|last| last["content"].as_str()).unwrap_or_default() {
            "nothing" => Reply::text(""),
            "cut" => Reply::text("The beginning of an answer ".repeat(20)).close_after(900),
            "refuse" => Reply::error(400, "I refuse"),
            "poem" => Reply::text("Roses are red\nViolets are blue\n\n> 1. one\n> 2. two\n"),
            "long" => Reply::text(format!(
                "{} `{}` end\n\n- {}\n",
                "word ".repeat(60),
                "Q".repeat(120),
                "大".repeat(90)
            )),
            "table" => Reply::text(format!(
                "| name | about | price |\n|:--|:-:|--:|\n| Apple | {} | 1.20 |\n| Kiwi | green | 12.00 |\n",
                "grows on trees ".repeat(8)
            )),
            other => Reply::text(format!("You said: {other}")),
        }
    });
    Server::start(Script::new().models(["tiny"]).otherwise(reply))
}

#[test]
fn stopped_server_keeps_the_prompt() {
    let (home, server) = (Home::new(), server());
    let terminal = Terminal::start(&home, &["chat", "--base-url", &server.url()]);
    terminal.wait_for_prompt();
    drop(server);
    terminal.type_keys("Hello there\r");
    terminal.wait_for("Check that the server is running. Up restores your prompt.");
    terminal.wait_for_prompt();
    assert!(terminal.text().contains("refused"), "{}", terminal.text());
    terminal.type_keys("\x1b[A");
    terminal.wait_until("the prompt again", |text| text.ends_with("› Hello there"));
}

#[test]
fn answers_fit_narrow_and_wide_terminals() {
    let (home, server) = (Home::new(), server());
    for columns in [20, 40, 80, 200] {
        let arguments = ["chat", "--base-url", &server.url()];
        let terminal = Terminal::start_sized(&home, &arguments, 60, columns);
        terminal.wait_for_prompt();
        terminal.type_keys("long\r");
        terminal.wait_for("end");
        terminal.wait_for_prompt();
        let text = terminal.text();
        let joined: String = text.split_whitespace().collect();
        assert_eq!(joined.matches('Q').count(), 120, "{columns}: {text}");
        assert_eq!(joined.matches('大').count(), 90, "{columns}: {text}");
        assert_eq!(joined.matches("word").count(), 60, "{columns}: {text}");
        // No word is torn apart where it fits.
        for line in text.lines().filter(|line| line.contains("word")) {
            assert!(line.split_whitespace().all(|word| !"word".contains(word) || word == "word"));
        }
        terminal.type_keys("/help\r");
        terminal.wait_for("typing");
        terminal.wait_for_prompt();
        assert!(!terminal.text().contains("contex\nt"), "{}", terminal.text());
    }
}

#[test]
fn terminals_without_a_size_have_the_usual_one() {
    let (home, server) = (Home::new(), server());
    let arguments = ["chat", "--base-url", &server.url(), "table"];
    let mut terminal = Terminal::start_sized(&home, &arguments, 0, 0);
    assert!(terminal.wait_for_end().success());
    terminal.wait_for("Kiwi  │");
}

#[test]
fn report_of_the_doctor_fits_the_terminal() {
    let (home, server) = (Home::new(), server());
    let arguments = ["doctor", "--base-url", &server.url()];
    let mut terminal = Terminal::start_sized(&home, &arguments, 100, 70);
    terminal.wait_for_end();
    let text = terminal.text();
    assert!(text.contains("\nbad request  "), "{text}");
    // A row that the terminal wraps would go on below its name.
    for row in text.lines().skip(1).filter(|row| !row.is_empty() && !row.starts_with("oa: ")) {
        let is_row = row.starts_with("    ") || row.contains("  ") || row.ends_with(" unknown");
        assert!(is_row, "{row:?} in\n{text}");
    }
}

#[test]
fn tables_are_aligned_and_lines_stay() {
    let (home, server) = (Home::new(), server());
    let terminal = Terminal::start(&home, &["chat", "--base-url", &server.url()]);
    terminal.wait_for_prompt();
    terminal.type_keys("table\r");
    terminal.wait_for("12.00");
    terminal.wait_for_prompt();
    let text = terminal.text();
    let prices: Vec<_> =
        text.lines().filter(|line| line.ends_with("1.20") || line.ends_with("12.00")).collect();
    assert_eq!(prices.len(), 2, "{text}");
    assert_eq!(prices[0].chars().count(), prices[1].chars().count(), "{text}");
    terminal.type_keys("poem\r");
    terminal.wait_for("Roses are red\nViolets are blue\n\n│ 1. one\n│ 2. two");
}

#[test]
fn chat_continues_after_failures() {
    let (home, server) = (Home::new(), server());
    let url = server.url();
    let terminal = Terminal::start_sized(&home, &["chat", "--base-url", &url], 50, 100);
    terminal.wait_for_prompt();
    for (prompt, wanted) in [
        ("refuse", "the server answered 400 Bad Request: I refuse"),
        ("cut", "broke off after"),
        ("fine", "You said: fine"),
        ("nothing", "the answer is empty"),
    ] {
        terminal.type_keys(&format!("{prompt}\r"));
        terminal.wait_for(wanted);
        terminal.wait_for_prompt();
    }
    // What came before the connection broke stays.
    assert!(terminal.text().contains("The beginning of an"), "{}", terminal.text());
    drop(server);
    terminal.type_keys("anybody?\r");
    terminal.wait_for("cannot connect to");
    terminal.wait_for_prompt();
    assert_eq!(terminal.text().to_lowercase().matches("connection refused").count(), 1);
    terminal.type_keys("/model\r");
    terminal.wait_until("a failure of the command", |text| {
        text.matches("cannot connect to").count() == 2
    });
    terminal.wait_for_prompt();
}
