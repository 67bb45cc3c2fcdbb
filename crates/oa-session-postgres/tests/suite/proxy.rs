//! A network that fails at a chosen moment.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The failure when a client sends the marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The connection is cut before the server sees it.
    Cut,
    /// The server sees it, and the connection is cut when it answers.
    CutAnswer,
    /// Nothing arrives any more, in either direction, and nobody is told.
    Silence,
}

#[derive(Debug, Default)]
struct State {
    /// Strikes the next connection that sends the marker, once.
    armed: Option<(&'static str, Fault)>,
    /// Kept open for as long as the proxy lives.
    silenced: Vec<TcpStream>,
    /// One for each connection.
    struck: Vec<Struck>,
    /// The number of transactions that were begun on silent connections.
    unheard: usize,
}

/// The fault that has struck a connection.
type Struck = Arc<Mutex<Option<Fault>>>;

/// Passes connections on to a server.
pub(crate) struct Proxy {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                pass_on(&client, &server, &shared);
            }
        });
        Self { port, state }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Lets the fault happen when a client sends the marker next.
    pub(crate) fn arm(&self, marker: &'static str, fault: Fault) {
        lock(&self.state).armed = Some((marker, fault));
    }

    /// Silences all connections that are open, as a router does that has forgotten them.
    pub(crate) fn silence(&self) {
        for struck in &lock(&self.state).struck {
            *struck.lock().unwrap_or_else(PoisonError::into_inner) = Some(Fault::Silence);
        }
    }

    /// Returns the number of transactions that were begun on connections that [`silence`](Self::silence) has struck.
    pub(crate) fn unheard(&self) -> usize {
        lock(&self.state).unheard
    }

    /// Returns true until the fault has happened.
    pub(crate) fn is_armed(&self) -> bool {
        lock(&self.state).armed.is_some()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pass_on(client: &TcpStream, server: &TcpStream, state: &Arc<Mutex<State>>) {
    fn get(struck: &Struck) -> Option<Fault> {
        *struck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    let clone = |stream: &TcpStream| stream.try_clone().expect("it can be cloned");
    let struck = Struck::default();
    lock(state).struck.push(Arc::clone(&struck));

    let (mut from, mut to) = (clone(client), clone(server));
    let (state, mine) = (Arc::clone(state), Arc::clone(&struck));
    thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let piece = &buffer[..length];
            if get(&mine) == Some(Fault::Silence) {
                lock(&state).unheard += usize::from(contains(piece, b"BEGIN"));
                continue;
            }
            let fault = {
                let mut state = lock(&state);
                let hit = state.armed.filter(|(marker, _)| contains(piece, marker.as_bytes()));
                if hit.is_some() {
                    state.armed = None;
                    state.silenced.push(from.try_clone().expect("it can be cloned"));
                    state.silenced.push(to.try_clone().expect("it can be cloned"));
                }
                hit.map(|(_, fault)| fault)
            };
            *mine.lock().unwrap_or_else(PoisonError::into_inner) = fault;
            match fault {
                Some(Fault::Cut) => break,
                Some(Fault::Silence) => return,
                Some(Fault::CutAnswer) | None => {}
            }
            if to.write_all(piece).is_err() {
                break;
            }
        }
        // With `CutAnswer`, the other direction does it.
        if get(&mine) != Some(Fault::CutAnswer) {
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
        }
    });

    let (mut from, mut to) = (clone(server), clone(client));
    thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            match get(&struck) {
                Some(Fault::Silence) => return,
                Some(_) => break,
                None => {}
            }
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}

fn contains(piece: &[u8], marker: &[u8]) -> bool {
    piece.windows(marker.len()).any(|window| window == marker)
}
