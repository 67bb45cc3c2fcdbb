//! The server for all programs: it replays prepared answers, those of `cargo bench -p oa-client`.
//!
//! A path such as `/0/2000/chat/completions` asks for an answer of a form and a number of pieces. Unlike the bench's server, it
//! counts rounds by the results in a request, because some clients open a connection for each request.
#![allow(dead_code, reason = "the answers serve a bench, too")]

#[path = "../../../../crates/oa-client/benches/answers.rs"]
mod answers;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use answers::{Answer, Framing};

// The forms, numbered as there.
const BURSTS: usize = 0;
const LARGE: usize = 2;
const CALL: usize = 3;
/// A call for each of this many rounds, then text. The prompt tokens are reported correctly, or always as 12.
const ROUNDS: usize = 5;
const ROUNDS_OF_12: usize = 8;
/// One piece of text, and no end until the streams are released.
const HELD: usize = 6;
const RELEASE: usize = 7;

/// The number of bytes of a request's JSON that count as a token.
const BYTES_PER_TOKEN: usize = 4;

#[derive(Default)]
struct Replay {
    known: Mutex<HashMap<(usize, usize), Arc<[Vec<u8>]>>>,
    held: Mutex<Vec<TcpStream>>,
}

/// The two numbers of a path, and the body.
struct Request {
    form: usize,
    number: usize,
    body: Vec<u8>,
}

fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    println!("{}", listener.local_addr().expect("a listener has an address").port());
    thread::spawn(move || {
        let replay = Arc::<Replay>::default();
        for stream in listener.incoming().flatten() {
            let replay = Arc::clone(&replay);
            thread::spawn(move || replay.answer(stream));
        }
    });
    // Until the input ends.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

impl Replay {
    /// Answers the requests of one connection.
    fn answer(&self, mut stream: TcpStream) {
        stream.set_nodelay(true).expect("a socket has options");
        let mut reader = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
        while let Some(Request { form, number, body }) = read_request(&mut reader) {
            let parts = match form {
                ROUNDS | ROUNDS_OF_12 => {
                    let done = results(&body);
                    let answer = if done < number { answers::round(done + 1) } else { answers::text(1) };
                    let prompt = if form == ROUNDS { body.len() / BYTES_PER_TOKEN } else { 12 };
                    answer.reporting(prompt).parts(Framing::Bursts).into()
                }
                HELD => return self.hold(stream),
                RELEASE => return self.release(),
                _ => self.known(form, number),
            };
            if parts.iter().any(|part| stream.write_all(part).is_err()) {
                return;
            }
        }
    }

    fn known(&self, form: usize, pieces: usize) -> Arc<[Vec<u8>]> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || match form {
            CALL => answers::call(pieces).parts(Framing::Bursts).into(),
            LARGE => answers::text(pieces).parts(Framing::Large).into(),
            BURSTS => answers::text(pieces).parts(Framing::Bursts).into(),
            _ => panic!("no form {form}"),
        };
        Arc::clone(known.entry((form, pieces)).or_insert_with(make))
    }

    fn hold(&self, mut stream: TcpStream) {
        let Answer { begin, .. } = answers::text(0);
        let begun = [answers::HEAD.into(), answers::chunks(&begin), answers::chunks(&answers::pieces(1))];
        // Locked while it writes: a client that has read this may have all streams released at once.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if stream.write_all(&begun.concat()).is_ok() {
            held.push(stream);
        }
    }

    fn release(&self) {
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        let Answer { end, .. } = answers::text(0);
        let end = [answers::chunks(&end), answers::LAST_CHUNK.into()].concat();
        for mut stream in held {
            let _ = stream.write_all(&end);
        }
    }
}

/// Returns how many results of tools a request has.
fn results(body: &[u8]) -> usize {
    let compact: Vec<u8> = body.iter().copied().filter(|byte| *byte != b' ').collect();
    let role = br#""role":"tool""#;
    compact.windows(role.len()).filter(|window| window == role).count()
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
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { form, number, body })
}
