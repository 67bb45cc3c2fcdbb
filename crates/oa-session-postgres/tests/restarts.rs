//! A server that is killed, stopped and restarted while several processes write, some of which are killed, too.
//! No harness, because the program starts itself as the writers.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use std::{env, thread};

use oa_session::contract::block_on;
use oa_session::{Append, ErrorKind, NewSession, SessionId, SessionStore, Timestamp};
use oa_session_postgres::PostgresStore;
use oa_types::{Message, TextBlock};
use services::{Postgres, or_skip};

/// Marks the program as a writer; followed by the server's address and the number of the process.
const WRITE: &str = "--write-through-restarts";

const PROCESSES: usize = 3;
/// Writers of each process, with a session each.
const WRITERS: usize = 2;
const ROUNDS: usize = 8;
/// Turns that all writers together acknowledge between two blows.
const TURNS: usize = 60;
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if let Some(place) = arguments.iter().position(|argument| argument == WRITE) {
        let process = arguments[place + 2].parse().expect("it is a number");
        return write(&arguments[place + 1], process);
    }
    let told = match or_skip(Postgres::start()) {
        None => "test result: ok. 0 passed; 0 failed; 1 ignored".to_owned(),
        Some(mut server) => {
            let report = strike(&mut server);
            format!("{report}\ntest result: ok. 1 passed; 0 failed; 0 ignored")
        }
    };
    writeln!(io::stdout(), "{told}").expect("somebody reads it");
}

fn session_of(writer: usize) -> SessionId {
    SessionId::new(format!("writer {writer}")).expect("it is an id")
}

fn turn_of(writer: usize, number: usize) -> Vec<Message> {
    let answer = TextBlock::new("☂ ".repeat(number % 50) + &format!("{writer} {number}"));
    vec![Message::user(format!("{writer} {number}")), Message::assistant(vec![answer.into()])]
}

const TURN: usize = 2;

fn write(url: &str, process: usize) {
    // The server may be down at this very moment.
    let store = persist(|| PostgresStore::connect(url));
    thread::scope(|scope| {
        for number in 0..WRITERS {
            let store = &store;
            scope.spawn(move || write_turns(store, process * WRITERS + number));
        }
    });
}

/// Tries again while the server is away.
fn persist<T, F: Future<Output = Result<T, oa_session::Error>>>(operation: impl Fn() -> F) -> T {
    let since = Instant::now();
    loop {
        match block_on(operation()) {
            Ok(value) => return value,
            Err(error) => {
                let is_away = matches!(error.kind(), ErrorKind::Io | ErrorKind::Busy);
                assert!(is_away && since.elapsed() < PATIENCE, "{error:?}");
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn write_turns(store: &PostgresStore, writer: usize) {
    let id = session_of(writer);
    let mut info = persist(|| async {
        let created = store.create(NewSession::new(id.clone(), Timestamp::from_millis(1))).await;
        match created {
            // By a process that was killed, or by the try before, whose result was lost.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Ok(store.load(&id).await?.info)
            }
            other => other,
        }
    });
    loop {
        let number = info.message_count / TURN;
        let (count, turn) = (info.message_count, turn_of(writer, number));
        info = persist(|| {
            let append = Append::new(info.revision, turn.clone(), Timestamp::from_millis(2));
            store.append_once(&id, count, append)
        });
        let told = io::stdout().lock().write_all(format!("{writer} {number}\n").as_bytes());
        told.and_then(|()| io::stdout().flush()).expect("somebody listens");
    }
}

/// Kills and stops the server and the writers in turn, and checks what is left.
fn strike(server: &mut Postgres) -> String {
    let url = server.url();
    drop(persist(|| PostgresStore::connect(&url)));
    let (sender, lines) = channel();
    let mut writers: Vec<Child> =
        (0..PROCESSES).map(|process| start(&url, process, &sender)).collect();
    let mut acknowledged = BTreeMap::new();
    let mut longest = Duration::ZERO;
    for round in 0..ROUNDS {
        listen(&lines, &mut acknowledged);
        let since = Instant::now();
        match round % 2 {
            0 => server.kill().expect("it can be killed"),
            _ => server.stop().expect("it can be stopped"),
        }
        // One of the writers dies while the server is away.
        let process = round % PROCESSES;
        writers[process].kill().expect("it can be killed");
        writers[process].wait().expect("it has ended");
        server.start_again().expect("it starts again");
        // What was said before is not to be taken for a sign of life.
        lines.try_iter().for_each(|line| count(&mut acknowledged, &line));
        let line = lines.recv_timeout(PATIENCE).expect("the writers go on");
        count(&mut acknowledged, &line);
        longest = longest.max(since.elapsed());
        writers[process] = start(&url, process, &sender);
    }
    listen(&lines, &mut acknowledged);
    for mut writer in writers {
        writer.kill().expect("it can be killed");
        writer.wait().expect("it has ended");
    }
    drop(sender);
    lines.iter().for_each(|line| count(&mut acknowledged, &line));

    let store = persist(|| PostgresStore::connect(&url));
    for (writer, told) in &acknowledged {
        let messages = block_on(store.load(&session_of(*writer))).expect("it is there").messages;
        let found = messages.len() / TURN;
        let expected: Vec<_> = (0..found).flat_map(|number| turn_of(*writer, number)).collect();
        assert!(messages == expected, "writer {writer}: turns are lost, doubled or mixed");
        // Each of its processes may have died between a write and telling of it.
        assert!(*told <= found, "writer {writer} told of {told} turns, and {found} are there");
    }
    assert_eq!(acknowledged.len(), PROCESSES * WRITERS, "every writer has written");
    format!(
        "{} turns of {} writers in {PROCESSES} processes went through {ROUNDS} restarts of the server and {ROUNDS} kills \
         of a process; the longest pause was {:.1} s",
        acknowledged.values().sum::<usize>(),
        acknowledged.len(),
        longest.as_secs_f32()
    )
}

fn start(url: &str, process: usize, sender: &Sender<String>) -> Child {
    let program = env::current_exe().expect("the program has a path");
    let mut command = Command::new(program);
    command.args([WRITE, url, &process.to_string()]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program can be started again");
    let output = child.stdout.take().expect("its output is piped");
    let sender = sender.clone();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.map(|line| sender.send(line)).take_while(Result::is_ok).count()
    });
    child
}

/// Waits for some turns.
fn listen(lines: &Receiver<String>, acknowledged: &mut BTreeMap<usize, usize>) {
    for _ in 0..TURNS {
        count(acknowledged, &lines.recv_timeout(PATIENCE).expect("the writers go on"));
    }
}

/// Notes the number of turns of a writer, which never falls.
fn count(acknowledged: &mut BTreeMap<usize, usize>, line: &str) {
    let (writer, number) = line.split_once(' ').expect("a writer and a number");
    let counted = acknowledged.entry(writer.parse().expect("a number")).or_default();
    let number: usize = number.parse().expect("a number");
    assert!(number >= *counted, "writer {writer} tells of turn {number} after {counted}");
    *counted = number + 1;
}
