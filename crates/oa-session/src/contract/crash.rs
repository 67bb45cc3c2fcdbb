use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use std::{env, io, thread};

use oa_types::{ContentBlock, Message, TextBlock};

use crate::append::Append;
use crate::contract::fixture::{at, create, id};
use crate::contract::random::Random;
use crate::contract::turns::turn;
use crate::contract::{block_on, expect};
use crate::error::ErrorKind;
use crate::id::SessionId;
use crate::list::List;
use crate::pending::Pending;
use crate::session::SessionInfo;
use crate::store::SessionStore;

/// Marks the program as a writer; followed by a folder, the round and the writer's number.
const WRITE: &str = "--write-until-killed";

const PROCESSES: usize = 2;

/// The threads of each process. The second half of them share one session.
const THREADS: usize = 4;

/// Checks that a store in a folder survives processes that are killed while writing.
///
/// Call it from the `main` of a test with `harness = false`, because the program starts itself: in each round,
/// two processes with four writers each write turns to six sessions and report every acknowledged turn until
/// both are killed (`SIGKILL`) at a random moment. All acknowledged turns must then be complete, unique and in
/// order, with at most one more turn per writer, and the store must continue to work. Returns the number of
/// turns acknowledged in all rounds.
///
/// `folder` is called once, and not in the writers: what is killed cannot remove it.
///
/// # Panics
///
/// If a turn is lost or damaged, or a process cannot be started.
pub fn survive<S: SessionStore + 'static, F: AsRef<Path>>(
    folder: impl FnOnce() -> F,
    rounds: usize,
    open: impl Fn(&Path) -> S + Copy + Send + Sync,
) -> usize {
    let arguments: Vec<String> = env::args().collect();
    if let Some(place) = arguments.iter().position(|argument| argument == WRITE) {
        let number = |place: usize| arguments[place].parse().expect("it is a number");
        let folder = Path::new(&arguments[place + 1]);
        write(folder, number(place + 2), number(place + 3), open);
        return 0;
    }
    let (folder, mut total) = (folder(), 0);
    let folder = folder.as_ref();
    for round in 0..rounds {
        let store = open(folder);
        block_on(create(&store, &shared(round)));
        drop(store);
        let acknowledged = disturb(folder, round);
        block_on(inspect(&open(folder), round, &acknowledged));
        total += acknowledged.values().sum::<usize>();
    }
    assert!(total > rounds, "only {total} turns were acknowledged in {rounds} rounds");
    total
}

fn shared(round: usize) -> String {
    format!("crash/{round}/shared")
}

/// Returns the session of a writer.
fn session_of(round: usize, writer: usize) -> SessionId {
    id(&match writer % THREADS {
        thread if thread >= THREADS / 2 => shared(round),
        _ => format!("crash/{round}/{writer}"),
    })
}

/// Returns a writer's turn `number`: up to 64 KiB, deterministic.
fn turn_of(writer: usize, number: usize) -> Vec<Message> {
    let mut turn = turn(writer * 100_000 + number);
    let length = Random::new((writer * 100_000 + number) as u64).below(1 << 16);
    turn.push(Message::user("☂ ".repeat(length / 4)));
    turn.push(Message::assistant(vec![TextBlock::new(format!("{writer} {number}")).into()]));
    turn
}

/// Writes until the process is killed.
fn write<S: SessionStore + 'static>(
    folder: &Path,
    round: usize,
    process: usize,
    open: impl Fn(&Path) -> S + Copy + Send + Sync,
) {
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let writer = process * THREADS + thread;
            scope.spawn(move || {
                let store = open(folder);
                block_on(write_turns(&store, round, writer));
            });
        }
    });
}

async fn write_turns(store: &dyn SessionStore, round: usize, writer: usize) {
    let session = session_of(round, writer);
    let is_alone = writer % THREADS < THREADS / 2;
    let mut info = if is_alone {
        create(store, session.as_str()).await
    } else {
        expect::ok("load", store.load(&session).await).info
    };
    for number in 0.. {
        if is_alone && number % 3 == 2 {
            info = ask(store, &info).await;
        }
        info = loop {
            let append = Append::new(info.revision, turn_of(writer, number), at(1));
            match store.append(&session, append).await {
                Ok(info) => break info,
                Err(error) if error.kind() == ErrorKind::Conflict && !is_alone => {
                    info = expect::ok("load", store.load(&session).await).info;
                }
                Err(error) => panic!("append: {error:?}"),
            }
        };
        let told = io::stdout().lock().write_all(format!("{writer} {number}\n").as_bytes());
        told.and_then(|()| io::stdout().flush()).expect("somebody listens");
    }
}

/// Saves a pending call with a long turn, so that there is much to compact later.
async fn ask(store: &dyn SessionStore, info: &SessionInfo) -> SessionInfo {
    let mut turn = turn(0);
    turn.truncate(2);
    let call = turn.iter().flat_map(|message| &message.content).find_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(call.clone()),
        _ => None,
    });
    turn.insert(0, Message::user("-".repeat(400 << 10)));
    let pending = Pending::new(call.expect("a turn has a call"), at(1)).with_turn(turn);
    let asked = store.set_pending(&info.id, info.revision, Some(pending), at(1)).await;
    expect::ok("set_pending", asked)
}

/// Starts the processes, kills them, and returns the number of acknowledged turns per writer.
fn disturb(folder: &Path, round: usize) -> BTreeMap<usize, usize> {
    let mut random = Random::new(round as u64);
    let (sender, lines) = channel();
    let mut children: Vec<Child> =
        (0..PROCESSES).map(|process| start(folder, round, process, &sender)).collect();
    drop(sender);
    let mut acknowledged = BTreeMap::new();
    while !children.is_empty() {
        let mut child = children.swap_remove(random.below(children.len()));
        for _ in 0..random.below(24) {
            let Ok(line) = lines.recv_timeout(Duration::from_secs(60)) else {
                panic!("round {round}: nothing was written for a minute, or a writer has failed");
            };
            count(&mut acknowledged, &line);
        }
        wait_a_little(&lines, &mut random, &mut acknowledged);
        child.kill().expect("it can be killed");
        let status = child.wait().expect("it has ended");
        // On Windows, a killed process has a status too.
        let of_killed = if cfg!(windows) { Some(1) } else { None };
        assert_eq!(status.code(), of_killed, "it has ended by itself: {status}");
    }
    for line in lines {
        count(&mut acknowledged, &line);
    }
    acknowledged
}

/// Waits a random time, so that the next kill may fall anywhere between two acknowledgements.
fn wait_a_little(
    lines: &Receiver<String>,
    random: &mut Random,
    acknowledged: &mut BTreeMap<usize, usize>,
) {
    let pause = Duration::from_micros(random.below(3_000) as u64);
    if let Ok(line) = lines.recv_timeout(pause) {
        count(acknowledged, &line);
    }
}

fn count(acknowledged: &mut BTreeMap<usize, usize>, line: &str) {
    let (writer, number) = line.split_once(' ').expect("a writer and a number");
    let counted = acknowledged.entry(writer.parse().expect("a number")).or_default();
    let number: usize = number.parse().expect("a number");
    assert_eq!(number, *counted, "writer {writer} reports its turns in order");
    *counted += 1;
}

fn start(folder: &Path, round: usize, process: usize, sender: &Sender<String>) -> Child {
    let program = env::current_exe().expect("the program has a path");
    let mut child = Command::new(program)
        .arg(WRITE)
        .arg(folder)
        .args([round.to_string(), process.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be started again");
    let output = child.stdout.take().expect("its output is piped");
    let sender = sender.clone();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.map(|line| sender.send(line)).take_while(Result::is_ok).count()
    });
    child
}

async fn inspect(store: &dyn SessionStore, round: usize, acknowledged: &BTreeMap<usize, usize>) {
    let page = expect::ok("list", store.list(List::new(100)).await);
    assert!(page.unreadable.is_empty(), "round {round}: {:?}", page.unreadable);
    let mut written: BTreeMap<usize, usize> = BTreeMap::new();
    for listed in page.sessions {
        let session = expect::stored(store, &listed).await;
        let expected_writers = (0..PROCESSES * THREADS)
            .filter(|writer| session_of(round, *writer) == listed.id)
            .collect::<Vec<_>>();
        for messages in session.messages.chunks(turn_of(0, 0).len()) {
            let next = |writer: usize| written.get(&writer).copied().unwrap_or_default();
            let mut writers = expected_writers.iter().copied();
            let writer = writers.find(|writer| *messages == turn_of(*writer, next(*writer)));
            let Some(writer) = writer else {
                panic!("round {round}: turns in {} are broken, lost or doubled", listed.id);
            };
            *written.entry(writer).or_default() += 1;
        }
        // The store must continue to work.
        let more = Append::new(listed.revision, turn(0), at(2));
        let more = expect::ok("append", store.append(&listed.id, more).await);
        expect::stored(store, &more).await;
        expect::ok("delete", store.delete(&listed.id).await);
    }
    for writer in 0..PROCESSES * THREADS {
        let told = acknowledged.get(&writer).copied().unwrap_or_default();
        let found = written.get(&writer).copied().unwrap_or_default();
        assert!(
            (told..=told + 1).contains(&found),
            "round {round}: {told} turns of writer {writer} were acknowledged, and {found} are there"
        );
    }
}
