//! The search for servers.

use std::net::TcpListener;
use std::time::Duration;

use oa_testkit::{Reply, Script};
use serde_json::json;

use crate::program::{Home, text};
use crate::server::{Server, echo};

/// An address at which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}/v1", listener.local_addr().expect("an address"))
}

#[test]
fn the_first_server_that_answers_is_used() {
    let home = Home::new();
    let (first, second) = (Server::start(echo()), Server::start(echo()));
    let lists = format!("{},vLLM={},{}", nobody(), first.url(), second.url());
    let variables =
        [("OPEN_AGENT_SERVERS", &*lists), ("OPEN_AGENT_API_KEY", "sk-canary-0123456789")];
    let output = home.run_with(&["models"], "", &variables);
    assert_eq!(text(&output.stdout), "text-embed\necho\ntext-embed\necho\n", "{output:?}");
    let output = home.run_with(&["chat", "Hello"], "", &variables);
    assert_eq!(text(&output.stdout), "You said Hello\n", "{output:?}");
    assert_eq!(first.server.requests().iter().filter(|it| it.path().contains("chat")).count(), 1);
    assert!(second.server.requests().iter().all(|it| !it.path().contains("chat")));
    // The key is for an address that was set, not for whoever answers.
    for request in first.server.requests().iter().chain(&second.server.requests()) {
        assert!(!request.headers().contains_key("authorization"));
    }

    let (one, two) = (second.url(), first.url());
    let output = home.run(&["chat", "--servers", &one, "--servers", &two, "Hello"], "");
    assert!(output.status.success(), "{output:?}");
    assert!(second.server.requests().iter().any(|it| it.path().contains("chat")));
}

#[test]
fn missing_server_gives_advice() {
    let home = Home::new();
    let (one, two) = (nobody(), nobody());
    for command in ["chat", "models", "doctor"] {
        let arguments = [command, "--servers", &one, "--servers", &two];
        let output = home.run(&arguments, "Hello");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let told = text(&output.stderr);
        let places = format!("oa: no model server answers at {one}, {two}\n");
        assert!(told.starts_with(&places), "{told}");
        for word in ["LM Studio", "ollama serve", "llama-server", "vllm serve", "--stand-in"] {
            assert!(told.contains(word), "{word}: {told}");
        }
    }
}

#[cfg(feature = "tls")]
#[test]
fn https_of_a_plain_server_is_explained() {
    use std::io::{Read, Write};

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}/v1", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let home = Home::new();
    let output = home.run(&["chat", "--base-url", &url], "Hello");
    let told = text(&output.stderr);
    assert!(told.contains("it does not speak TLS"), "{told}");
    assert!(told.contains("its address begins with http://"), "{told}");
    assert!(!told.contains("No server listens"), "{told}");
}

#[test]
fn named_server_has_its_own_advice() {
    let (home, nobody) = (Home::new(), nobody());
    let arguments = ["chat", "--provider", "ollama", "--base-url", &nobody, "Hello"];
    let told = text(&home.run(&arguments, "").stderr);
    assert!(told.contains("Start it and load a model:\n  Ollama "), "{told}");
    assert!(told.contains("ollama pull") && !told.contains("LM Studio"), "{told}");
    // Something that answers and is no model server.
    let server = Server::start(Script::new().otherwise(Reply::error(404, "no such page")));
    let arguments = ["models", "--base-url", &format!("{}/wrong", server.url())];
    let told = text(&home.run(&arguments, "").stderr);
    assert!(told.contains("Is this the address of a model server?"), "{told}");
    assert!(!told.contains("No server listens"), "{told}");
}

#[test]
fn server_with_a_key_has_its_own_advice() {
    let home = Home::new();
    let server = Server::start(Script::new().get("/v1/models", Reply::error(401, "no key")));
    let url = server.url();
    let told = |flag| text(&home.run(&["models", flag, &url], "").stderr);
    let advice = "Set its key: OPEN_AGENT_API_KEY, or `api_key` in the configuration file.\n";
    let set = told("--base-url");
    assert!(set.ends_with(&format!("401 Unauthorized: no key\n{advice}")), "{set}");
    let tried = told("--servers");
    assert!(tried.starts_with(&format!("oa: {url}: the server requires an API key")), "{tried}");
    assert!(tried.ends_with(&format!("\nUse --base-url {url}. {advice}")), "{tried}");
}

/// A flag or a variable for another server does not take the key there.
#[test]
fn a_key_stays_with_its_server() {
    let (home, own, other) = (Home::new(), Server::start(echo()), Server::start(echo()));
    let key = "sk-canary-0123456789";
    let file = format!("base_url = '{}'\napi_key = '{key}'\n", own.url());
    std::fs::write(home.path().join("own.toml"), file).unwrap();
    let (url, config) = (other.url(), ("OPEN_AGENT_CONFIG", "own.toml"));
    let by_variable = [config, ("OPEN_AGENT_BASE_URL", &*url)];
    for command in ["chat", "models", "doctor", "config"] {
        let by_flag = [command, "--base-url", &url];
        for (arguments, variables) in [(&by_flag[..], &[config][..]), (&[command], &by_variable)] {
            let output = home.run_with(arguments, "Hello", variables);
            let told = text(&output.stderr);
            let note = "the API key (own.toml, line 2) is for http://127.0.0.1:";
            assert!(told.starts_with(note) && told.matches(note).count() == 1, "{told}");
            assert!(!format!("{told}{}", text(&output.stdout)).contains(key));
        }
    }
    assert!(other.server.requests().len() > 6);
    for request in other.server.requests() {
        assert!(!request.headers().contains_key("authorization"));
    }
    let output = home.run_with(&["chat"], "Hello", &[config]);
    assert_eq!(text(&output.stderr), "");
    for request in own.server.requests() {
        assert_eq!(request.headers()["authorization"], format!("Bearer {key}"));
    }
}

/// A provider without an address does not make an address that was found one that was set.
#[test]
fn a_key_is_not_sent_to_found_servers() {
    let (home, found) = (Home::new(), Server::start(echo()));
    let variables = [("OPEN_AGENT_API_KEY", "sk-canary-0123456789")];
    let arguments = ["chat", "--provider", "azure openai", "--servers", &found.url()];
    let output = home.run_with(&arguments, "Hello", &variables);
    assert_eq!(text(&output.stdout), "You said Hello\n", "{output:?}");
    for request in found.server.requests() {
        assert!(!request.headers().contains_key("authorization"));
    }
}

/// A server that is loading a model is one that answers later, not none.
#[test]
fn a_slow_server_is_found() {
    let home = Home::new();
    let models = Reply::json(200, json!({"data": [{"id": "tiny"}]}));
    let models = models.delay_head(Duration::from_millis(1_200));
    let script = Script::new().get("/v1/models", models).otherwise(Reply::text("Here I am"));
    let slow = Server::start(script);
    let arguments = ["chat", "--servers", &nobody(), "--servers", &slow.url(), "Hello"];
    let output = home.run(&arguments, "");
    assert_eq!(text(&output.stdout), "Here I am\n", "{output:?}");
}

/// The list of models is a request like the others.
#[test]
fn the_doctor_limits_the_list_of_models() {
    let home = Home::new();
    let models = Reply::json(200, json!({"data": [{"id": "tiny"}]}));
    let models = models.delay_head(Duration::from_secs(3));
    let script = Script::new().get("/v1/models", models).otherwise(Reply::text("Here I am"));
    let (slow, nobody) = (Server::start(script), nobody());
    let url = slow.url();
    for servers in [&["--base-url", &*url][..], &["--servers", &url, "--servers", &nobody]] {
        let output = home.run(&[&["doctor", "--time-limit", "1"], servers].concat(), "");
        assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(1), ""), "{output:?}");
        assert!(text(&output.stderr).contains("within 1s"), "{output:?}");
    }
}

#[test]
fn a_loading_server_has_its_own_advice() {
    let home = Home::new();
    let loading = Reply::error(503, "Loading model");
    let server = Server::start(Script::new().get("/v1/models", loading));
    let url = server.url();
    let later = "503 Service Unavailable: Loading model\nA server listens there. If it is loading a model, try";
    let set = text(&home.run(&["models", "--base-url", &url], "").stderr);
    assert!(set.contains(later), "{set}");
    let nobody = nobody();
    let found = text(&home.run(&["models", "--servers", &nobody, "--servers", &url], "").stderr);
    assert!(
        found.starts_with(&format!("oa: no model server answers at {nobody}, {url}\n{url}: ")),
        "{found}"
    );
    assert!(
        found.contains(&later.replace('\n', ". ")) && found.contains("ollama serve"),
        "{found}"
    );
}

/// Such as AirPlay on a Mac, which answers at the port of text-generation-webui.
#[test]
fn what_refuses_need_not_be_a_model_server() {
    let home = Home::new();
    let server = Server::start(Script::new().get("/v1/models", Reply::body(403, "text/plain", "")));
    let url = server.url();
    let told = text(&home.run(&["models", "--servers", &url], "").stderr);
    assert!(told.starts_with(&format!("oa: no model server answers at {url}\n{url}: ")), "{told}");
    assert!(told.contains("If this is a model server,") && told.contains("ollama serve"), "{told}");
}

#[test]
fn invalid_addresses_are_usage_errors() {
    let home = Home::new();
    for (servers, wanted) in [
        ("localhost:1234", "must begin with http:// or https://"),
        ("Olama=http://localhost:1/v1", "unknown provider \"Olama\""),
        ("Olama=http://me:sesame@localhost:1/v1", "unknown provider \"Olama\""),
        ("http://me:sesame@localhost:1/v1", "contains a user name or password"),
    ] {
        let output = home.run(&["models", "--servers", servers], "");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let told = text(&output.stderr);
        assert!(told.contains(wanted) && !told.contains("sesame"), "{told}");
    }
}

#[test]
fn missing_chat_model_is_reported() {
    let home = Home::new();
    let server = Server::start(Script::new().models(["nomic-embed"]).otherwise(Reply::text("?")));
    let output = home.run(&["chat", "--servers", &server.url(), "Hello"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("has no model that can chat"), "{output:?}");
}

#[test]
fn no_models_are_no_lines() {
    let home = Home::new();
    let server = Server::start(Script::new().models([""; 0]).otherwise(Reply::text("?")));
    let output = home.run(&["models", "--base-url", &server.url()], "");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout), "");
}
