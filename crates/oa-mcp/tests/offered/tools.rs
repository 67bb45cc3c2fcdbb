//! Tools for the tests' clients: those that the official client's scenarios expect, and some that fail.

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use oa_mcp::{ToolServer, ToolServerHandle};
use oa_tools::{FnTool, LogLevel, Registry, ToolContext, ToolError, tool};
use oa_types::ImageBlock;
use serde_json::{Value, json};

type Handle = Arc<OnceLock<ToolServerHandle>>;

pub(crate) fn server() -> Result<ToolServer, Box<dyn Error>> {
    let handle = Handle::default();
    let mut registry = tools()?;
    registry.add(grow(&handle))?;
    let server = ToolServer::new(registry).name("offered").version("1.2.3");
    let _ = handle.set(server.handle());
    Ok(server.instructions("Be kind."))
}

/// A tool that adds another one, and says so to everybody.
fn grow(handle: &Handle) -> FnTool {
    let handle = Arc::clone(handle);
    tool("grow", "Adds a tool").schema(json!({ "type": "object", "properties": {} })).build(
        move |_| {
            let handle = Arc::clone(&handle);
            async move {
                let mut registry = tools().map_err(|error| ToolError::new(error.to_string()))?;
                let no_args = json!({ "type": "object", "properties": {} });
                let grown = tool("grown", "Was added").schema(no_args);
                registry.add(grown.build(|_| async { Ok(json!("grown")) }))?;
                registry.add(grow(&handle))?;
                if let Some(handle) = handle.get() {
                    handle.set_tools(registry);
                    handle.log(LogLevel::Warn, "there is another tool");
                }
                Ok(json!("there is another tool"))
            }
        },
    )
}

fn tools() -> Result<Registry, Box<dyn Error>> {
    let of_sum = json!({ "properties": { "sum": { "type": "number" } }, "required": ["sum"] });
    let no_args = || json!({ "type": "object", "properties": {} });
    Ok(Registry::from_tools([
        tool("echo", "Says a text again")
            .param("text", "string")
            .build(|args| async move { Ok(args["text"].clone()) }),
        tool("add", "Adds two numbers")
            .param("a", "number")
            .param("b", "number")
            .output_schema(of_sum.clone())
            .category("read")
            .build(|args| async move {
                let number = |name: &str| args[name].as_f64().unwrap_or_default();
                Ok(json!({ "sum": number("a") + number("b") }))
            }),
        tool("fail", "Fails").schema(no_args()).build(|_| async {
            let cause = std::io::Error::other("the disk is full");
            Err(ToolError::from(cause).context("it failed"))
        }),
        tool("picture", "Draws a dot").schema(no_args()).build_with_context(|_, cx| async move {
            cx.attach_image(ImageBlock::from_base64(DOT, "image/png")?)?;
            Ok(json!(""))
        }),
        tool("slow", "Takes some steps of some milliseconds")
            .param("steps", "integer")
            .param("ms", "integer")
            .build_with_context(slow),
        tool("panic", "Panics").schema(no_args()).build(|_| async { panic!("a secret reason") }),
        tool("block", "Blocks a thread until it is canceled")
            .schema(no_args())
            .build_blocking_with_context(|_, cx| {
                while !cx.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(json!("canceled"))
            }),
        tool("late", "Times out").schema(no_args()).timeout(Duration::from_millis(100)).build(
            |_| async {
                std::future::pending::<()>().await;
                Ok(Value::Null)
            },
        ),
        tool("print", "Prints where the protocol is spoken").schema(no_args()).build(|_| async {
            println!("this is no message");
            Ok(json!("printed"))
        }),
        tool("talk", "Logs on all levels and tells a status").schema(no_args()).build_with_context(
            |_, cx| async move {
                use oa_tools::LogLevel::{Debug, Error, Info, Warn};
                for level in [Debug, Info, Warn, Error] {
                    cx.emit_log_at(level, format_args!("at {level}"));
                }
                cx.emit_status("nearly done");
                Ok(json!("done"))
            },
        ),
        tool("burst", "Takes a thousand steps at once").schema(no_args()).build_with_context(
            |_, cx| async move {
                (1..=1_000).for_each(|step| cx.emit_progress((step, 1_000)));
                Ok(json!("done"))
            },
        ),
        tool("lie", "Breaks its promise")
            .schema(no_args())
            .output_schema(of_sum)
            .build(|_| async { Ok(json!({ "sum": "five" })) }),
        tool("flood", "Returns a lot").param("bytes", "integer").build(|args| async move {
            let bytes = args["bytes"].as_u64().unwrap_or_default();
            Ok(json!("x".repeat(usize::try_from(bytes)?)))
        }),
        tool("process", "Tells the id of the process")
            .schema(no_args())
            .build(|_| async { Ok(json!(std::process::id())) }),
    ])?)
}

async fn slow(args: Value, cx: ToolContext) -> Result<Value, ToolError> {
    let (steps, ms) = (args["steps"].as_u64().unwrap_or(1), args["ms"].as_u64().unwrap_or(1));
    for step in 1..=steps {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        cx.emit_progress((step, steps));
    }
    Ok(json!(format!("{steps} steps")))
}

/// One pixel.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
