//! A server that replays prepared bytes, in a process of its own.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{self, Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::answers::{self, Answer, Framing};
use crate::instructions::again;
use crate::process::{on_processor, with_files};

/// The argument that makes the program the server.
pub(crate) const ARGUMENT: &str = "serve";

// What a path asks for: `/0/2000` is an answer of 2,000 pieces, in bursts.

/// Text. Each event is an HTTP chunk, and many are written at once.
pub(crate) const BURSTS: usize = 0;
/// Text. Each event is an HTTP chunk, written a millisecond after the one before.
pub(crate) const PACED: usize = 1;
/// Text, in HTTP chunks of 16 KiB.
pub(crate) const LARGE: usize = 2;
/// A call, in this many fragments of its arguments; as in bursts, and paced.
pub(crate) const CALL: usize = 3;
pub(crate) const PACED_CALL: usize = 4;
/// A call for each of this many requests of a connection, then text. The prompt tokens are reported correctly.
pub(crate) const ROUNDS: usize = 5;
/// The same, but reports the same few prompt tokens each time, or half of those that were sent.
pub(crate) const ROUNDS_OF_12: usize = 8;
pub(crate) const ROUNDS_OF_25: usize = 9;
pub(crate) const ROUNDS_OF_HALF: usize = 10;
/// One piece of text, and no end until the streams are released.
pub(crate) const HELD: usize = 6;
/// This many more pieces for each held stream, one at each beat, and then the end. No answer.
pub(crate) const RELEASE: usize = 7;

/// The interval of pieces in each held stream. All streams get theirs at nearly the same time.
const BEAT: Duration = Duration::from_millis(400);

/// The server's process, which ends when this is dropped.
pub(crate) struct Server {
    child: Child,
    port: usize,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::started_by(with_files(&[ARGUMENT]))
    }

    /// Starts it pinned to one processor.
    pub(crate) fn start_on(processor: usize) -> Self {
        Self::started_by(on_processor(processor, &again(&[ARGUMENT])))
    }

    fn started_by(mut command: Command) -> Self {
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
        let replay = Arc::<Replay>::default();
        for stream in listener.incoming().flatten() {
            let replay = Arc::clone(&replay);
            thread::spawn(move || replay.answer(stream));
        }
    });
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    process::exit(0)
}

/// Chunks that are written one after the other.
type Parts = Arc<[Vec<u8>]>;

#[derive(Default)]
struct Replay {
    /// The parts of answers, by the two numbers of a path.
    known: Mutex<HashMap<(usize, usize), Parts>>,
    held: Mutex<Vec<TcpStream>>,
}

impl Replay {
    /// Answers the requests of one connection.
    fn answer(&self, mut stream: TcpStream) {
        stream.set_nodelay(true).expect("a socket has options");
        let mut reader = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
        let mut round = 0;
        while let Some(Request { form, number, length }) = read_request(&mut reader) {
            let parts = match form {
                ROUNDS | ROUNDS_OF_12 | ROUNDS_OF_25 | ROUNDS_OF_HALF => {
                    let answer = if round < number {
                        round += 1;
                        answers::round(round)
                    } else {
                        round = 0;
                        answers::text(1)
                    };
                    let prompt = match form {
                        ROUNDS_OF_12 => 12,
                        ROUNDS_OF_25 => answers::PROMPT,
                        ROUNDS_OF_HALF => length / BYTES_PER_TOKEN / 2,
                        _ => length / BYTES_PER_TOKEN,
                    };
                    answer.reporting(prompt).parts(Framing::Bursts).into()
                }
                HELD => return self.hold(stream),
                RELEASE => return self.release(number),
                _ => self.of(form, number),
            };
            for part in parts.iter() {
                if matches!(form, PACED | PACED_CALL) {
                    thread::sleep(Duration::from_millis(1));
                }
                if stream.write_all(part).is_err() {
                    return;
                }
            }
        }
    }

    fn of(&self, form: usize, pieces: usize) -> Parts {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let answer = match form {
                CALL | PACED_CALL => answers::call(pieces),
                _ => answers::text(pieces),
            };
            let framing = match form {
                PACED | PACED_CALL => Framing::Single,
                LARGE => Framing::Large,
                _ => Framing::Bursts,
            };
            answer.parts(framing).into()
        };
        Arc::clone(known.entry((form, pieces)).or_insert_with(make))
    }

    fn hold(&self, mut stream: TcpStream) {
        let Answer { begin, .. } = answers::text(0);
        let first = answers::pieces(1);
        let begun = [answers::HEAD.into(), answers::chunks(&begin), answers::chunks(&first)];
        // Locked while it writes: a client that has read this may have all streams released at once.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if stream.write_all(&begun.concat()).is_ok() {
            held.push(stream);
        }
    }

    fn release(&self, pieces: usize) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let mut streams = std::mem::take(&mut *held);
        drop(held);
        let mut beat = Instant::now();
        let mut write = |bytes: &[u8]| {
            streams.retain_mut(|stream| stream.write_all(bytes).is_ok());
            beat += BEAT;
            thread::sleep(beat.saturating_duration_since(Instant::now()));
        };
        for event in answers::pieces(pieces) {
            write(&answers::chunks(&[event]));
        }
        // What was measured is over by now.
        let Answer { end, .. } = answers::text(0);
        write(&[answers::chunks(&end), answers::LAST_CHUNK.into()].concat());
    }
}

/// The number of bytes of a request's JSON that count as a token.
const BYTES_PER_TOKEN: usize = 4;

/// The two numbers of a path such as `/0/2000/chat/completions`, and the length of the body.
struct Request {
    form: usize,
    number: usize,
    length: usize,
}

/// Reads the next request; `None` at the end.
fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut numbers = line.split(['/', ' ']).filter_map(|part| part.parse().ok());
    let (form, number) = (numbers.next()?, numbers.next()?);
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
    Some(Request { form, number, length })
}
