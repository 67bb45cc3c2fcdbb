//! The README's table of servers and features equals the available evidence, cell by cell.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use open_agent::Provider;
use serde_json::Value;
use suite::{Fixture, all, recorded};

/// A server's name in the table, and its prefix in the names of fixtures.
const SERVERS: [(&str, Option<Provider>, &[&str]); 18] = [
    ("LM Studio", Some(Provider::LmStudio), &["LM Studio"]),
    ("Ollama", Some(Provider::Ollama), &["Ollama"]),
    ("llama.cpp", Some(Provider::LlamaCpp), &["llama.cpp"]),
    ("vLLM", Some(Provider::Vllm), &["vLLM", "a Mistral model behind vLLM", "Venice"]),
    ("text-generation-webui", Some(Provider::TextGenerationWebui), &["text-generation-webui"]),
    ("LiteLLM", Some(Provider::LiteLlm), &["LiteLLM"]),
    ("OpenRouter", Some(Provider::OpenRouter), &["OpenRouter"]),
    ("OpenAI", Some(Provider::OpenAi), &["OpenAI"]),
    ("Azure OpenAI", Some(Provider::Azure), &["Azure"]),
    ("Mistral", Some(Provider::Mistral), &["Mistral"]),
    ("Groq", Some(Provider::Groq), &["Groq"]),
    ("DeepSeek", Some(Provider::DeepSeek), &["DeepSeek"]),
    ("Gemini", Some(Provider::Gemini), &["Gemini"]),
    ("mistral.rs", None, &["mistral.rs"]),
    ("GPUStack", None, &["GPUStack"]),
    ("Hugging Face router", None, &["Hugging Face"]),
    ("xAI", None, &["xAI"]),
    ("Moonshot, Z.ai", None, &["Moonshot", "Z.ai"]),
];

const FEATURES: [&str; 6] = ["text", "thinking", "calls", "several calls", "usage", "errors"];

/// Returns a function that says whether a body shows a feature, given its index in [`FEATURES`].
fn shows(entry: &Value) -> impl Fn(usize) -> bool {
    let expect = &entry["expect"];
    let says = |name: &str| expect[name].as_str().is_some_and(|text| !text.is_empty());
    let count = |name: &str| expect[name].as_array().map_or(0, Vec::len);
    let shown = [
        says("text"),
        says("thinking") || expect.get("think_split").is_some(),
        count("tool_calls") > 0,
        count("tool_calls") > 1,
        expect["usage"].is_object(),
        count("stream_errors") + count("tool_errors") > 0,
    ];
    move |feature| shown[feature]
}

/// Returns the origin of a fixture, as a letter of the table, and its server. Recordings outside of the repository
/// do not count.
fn origin(fixture: &Fixture) -> Option<(char, String)> {
    let (folder, file) = fixture.name.split_once('/')?;
    let named = |member: &str| fixture.entry[member].as_str().unwrap_or_default().to_owned();
    match folder {
        "live" if file.starts_with("llamacpp") => Some(('l', "llama.cpp".to_owned())),
        "live" => Some(('l', "LiteLLM".to_owned())),
        "own" => Some(('w', named("server"))),
        _ => None,
    }
}

/// The bodies of error statuses: their letter and server.
fn error_bodies() -> Vec<(char, String)> {
    let mut found = Vec::new();
    for (folder, letter) in [("own", 'w'), ("live", 'l')] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder);
        let list = fs::read_to_string(path.join("errors.json")).expect("errors are listed");
        let list: Vec<Value> = serde_json::from_str(&list).expect("a list is JSON");
        found.extend(list.iter().map(|entry| {
            let file = entry["file"].as_str().unwrap_or_default();
            let live = if file.starts_with("llamacpp") { "llama.cpp" } else { "LiteLLM" };
            (letter, entry["server"].as_str().unwrap_or(live).to_owned())
        }));
    }
    found
}

fn table() -> String {
    let fixtures = all();
    let errors = error_bodies();
    let mut table = format!("| server | {} | requests |\n", FEATURES.join(" | "));
    table += &"| --- ".repeat(FEATURES.len() + 2);
    table += "|\n";
    for (server, provider, names) in SERVERS {
        let is_it = |name: &str| names.iter().any(|begin| name.starts_with(begin));
        table += &format!("| {server} |");
        for (place, feature) in FEATURES.into_iter().enumerate() {
            let mut cell: BTreeSet<char> = fixtures
                .iter()
                .filter(|fixture| shows(&fixture.entry)(place))
                .filter_map(origin)
                .filter_map(|(letter, server)| is_it(&server).then_some(letter))
                .collect();
            if feature == "errors" {
                cell.extend(
                    errors.iter().filter(|(_, name)| is_it(name)).map(|(letter, _)| letter),
                );
            }
            table += &format!(" {} |", cell.into_iter().collect::<String>());
        }
        let fake = provider.filter(|provider| Provider::ALL.contains(provider));
        let live = if matches!(server, "llama.cpp" | "LiteLLM") { "l" } else { "" };
        table += &format!(" {}{live} |\n", if fake.is_some() { "f" } else { "" });
    }
    table
}

fn readme() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    fs::read_to_string(readme).expect("there is a README")
}

/// It counts only what is in the repository.
#[test]
fn the_readme_counts_the_fixtures() {
    let count = format!("checks {} response bodies", all().len() - recorded().len());
    assert!(readme().contains(&count), "{count}");
}

#[test]
fn the_server_table_equals_the_fixtures() {
    let readme = readme();
    let (_, section) = readme.split_once("## Servers").expect("the README has a table of servers");
    let shown: String = section
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .map(|line| format!("{line}\n"))
        .collect();
    let table = table();
    let plain = |table: &str| table.replace(' ', "");
    assert!(plain(&shown) == plain(&table), "the table is:\n{table}");
}
