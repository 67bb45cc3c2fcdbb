//! A server that replays prepared bytes, in a process of its own.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{self, Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::instructions::again;

/// With this argument the program is the server.
pub(crate) const ARGUMENT: &str = "serve";

/// Each event is an HTTP chunk, and many leave at once.
pub(crate) const BURSTS: usize = 0;
/// Each event is an HTTP chunk, and leaves a millisecond after the one before.
pub(crate) const PACED: usize = 1;
/// HTTP chunks of 16 KiB.
pub(crate) const LARGE: usize = 2;

const BURST: usize = 64 << 10;

/// The server's process, which lasts as long as this.
pub(crate) struct Server {
    child: Child,
    port: usize,
}

impl Server {
    pub(crate) fn start() -> Self {
        let mut command = again(&[ARGUMENT]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a bench can start itself");
        let mut line = String::new();
        let output = child.stdout.take().expect("the output is piped");
        BufReader::new(output).read_line(&mut line).expect("the server says its port");
        let port = line.trim().parse().expect("a port is a number");
        Self { child, port }
    }

    pub(crate) fn port(&self) -> usize {
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its input ends, and so does it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Prints a port and answers there until the input ends.
pub(crate) fn serve() -> ! {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    println!("{}", listener.local_addr().expect("a listener has an address").port());
    thread::spawn(move || {
        let answers = Arc::<Answers>::default();
        for stream in listener.incoming().flatten() {
            let answers = Arc::clone(&answers);
            thread::spawn(move || answers.answer(stream));
        }
    });
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    process::exit(0)
}

/// What is written one after the other.
type Parts = Arc<[Vec<u8>]>;

/// Answers by form and number of pieces of text.
#[derive(Default)]
struct Answers(Mutex<HashMap<(usize, usize), Parts>>);

impl Answers {
    /// Answers what comes over one connection.
    fn answer(&self, mut stream: TcpStream) {
        stream.set_nodelay(true).expect("a socket has options");
        let mut reader = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
        while let Some((form, deltas)) = read_request(&mut reader) {
            for part in self.of(form, deltas).iter() {
                if form == PACED {
                    thread::sleep(Duration::from_millis(1));
                }
                if stream.write_all(part).is_err() {
                    return;
                }
            }
        }
    }

    fn of(&self, form: usize, deltas: usize) -> Parts {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(answers.entry((form, deltas)).or_insert_with(|| make(form, deltas).into()))
    }
}

/// The form and the number of pieces, from a path such as `/0/2000/chat/completions`; none at the end.
fn read_request(reader: &mut impl BufRead) -> Option<(usize, usize)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut numbers = line.split(['/', ' ']).filter_map(|part| part.parse().ok());
    let request = (numbers.next()?, numbers.next()?);
    let mut length = 0;
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    Some(request)
}

fn make(form: usize, deltas: usize) -> Vec<Vec<u8>> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let events = events(deltas);
    let whole: Vec<u8>;
    let chunks: Vec<&[u8]> = if form == LARGE {
        whole = events.concat().into_bytes();
        whole.chunks(16 << 10).collect()
    } else {
        events.iter().map(String::as_bytes).collect()
    };
    let framed = chunks
        .into_iter()
        .chain([&b""[..]])
        .map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    let parts: Vec<Vec<u8>> = [head.as_bytes().to_vec()].into_iter().chain(framed).collect();
    match form {
        PACED => parts,
        _ => parts.concat().chunks(BURST).map(<[u8]>::to_vec).collect(),
    }
}

/// Events of some 250 bytes, as llama.cpp's server writes them.
fn events(deltas: usize) -> Vec<String> {
    let words = [" the", " quick", " brown", " fox", " jumps", " over", " a", " lazy", " dog", "."];
    let event = |choices: &str, usage: &str| {
        format!(
            "data: {{\"choices\":[{choices}],\"created\":1795226850,\"id\":\"chatcmpl-2kHw4Z24inpMWrdzHVKC5bVLcGmWzvKX\",\"model\":\"tiny-stories.gguf\",\"system_fingerprint\":\"b0-unknown\",\"object\":\"chat.completion.chunk\"{usage}}}\n\n",
        )
    };
    let choice = |delta: &str, reason: &str| {
        format!(r#"{{"finish_reason":{reason},"index":0,"delta":{{{delta}}}}}"#)
    };
    let mut events = vec![event(&choice(r#""role":"assistant","content":null"#, "null"), "")];
    events.extend((0..deltas).map(|number| {
        let word = words[number * 7 % words.len()];
        event(&choice(&format!(r#""content":"{word}""#), "null"), "")
    }));
    events.push(event(&choice("", r#""stop""#), ""));
    let usage = r#","usage":{"completion_tokens":100,"prompt_tokens":25,"total_tokens":125}"#;
    events.push(event("", usage));
    events.push("data: [DONE]\n\n".to_owned());
    events
}
