//! An agent that manages other agents: it creates, lists, changes, asks and deletes them. Agents are files in a
//! folder, so they persist across runs. Deleting one needs your permission.
//!
//!     cargo run --example agent_builder
//!     cargo run --example agent_builder -- "Create an agent called poet that writes haiku."
//!     cargo run --example agent_builder -- --yes "Delete poet."
//!
//! The folder is in the temporary directory; `--in FOLDER` names another one.

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use examples::{Arguments, Model, Terminal, stand_in};
use open_agent::{
    Client, FnTool, PermissionMode, TerminalPrompt, ToolError, ToolRule, Value, json, tool,
};

const PROMPTS: [&str; 5] = [
    "Create an agent called counter that counts words, with the tool count_words.",
    "Ask counter: how many words are in this sentence?",
    "Change counter so that it counts words and says please.",
    "Which agents are there?",
    "Delete counter.",
];
const LONGEST_NAME: usize = 40;

/// The agents: state shared by the tools. Each agent is a JSON file named after it.
struct Agents {
    folder: PathBuf,
    /// The model that runs the agents.
    model: Model,
}

impl Agents {
    /// Returns the path of an agent. Every path comes from here, so a model that asks for `../passwd` gets an error.
    fn path(&self, name: &Value) -> Result<PathBuf, ToolError> {
        let name = name.as_str().unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            return Err("a name may contain only lowercase letters, digits and hyphens".into());
        }
        Ok(self.folder.join(name).with_extension("json"))
    }

    fn load(&self, name: &Value) -> Result<Value, ToolError> {
        let text = fs::read_to_string(self.path(name)?);
        let text = text.map_err(|error| format!("cannot read {name}: {error}"))?;
        let agent = serde_json::from_str(&text);
        agent.map_err(|error| format!("cannot read {name}: {error}").into())
    }

    fn names(&self) -> Result<Vec<String>, ToolError> {
        let mut names = Vec::new();
        for file in fs::read_dir(&self.folder)? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
            }
        }
        names.sort();
        Ok(names)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::read(include_str!("agent_builder.rs"));
    let usual = || std::env::temp_dir().join("open-agent-agents");
    let folder = arguments.value("--in")?.map_or_else(usual, PathBuf::from);
    let yes = arguments.flag("--yes");
    let words = arguments.words()?;
    let prompts = if words.is_empty() { PROMPTS.to_vec() } else { vec![&*words] };
    fs::create_dir_all(&folder)?;

    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in::agents::answer).await?;
    terminal.note(&format!("  Agents are stored in {}.", folder.display()));
    let mut options = model
        .options()
        .system_prompt("You manage agents with the tools. Never make up what a tool returns.")
        .tools([create_agent(), list_agents(), modify_agent(), delete_agent(), run_agent()])
        .state(Agents { folder, model })
        .auto_execute_tools(true);
    if !yes {
        let person = TerminalPrompt::stdio();
        options = options
            .permission_mode(PermissionMode::AllowAll)
            .tool_rule(ToolRule::ask("delete_agent"))
            .can_use_tool(move |request| person.ask(request));
    }

    let mut client = Client::new(options.build()?)?;
    for prompt in prompts {
        terminal.prompt(prompt);
        client.send(prompt).await?;
        while let Some(block) = client.receive().await? {
            terminal.block(&block);
        }
    }
    terminal.gap();
    Ok(())
}

// Tools that change files are `exclusive`, so that two calls in one answer cannot interfere.

fn create_agent() -> FnTool {
    tool("create_agent", "Creates an agent")
        .param("name", "string")
        .param("system_prompt", "string")
        .describe("system_prompt", "What the agent is told to be")
        .param_with("tools", tools_schema())
        .default("tools", json!([]))
        .param("model", "string")
        .describe("model", "Leave it out for the usual one")
        .optional("model")
        .exclusive()
        .build_blocking_with_context(|args, cx| {
            let agents = cx.state::<Agents>().ok_or("the agents are not available")?;
            // Never overwrite an existing agent.
            let file = File::create_new(agents.path(&args["name"])?);
            let name = &args["name"];
            let mut file = file.map_err(|error| format!("cannot create {name}: {error}"))?;
            file.write_all(format!("{args:#}\n").as_bytes())?;
            Ok(args)
        })
}

fn list_agents() -> FnTool {
    tool("list_agents", "Lists all agents").category("read").build_blocking_with_context(|_, cx| {
        let agents = cx.state::<Agents>().ok_or("the agents are not available")?;
        let names = agents.names()?;
        names.into_iter().map(|name| agents.load(&json!(name))).collect()
    })
}

fn modify_agent() -> FnTool {
    tool("modify_agent", "Changes what is named of an agent, and leaves the rest")
        .param("name", "string")
        .param("system_prompt", "string")
        .optional("system_prompt")
        .param_with("tools", tools_schema())
        .optional("tools")
        .param("model", "string")
        .optional("model")
        .exclusive()
        .build_blocking_with_context(|args, cx| {
            let agents = cx.state::<Agents>().ok_or("the agents are not available")?;
            let (path, mut agent) = (agents.path(&args["name"])?, agents.load(&args["name"])?);
            for (member, value) in args.as_object().into_iter().flatten() {
                agent[member] = value.clone();
            }
            // The old file is replaced only once the new one is complete.
            let new = path.with_extension("new");
            fs::write(&new, format!("{agent:#}\n"))?;
            fs::rename(new, path)?;
            Ok(agent)
        })
}

fn delete_agent() -> FnTool {
    let builder = tool("delete_agent", "Deletes an agent").param("name", "string").exclusive();
    builder.build_blocking_with_context(|args, cx| {
        let agents = cx.state::<Agents>().ok_or("the agents are not available")?;
        fs::remove_file(agents.path(&args["name"])?)?;
        Ok(json!("deleted"))
    })
}

fn run_agent() -> FnTool {
    tool("run_agent", "Asks an agent, and returns its answer")
        .param("name", "string")
        .param("prompt", "string")
        .build_with_context(|args, cx| async move {
            let agents = cx.state::<Agents>().ok_or("the agents are not available")?;
            let agent = agents.load(&args["name"])?;
            let has = |tool: &FnTool| {
                agent["tools"].as_array().is_some_and(|tools| tools.contains(&json!(tool.name())))
            };
            let mut options = agents
                .model
                .options()
                .system_prompt(agent["system_prompt"].as_str().unwrap_or_default())
                .tools(catalog().into_iter().filter(has))
                .auto_execute_tools(true);
            if let Some(model) = agent["model"].as_str() {
                options = options.model(model);
            }
            let mut client = Client::new(options.build()?)?;
            let reply = client.ask(args["prompt"].as_str().unwrap_or_default()).await?;
            Ok(json!(reply.text))
        })
}

/// The tools that an agent may have. None of them creates agents.
fn catalog() -> Vec<FnTool> {
    let count_words = tool("count_words", "Counts the words of a text").param("text", "string");
    let reverse = tool("reverse", "Turns a text around").param("text", "string");
    vec![
        count_words.build(|args| async move {
            Ok(json!(args["text"].as_str().unwrap_or_default().split_whitespace().count()))
        }),
        reverse.build(|args| async move {
            Ok(json!(args["text"].as_str().unwrap_or_default().chars().rev().collect::<String>()))
        }),
    ]
}

fn tools_schema() -> Value {
    let names: Vec<_> = catalog().iter().map(|tool| tool.name().to_owned()).collect();
    json!({ "type": "array", "items": { "type": "string", "enum": names } })
}
