//! Each ported example against a scripted server, as its user would run it.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use oa_testkit::{Reply, Request, Script, SocketServer};
use serde_json::{Value, json};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// An example, its arguments, and what a user types.
struct Program<'a> {
    name: &'a str,
    arguments: Vec<String>,
    folder: Option<&'a Path>,
    typed: &'a str,
}

impl<'a> Program<'a> {
    fn new(name: &'a str) -> Self {
        Self { name, arguments: Vec::new(), folder: None, typed: "" }
    }

    /// Runs it against a server with this script, and checks that it prints these texts in this order.
    #[track_caller]
    fn check(
        self,
        script: Script,
        expected: &[&str],
    ) -> impl Future<Output = Result<Vec<Request>>> + use<'a> {
        let expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
        async move {
            let server = SocketServer::start(script).await?;
            let mut command = Command::new(env!("CARGO_BIN_EXE_migrating"));
            command
                .args(&self.arguments)
                .env("MIGRATING_EXAMPLE", self.name)
                .env("MIGRATING_SERVER", server.base_url())
                .env("ANTHROPIC_API_KEY", "made-up")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            if let Some(folder) = self.folder {
                command.current_dir(folder);
            }
            let typed = self.typed.to_owned();
            let output = tokio::task::spawn_blocking(move || {
                let mut child = command.spawn()?;
                if let Some(mut input) = child.stdin.take() {
                    std::io::Write::write_all(&mut input, typed.as_bytes())?;
                }
                child.wait_with_output()
            })
            .await??;
            let (said, errors) =
                (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
            assert!(output.status.success(), "{said}\n{errors}");
            let mut rest = &*said;
            for expected in &expected {
                let at = rest.find(expected.as_str());
                let at =
                    at.unwrap_or_else(|| panic!("{expected:?} is missing in {rest}\n{errors}"));
                rest = &rest[at + expected.len()..];
            }
            assert_eq!(errors, "");
            server.verify();
            Ok(server.requests())
        }
    }
}

/// Returns the text of a request's last message of the user.
fn prompt(request: &Request) -> String {
    let messages = request.messages().iter();
    let last = messages.rev().find(|message| message["role"] == "user");
    last.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned()
}

fn last(request: &Request) -> &Value {
    request.messages().last().unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread")]
async fn simple_query() -> Result {
    let script = Script::new().strict().reply(Reply::text("Paris."));
    let expected = ["Response: Paris.", "[stopped: stop]", "Query complete!"];
    let requests = Program::new("simple_query").check(script, &expected).await?;
    assert_eq!(requests[0].json()["max_tokens"], 500);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_query() -> Result {
    let script = Script::new().reply(Reply::new().think("A capital.").say("Paris."));
    // Thinking arrives as it is generated, like text.
    let expected = ["claude-sonnet-5", "[thinking] A", "capital.", "Paris.", "[stopped: stop]"];
    let requests = Program::new("anthropic_query").check(script, &expected).await?;
    assert_eq!(requests[0].headers()["authorization"], "Bearer made-up");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn vision_example() -> Result {
    let script = Script::new().strict().otherwise(Reply::text("A cat."));
    let expected = ["Example 1", "A cat.", "Example 2", "A cat.", "Example 4", "A cat."];
    let requests = Program::new("vision_example").check(script, &expected).await?;
    let images = |request: &Request| {
        let parts = last(request)["content"].as_array().cloned().unwrap_or_default();
        parts.iter().filter(|part| part["type"] == "image_url").count()
    };
    assert_eq!(requests.iter().map(images).collect::<Vec<_>>(), [1, 1, 1, 2]);
    let details = &last(&requests[1])["content"][1]["image_url"]["detail"];
    assert_eq!(details, "high");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn vision_api_demo() -> Result {
    let expected = ["2 content blocks", "URL starts with: data:image/png;base64", "7 content"];
    Program::new("vision_api_demo").check(Script::new(), &expected).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_example() -> Result {
    let script = Script::new().strict().otherwise(Reply::text("Paris."));
    let expected = [
        "✓ Prompt accepted",
        "🛑 Hook: Blocked dangerous prompt",
        "✗ Prompt rejected: ",
        "Dangerous keywords detected in prompt",
        "✓ Prompt accepted (with modifications)",
        "✓ Prompt accepted (modified by Hook 2)",
    ];
    let requests = Program::new("hooks_example").check(script, &expected).await?;
    let prompts: Vec<_> = requests.iter().map(prompt).collect();
    let changed = "write to config file (Please confirm this is safe before proceeding)";
    let urgent = "[URGENT] This is urgent: help me";
    assert_eq!(prompts, ["What is the capital of France?", changed, urgent]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn test_tool_serialization() -> Result {
    let call = json!({ "operation": "add", "a": 5, "b": 3 });
    let script = Script::new()
        .strict()
        .reply(Reply::new().call("calculator", call))
        .expect("brings the result", |request| last(request)["role"] == "tool")
        .reply(Reply::text("It is 8."));
    let expected = ["✓ Received tool use: calculator", "✓ Received tool result", "It is 8."];
    Program::new("test_tool_serialization").check(script, &expected).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn calculator_tools() -> Result {
    // Two calls in the last answer: the loop of the example answers each and asks to go on after each.
    let call = |tool: &str, a: u32, b: u32| Reply::new().call(tool, json!({ "a": a, "b": b }));
    let script = Script::new()
        .strict()
        .reply(call("add", 25, 17))
        .reply(Reply::text("42."))
        .reply(call("divide", 144, 12))
        .reply(Reply::text("12."))
        .reply(call("multiply", 7, 8))
        .reply(call("add", 56, 5))
        .reply(Reply::text("61."));
    let expected = [
        r#"{"result":42.0}"#,
        "Assistant: 42.",
        r#"{"result":12.0}"#,
        "Assistant: 12.",
        r#"{"result":56.0}"#,
        r#"{"result":61.0}"#,
        "Assistant: 61.",
    ];
    Program::new("calculator_tools").check(script, &expected).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn auto_execution_demo() -> Result {
    let call = |tool: &str, a: u32, b: u32| Reply::new().call(tool, json!({ "a": a, "b": b }));
    let script = Script::new()
        .strict()
        .reply(call("add", 15, 27).say("I add."))
        .reply(Reply::text("42."))
        .reply(call("add", 10, 5))
        .reply(call("multiply", 15, 3))
        .reply(Reply::text("45."))
        .reply(call("divide", 1, 0))
        .expect("the handler's error is told", |request| {
            last(request)["content"].as_str().is_some_and(|text| text.contains("Division by zero"))
        })
        .reply(Reply::text("51."));
    let expected = [
        "🔧 Tool: add(15, 27) = 42",
        // Only the text of the last answer, as before.
        "🤖 Assistant: 42.",
        "🔧 Tool: multiply(15, 3) = 45",
        "🤖 Assistant: 45.",
        "🤖 Assistant: 51.",
    ];
    Program::new("auto_execution_demo").check(script, &expected).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn context_management() -> Result {
    let long = "It is long. ".repeat(100);
    let answer = Reply::by(move |request| match prompt(request).contains("ownership") {
        true => Reply::text(long.clone()),
        false => Reply::text("It is."),
    });
    let script = Script::new().strict().otherwise(answer);
    let expected = ["Response length: 6 chars", "After truncation: ", "Final history size: "];
    Program::new("context_management").check(script, &expected).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupt_demo() -> Result {
    let answer = Reply::by(|request| match prompt(request) {
        prompt if prompt.contains("quantum") => Reply::text("An essay begins").stall_after(300),
        prompt if prompt.contains("machine learning") => {
            Reply::new().say("There is the ").say("neural network").say(", and so on.")
        }
        prompt if prompt.contains("artificial") => Reply::text("It is the art").stall_after(300),
        prompt if prompt.contains("Turing") => Reply::text("He asked whether machines think."),
        _ => Reply::text("history of computing ".repeat(20)).stall_after(4_000),
    });
    let expected = [
        "timed out and was interrupted!",
        "Found keyword 'neural network'",
        "User clicked cancel button!",
        "that was too broad. Interrupting...",
        "He asked whether machines think.",
        "All examples completed!",
    ];
    let script = Script::new().otherwise(answer);
    Program::new("interrupt_demo").check(script, &expected).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn advanced_patterns() -> Result {
    let script = Script::new()
        .strict()
        // The first attempt fails, and the loop of the example asks again.
        .reply(Reply::error(503, "loading"))
        .otherwise(Reply::by(|request| Reply::text(format!("Answer to: {}", prompt(request)))));
    let expected = [
        "✅ Success after",
        "Response: Answer to: What is 2+2?",
        "Response: Answer to: Explain quantum computing",
        "Response: Answer to: ",
        "All queries completed",
        "[Completed Query",
        "All examples completed!",
    ];
    let requests = Program::new("advanced_patterns").check(script, &expected).await?;
    // One more than the twelve prompts: each failure is retried once, and by one layer.
    assert_eq!(requests.len(), 13);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn multi_tool_agent() -> Result {
    let units = json!({ "value": 15, "from_unit": "km", "to_unit": "miles" });
    let script = Script::new()
        .strict()
        .reply(Reply::new().call("convert_units", units))
        .expect("the hook's change is what the model reads", |request| {
            last(request)["content"].as_str().is_some_and(|text| text.contains("_metadata"))
        })
        .reply(Reply::text("9.32 miles."))
        .reply(Reply::new().call("calculate", json!({ "operation": "divide", "a": 25, "b": 0 })))
        .expect("the gate's reason is what the model reads", |request| {
            let content = last(request)["content"].as_str();
            content.is_some_and(|text| text.contains("Division by zero prevented"))
        })
        .reply(Reply::text("Not by zero."))
        .reply(Reply::text("Now."))
        .reply(Reply::new().call("search", json!({ "query": "Rust" })))
        .reply(Reply::text("Found."));
    let expected = [
        "🔍 PreToolUse: convert_units",
        "✨ PostToolUse: convert_units completed",
        "9.32 miles.",
        "🛑 BLOCKED: Division by zero",
        "Not by zero.",
        "Execution Log:",
        "DEMO COMPLETE",
    ];
    Program::new("multi_tool_agent").check(script, &expected).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn git_commit_agent() -> Result {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("a.txt"), "a\n")?;
    for arguments in [&["init", "--quiet"][..], &["add", "a.txt"]] {
        let status = Command::new("git").args(arguments).current_dir(folder.path()).status()?;
        assert!(status.success());
    }
    let answer = r#"```json
{"type": "feat", "scope": "", "subject": "add a", "body": "Adds a.txt", "breaking": ""}
```"#;
    let script = Script::new()
        .strict()
        .expect("shows the diff", |request| prompt(request).contains("--- a.txt ---"))
        .otherwise(Reply::text(answer));
    let mut program = Program::new("git_commit_agent");
    program.folder = Some(folder.path());
    program.typed = "r\nc\n";
    let expected =
        ["1 file(s)", "feat: add a\n\n- Adds a.txt", "Regenerating", "feat: add a", "Cancelled"];
    program.check(script, &expected).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn log_analyzer_agent() -> Result {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("app.log");
    fs::write(&log, "2026-01-01 12:00:00 [ERROR] connection refused\nINFO: started\n")?;
    let script = Script::new()
        .strict()
        .expect("shows the errors", |request| prompt(request).contains("connection refused"))
        .reply(Reply::text("The database is down."));
    let mut program = Program::new("log_analyzer_agent");
    program.arguments = vec![log.display().to_string()];
    let expected = ["Parsed 2 log entries", "Errors: 1", "The database is down."];
    program.check(script, &expected).await?;
    Ok(())
}
