//! An agent that answers questions about a log file of any size: the model does not read the file but queries
//! it with tools, several at a time.
//!
//!     cargo run --example log_analyzer
//!     cargo run --example log_analyzer -- --file server.log "What happened between 10:40 and 10:42?"
//!
//! A line has a time, a level and a message: `2026-03-02T10:40:07Z ERROR db: connection 17 refused`. Without a
//! file, it generates a sample.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;

use examples::{Arguments, Model, Terminal, stand_in};
use open_agent::{Client, FnTool, ToolContext, ToolError, Value, json, tool};

const QUESTION: &str = "Which error is the most frequent, and when did it begin?";
/// The limits of a tool result: lines, characters per line, and distinct messages.
const LINES: usize = 20;
const WIDTH: usize = 400;
const KINDS: usize = 10_000;
const OTHER: &str = "other";

/// The file that the tools read.
struct Log(PathBuf);

/// A line of the log. A line without a time and a level has the level [`OTHER`].
struct Line<'a> {
    time: &'a str,
    level: &'a str,
    message: &'a str,
    whole: &'a str,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::read(include_str!("log_analyzer.rs"));
    let file = arguments.value("--file")?.map(PathBuf::from);
    let words = arguments.words()?;
    let question = if words.is_empty() { QUESTION } else { &words };
    // Deleted when the program exits.
    let mut sample = tempfile::NamedTempFile::new()?;
    make_up(sample.as_file_mut())?;

    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in::log::answer).await?;
    let options = model
        .options()
        .system_prompt(
            "You answer questions about a log. You cannot see it: use the tools, several at once \
             where one does not need what another says. Answer in two or three sentences.",
        )
        .tools([count_by_level(), most_frequent(), search(), lines_between()])
        .state(Log(file.unwrap_or_else(|| sample.path().to_owned())))
        .auto_execute_tools(true)
        .max_tool_iterations(8)
        .build()?;

    terminal.prompt(question);
    let mut client = Client::new(options)?;
    client.send(question).await?;
    while let Some(block) = client.receive().await? {
        terminal.block(&block);
    }
    terminal.gap();
    terminal.note(&format!("tool rounds: {}", client.turn_metadata().rounds));
    Ok(())
}

// Reading a file blocks, so these tools use `build_blocking` and run on separate threads, all calls of an
// answer in parallel.

fn count_by_level() -> FnTool {
    tool("count_by_level", "Counts the lines of each level").build_blocking_with_context(|_, cx| {
        let mut counts = BTreeMap::<String, u64>::new();
        read(&cx, |line| {
            // A level may be any word, so limit the number of levels.
            let is_told = counts.len() < LINES || counts.contains_key(line.level);
            let level = if is_told { line.level } else { OTHER };
            *counts.entry(level.to_owned()).or_default() += 1;
        })?;
        Ok(json!(counts))
    })
}

fn most_frequent() -> FnTool {
    tool("most_frequent", "Finds the most frequent messages; numbers in them count as the same")
        .param("level", "string")
        .default("level", "ERROR")
        .build_blocking_with_context(|args, cx| {
            let mut kinds = BTreeMap::<String, (u64, String, String)>::new();
            read(&cx, |line| {
                let kind = without_numbers(line.message);
                if args["level"] == line.level && (kinds.len() < KINDS || kinds.contains_key(&kind))
                {
                    let first = || (0, line.time.to_owned(), String::new());
                    let (count, _, last) = kinds.entry(kind).or_insert_with(first);
                    *count += 1;
                    line.time.clone_into(last);
                }
            })?;
            let mut kinds: Vec<_> = kinds.into_iter().collect();
            kinds.sort_by_key(|(_, (count, ..))| std::cmp::Reverse(*count));
            let kinds = kinds.into_iter().take(5).map(|(message, (count, first, last))| {
                json!({ "message": message, "count": count, "first": first, "last": last })
            });
            Ok(kinds.collect())
        })
}

fn search() -> FnTool {
    tool("search", "Finds the lines that contain a text, counts them and returns the first")
        .param("text", "string")
        .build_blocking_with_context(|args, cx| {
            let text = args["text"].as_str().unwrap_or_default();
            select(&cx, |line| line.whole.contains(text))
        })
}

fn lines_between() -> FnTool {
    tool("lines_between", "Counts the lines of a span of time and returns the first")
        .param("from", "string")
        .describe("from", "A time, or its beginning: 10:40, or 2026-03-02T10:40:07")
        .param("to", "string")
        .describe("to", "The same, and included")
        .build_blocking_with_context(|args, cx| {
            let bound = |name: &str| args[name].as_str().unwrap_or_default();
            let (from, to) = (bound("from"), bound("to"));
            select(&cx, |line| {
                let is_known = !line.time.is_empty();
                is_known && part(line.time, from) >= from && part(line.time, to) <= to
            })
        })
}

fn select(cx: &ToolContext, is: impl Fn(&Line<'_>) -> bool) -> Result<Value, ToolError> {
    let (mut count, mut lines) = (0_u64, Vec::new());
    read(cx, |line| {
        if is(&line) {
            count += 1;
            if lines.len() < LINES {
                lines.push(line.whole.chars().take(WIDTH).collect::<String>());
            }
        }
    })?;
    Ok(json!({ "count": count, "lines": lines }))
}

/// Reads the log line by line, so it may be larger than memory.
fn read(cx: &ToolContext, mut see: impl FnMut(Line<'_>)) -> Result<(), ToolError> {
    let Log(path) = cx.state().ok_or("there is no log")?;
    let mut file = BufReader::new(File::open(path)?);
    let mut bytes = Vec::new();
    while file.read_until(b'\n', &mut bytes)? > 0 {
        // A thread cannot be stopped from outside.
        if cx.is_cancelled() {
            return Err("stopped".into());
        }
        let text = String::from_utf8_lossy(&bytes);
        let whole = text.trim_end();
        let mut parts = whole.splitn(3, ' ');
        let is_level = |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase());
        match (parts.next(), parts.next(), parts.next()) {
            (Some(time), Some(level), Some(message)) if is_level(level) => {
                see(Line { time, level, message, whole });
            }
            _ if whole.is_empty() => {}
            _ => see(Line { time: "", level: OTHER, message: whole, whole }),
        }
        bytes.clear();
    }
    Ok(())
}

/// The part of a time to compare with a bound, which may omit the date and trailing digits.
fn part<'a>(time: &'a str, bound: &str) -> &'a str {
    let time = match time.split_once('T') {
        Some((_, of_day)) if !bound.contains('T') => of_day,
        _ => time,
    };
    time.get(..bound.len()).unwrap_or(time)
}

/// `connection 17 refused` and `connection 4 refused` are the same message.
fn without_numbers(message: &str) -> String {
    let mut kind = message.replace(|c: char| c.is_ascii_digit(), "#");
    while kind.contains("##") {
        kind = kind.replace("##", "#");
    }
    kind
}

/// Generates one hour of a shop's log. The shop's database fails at 10:40.
fn make_up(file: &mut File) -> io::Result<()> {
    let mut file = io::BufWriter::new(file);
    let mut random = 7_u64;
    for second in 0..3600_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = (random >> 33) % 500;
        let message = match (second, number) {
            (2400, _) => "WARN db: no connection is free, 64 wait".to_owned(),
            (2401.., 0..200) => format!("ERROR db: connection {number} refused"),
            (_, 490..) => format!("ERROR mail: no answer after {number} ms"),
            (_, 470..490) => format!("WARN cache: {number} entries dropped"),
            _ => format!("INFO web: order {number} taken"),
        };
        writeln!(file, "2026-03-02T10:{:02}:{:02}Z {message}", second / 60, second % 60)?;
    }
    file.flush()
}
