//! Stores through their public interface, without a runtime.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oa_session::contract::block_on;
use oa_session::{
    Append, Error, ErrorKind, JsonlStore, NewSession, SessionId, SessionInfo, SessionStore,
    Timestamp,
};
use oa_types::{Message, TextBlock};
use tempfile::TempDir;

#[cfg(unix)]
mod attacks;
mod broken;
mod contract;
mod faults;
mod files;
mod limits;
mod saved;
mod unlearned;
mod versions;

fn id(text: &str) -> SessionId {
    SessionId::new(text).expect("it is an id")
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A prompt and an answer.
fn turn(number: usize) -> Vec<Message> {
    let answer = TextBlock::new(format!("answer {number}"));
    vec![Message::user(format!("prompt {number}")), Message::assistant(vec![answer.into()])]
}

fn turns(count: usize) -> Vec<Message> {
    (0..count).flat_map(turn).collect()
}

fn create(store: &dyn SessionStore, text: &str) -> SessionInfo {
    block_on(store.create(NewSession::new(id(text), at(1)))).expect("it is new")
}

fn append(
    store: &dyn SessionStore,
    known: &SessionInfo,
    messages: Vec<Message>,
) -> Result<SessionInfo, Error> {
    block_on(store.append(&known.id, Append::new(known.revision, messages, at(2))))
}

fn load(store: &dyn SessionStore, text: &str) -> Result<Vec<Message>, Error> {
    block_on(store.load(&id(text))).map(|session| session.messages)
}

#[track_caller]
fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.expect_err("it is an error").kind()
}

/// A folder with one session `a` of this many turns.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new(count: usize) -> Self {
        let files = Self { folder: tempfile::tempdir().expect("there is room") };
        let store = files.open();
        let mut info = create(&store, "a");
        for number in 0..count {
            info = append(&store, &info, turn(number)).expect("it is written");
        }
        files
    }

    fn open(&self) -> JsonlStore {
        JsonlStore::open(self.folder.path()).expect("it opens")
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("session-a.jsonl")
    }

    fn read(&self) -> Vec<u8> {
        fs::read(self.path()).expect("there is a file")
    }

    fn write(&self, bytes: &[u8]) {
        fs::write(self.path(), bytes).expect("it is written");
    }

    /// Loads with a store that has nothing cached.
    fn load(&self) -> Result<Vec<Message>, Error> {
        load(&self.open(), "a")
    }

    /// Adds turn `number` with a store that has nothing cached.
    fn go_on(&self, number: usize) {
        let store: Arc<dyn SessionStore> = Arc::new(self.open());
        let info = block_on(store.load(&id("a"))).expect("it can be read").info;
        append(&store, &info, turn(number)).expect("it goes on");
    }
}

fn folder_of(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("it is a folder");
    let names = entries.map(|entry| entry.expect("it can be listed").file_name());
    let mut names: Vec<String> =
        names.map(|name| name.to_str().expect("it is text").to_owned()).collect();
    names.sort();
    names
}
