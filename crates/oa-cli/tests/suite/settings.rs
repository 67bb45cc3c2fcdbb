//! Each setting acts, from the configuration file and from the environment.

use oa_cli::settings::{Kind, SETTINGS, Setting};
use oa_testkit::{Reply, Request, Script};
use serde_json::json;

use crate::program::{Home, text};
use crate::serve::Served;
use crate::server::Server;
use crate::terminal::Terminal;

/// Where a setting is made.
#[derive(Clone, Copy, Debug)]
enum Place {
    File,
    Variable,
}

/// A home with a setting that is made in one place, and a server that answers.
struct Made {
    home: Home,
    server: Server,
    variables: Vec<(String, String)>,
}

impl Made {
    fn new(setting: &Setting, value: &str, place: Place) -> Self {
        let reply = Reply::by(|request: &Request| {
            let count = request.messages().len();
            let said = |at: usize| request.messages()[at]["content"].as_str().unwrap_or_default();
            match said(0) {
                // One call after another.
                "call" => Reply::new().call("list_files", json!({"path": ".", "more": count})),
                _ => Reply::text(format!("You said {}", said(count - 1))),
            }
        });
        let made = Self {
            home: Home::new(),
            server: Server::start(Script::new().models(["tiny"]).otherwise(reply)),
            variables: vec![],
        };
        made.with(setting, value, place)
    }

    fn with(mut self, setting: &Setting, value: &str, place: Place) -> Self {
        let value = value.replace("SERVER", &self.server.url());
        match place {
            Place::Variable => self.variables.push((setting.variable.to_owned(), value)),
            Place::File => {
                let value = match setting.kind {
                    Kind::Integer | Kind::Number | Kind::Object | Kind::Switch => value,
                    Kind::List => format!("[{value:?}]"),
                    _ => format!("{value:?}"),
                };
                let folder = self.home.config();
                std::fs::create_dir_all(&folder).expect("a folder");
                let line = format!("{} = {value}\n", setting.key);
                std::fs::write(folder.join("config.toml"), line).expect("a file");
            }
        }
        self
    }

    /// Runs the program; returns what it wrote to both outputs.
    fn run(&self, arguments: &[&str], input: &str) -> String {
        let variables: Vec<_> =
            self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let output = self.home.run_with(arguments, input, &variables);
        text(&output.stdout) + &text(&output.stderr)
    }

    /// Chats with the server and returns its last request.
    fn asked(&self, more: &[&str]) -> Request {
        let url = self.server.url();
        let said = self.run(&[&["chat", "--base-url", &url][..], more].concat(), "Hello");
        let requests = self.server.server.requests();
        requests.into_iter().last().unwrap_or_else(|| panic!("nothing was asked: {said}"))
    }
}

fn acts(setting: &Setting, place: Place) {
    let made = |value| Made::new(setting, value, place);
    match setting.key {
        "api_key" => {
            let header = made("sk-1234").asked(&[]).headers()["authorization"].clone();
            assert_eq!(header, "Bearer sk-1234");
        }
        "base_url" => {
            assert_eq!(made("SERVER").run(&["chat"], "Hello"), "You said Hello\n");
        }
        "color" => {
            let made = made("never");
            let chat = ["chat", "--stand-in"];
            let terminal = Terminal::start_with(&made.home, &chat, &made.variables);
            terminal.wait_for_prompt();
            assert!(!terminal.written().contains("\x1b[2m"), "{}", terminal.written());
        }
        "context" => {
            // What does not fit is left out: of a long conversation the first prompts.
            let made = made("200");
            let url = made.server.url();
            let chat = ["chat", "--base-url", &url, "--session", "long"];
            for number in 0..12 {
                made.run(&chat, &format!("prompt {number} {}", "word ".repeat(20)));
            }
            let last = made.server.server.requests().into_iter().last().expect("a request");
            assert!(last.messages().len() < 15, "{} messages", last.messages().len());
        }
        "max_rounds" => {
            let made = made("1");
            let url = made.server.url();
            let said = made.run(&["chat", "--base-url", &url, "--tools", "files:."], "call");
            assert!(said.contains("the limit of tool rounds was reached (max_rounds)"), "{said}");
            assert_eq!(said.matches("list_files").count(), 1, "{said}");
        }
        "max_tokens" => assert_eq!(made("7").asked(&[]).json()["max_tokens"], 7),
        "mcp" => {
            let made = made("none.json");
            let said = made.run(&["chat", "--stand-in"], "Hello");
            assert!(said.contains("none.json: No such file"), "{said}");
        }
        "mode" => {
            let said = made("all").run(&["chat", "--stand-in"], "keep this");
            assert!(said.contains("The tool says: kept"), "{said}");
        }
        "model" => assert_eq!(made("other").asked(&[]).model(), Some("other")),
        "provider" => {
            // Its parameter for thinking.
            let asked = made("vLLM").asked(&["--thinking", "off"]);
            let thinking = &asked.json()["chat_template_kwargs"]["enable_thinking"];
            assert_eq!(thinking, false, "{:?}", asked.json());
        }
        "servers" => {
            assert_eq!(made("SERVER").run(&["chat"], "Hello"), "You said Hello\n");
        }
        "sessions" => {
            let made = made("here");
            made.run(&["chat", "--stand-in", "--session", "trip"], "Hello");
            assert!(made.home.path().join("here/session-trip.jsonl").exists());
        }
        "stand_in" => {
            assert!(made("true").run(&["chat"], "Hello").starts_with("# A stand-in"));
        }
        "system" => {
            let asked = made("Be brief.").asked(&[]);
            assert_eq!(asked.messages()[0]["content"], "Be brief.");
        }
        "extra_body" => {
            let value = match place {
                Place::File => r#"{ min_p = 0.05, top = { k = [40, -1, "a"] }, on = true }"#,
                Place::Variable => r#"{"min_p": 0.05, "top": {"k": [40, -1, "a"]}, "on": true}"#,
            };
            let made = made(value).asked(&[]);
            let asked = made.json();
            assert_eq!(asked["min_p"], 0.05);
            assert_eq!(asked["top"], json!({"k": [40, -1, "a"]}));
            assert_eq!(asked["on"], true);
            assert!(asked["messages"].is_array());
        }
        "seed" => assert_eq!(made("0").asked(&[]).json()["seed"], 0),
        "top_p" => assert_eq!(made("0.5").asked(&[]).json()["top_p"], 0.5),
        "temperature" => assert_eq!(made("0.5").asked(&[]).json()["temperature"], 0.5),
        "thinking" => {
            let asked = made("off").asked(&["--provider", "vLLM"]);
            let thinking = &asked.json()["chat_template_kwargs"]["enable_thinking"];
            assert_eq!(thinking, false, "{:?}", asked.json());
        }
        "token" => {
            let made = made("a-long-secret");
            let variables: Vec<_> = made.variables.iter().map(|(n, v)| (&**n, &**v)).collect();
            let served = Served::start(&made.home, &["--forget"], &variables);
            assert_eq!(served.ask("GET", "/api/agent", None, None).0, 401);
            assert_eq!(served.ask("GET", "/api/agent", None, Some("a-long-secret")).0, 200);
        }
        "tools" => {
            let asked = made("files:.").asked(&[]);
            assert_eq!(asked.json()["tools"][0]["function"]["name"], "list_files");
        }
        other => panic!("no test knows that {other} acts"),
    }
}

#[test]
fn each_setting_acts_from_the_file() {
    SETTINGS.iter().for_each(|setting| acts(setting, Place::File));
}

#[test]
fn each_setting_acts_from_the_environment() {
    SETTINGS.iter().for_each(|setting| acts(setting, Place::Variable));
}
