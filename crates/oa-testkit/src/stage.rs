//! A running script: the next reply, the requests, the problems.

use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time;

use crate::act::Act;
use crate::reply::Reply;
use crate::requests::{Fate, Log, Request, RequestParts};
use crate::script::{Scene, Script};
use crate::story::Story;
use crate::wire::CREATED;

/// A running script, shared by its players.
pub(crate) struct Stage {
    changes: watch::Sender<u64>,
    script: Script,
    state: Mutex<State>,
    stopped: AtomicBool,
    told: AtomicBool,
}

#[derive(Default)]
struct State {
    chats: usize,
    connections: usize,
    log: Log,
    notes: Vec<String>,
    open: usize,
    /// The number of the request that got each reply.
    played: Vec<usize>,
    problems: Vec<String>,
}

impl Stage {
    pub(crate) fn new(script: Script) -> Arc<Self> {
        Arc::new(Self {
            changes: watch::Sender::new(0),
            script,
            state: Mutex::default(),
            stopped: AtomicBool::new(false),
            told: AtomicBool::new(false),
        })
    }

    /// Stores the request and decides how to respond.
    pub(crate) fn ask(self: &Arc<Self>, asked: RequestParts) -> (Act, Playing) {
        let request = self.state().log.push(asked);
        let act = self.act(&request);
        self.change();
        (act, Playing { request, stage: Arc::clone(self) })
    }

    fn act(&self, request: &Request) -> Act {
        let is_get = request.method() == Method::GET;
        // The script's own pages come first, so that a test can replace the list of models.
        let mut pages = self.script.pages.iter();
        let is_it = |(method, path, _): &&(Method, String, Reply)| {
            method == request.method() && path == request.path()
        };
        if let Some((method, path, reply)) = pages.find(is_it) {
            request.answered_by(format!("the reply to {method} {path}"));
            return self.ready(reply, request, 0);
        }
        match request.path() {
            MODELS if is_get => {
                request.answered_by("the list of models");
                self.ready(&self.models(), request, 0)
            }
            CHAT if request.method() == Method::POST => self.chat(request),
            CHAT | MODELS => self.refuse(request, 405, "method not allowed"),
            path => self.refuse(request, 404, format!("there is nothing at {path}")),
        }
    }

    fn chat(&self, request: &Request) -> Act {
        if !request.json().is_object() {
            self.problem(format!("request {} is not a JSON object", request.number()));
            return self.refuse(request, 400, "the body is not a JSON object");
        }
        // A refused request uses no reply, as on a real server: the client may correct it and ask again.
        if let Some(strict) = &self.script.strict
            && let Err(violations) = strict.check_bytes(request.body())
        {
            self.problem(format!("request {} is refused:\n{violations}", request.number()));
            let (message, kind) = (violations.to_string(), "invalid_request_error");
            let error = json!({
                "message": message, "type": kind, "param": violations[0].path(), "code": 400,
            });
            return self.refuse(request, 400, json!({ "error": error }));
        }

        let (number, scene) = {
            let mut state = self.state();
            state.chats += 1;
            let scene = self.script.scenes.get(state.played.len());
            if scene.is_some() {
                // Under the lock of the count, so that two requests at once get two replies.
                state.played.push(request.number());
            }
            (state.chats, scene)
        };
        let scene = match (scene, &self.script.otherwise) {
            (Some(scene), _) => {
                request.answered_by(format!("reply {number}"));
                scene
            }
            (None, Some(scene)) => {
                request.answered_by("the default reply");
                scene
            }
            (None, None) => {
                let (asked, had) = (request.number(), self.script.scenes.len());
                self.problem(format!("request {asked} came after the script had ended"));
                let message = format!("the script has ended: chat request {number} of {had}");
                return self.refuse(request, 500, message);
            }
        };

        self.check(scene, request);
        self.ready(&scene.reply, request, number)
    }

    /// Runs the user's closures, which may query the server, so the state must not be locked.
    fn check(&self, scene: &Scene, request: &Request) {
        for expectation in &scene.expectations {
            if let Some(complaint) = expectation.complaint(request) {
                self.problem(format!("request {} {complaint}", request.number()));
            }
        }
    }

    fn ready(&self, reply: &Reply, request: &Request, number: usize) -> Act {
        Act::new(reply, request, number).unwrap_or_else(|wrong| {
            self.problem(format!("request {} got no reply: {wrong}", request.number()));
            self.refuse(request, 500, "the script's rule returned no reply")
        })
    }

    fn refuse(&self, request: &Request, status: u16, error: impl Into<Value>) -> Act {
        request.answered_by(format!("status {status}"));
        Act::new(&Reply::error(status, error), request, 0).expect("the reply is not a rule")
    }

    fn models(&self) -> Reply {
        let model = |id: &String| {
            let (created, owner) = (CREATED, "oa-testkit");
            json!({ "id": id, "object": "model", "created": created, "owned_by": owner })
        };
        let models: Vec<_> = self.script.models.iter().map(model).collect();
        Reply::json(StatusCode::OK.as_u16(), json!({ "object": "list", "data": models }))
    }

    fn problem(&self, problem: String) {
        let mut state = self.state();
        if state.problems.len() < MAX_LINES {
            state.problems.push(problem);
        }
    }

    /// Adds a line to the story that is not a problem.
    pub(crate) fn note(&self, note: String) {
        let mut state = self.state();
        if state.notes.len() < MAX_LINES {
            state.notes.push(note);
        }
    }

    /// Counts a connection; returns its number and a guard that counts it as open.
    pub(crate) fn connect(self: &Arc<Self>) -> (usize, Connected) {
        let number = {
            let mut state = self.state();
            state.connections += 1;
            state.open += 1;
            state.connections
        };
        self.change();
        (number, Connected { stage: Arc::clone(self) })
    }

    /// Records that the server stops: from now on, responses end for that reason, not because clients leave.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(crate) fn connections(&self) -> usize {
        self.state().connections
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.state().open
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state().log.requests()
    }

    pub(crate) async fn wait_for_abort(&self, limit: Duration) -> Request {
        let aborted = |stage: &Self| stage.requests().into_iter().find(Request::aborted);
        self.wait(limit, "an abort", aborted).await
    }

    pub(crate) async fn wait_for_close(&self, limit: Duration) {
        let closed = |stage: &Self| (stage.open_connections() == 0).then_some(());
        self.wait(limit, "closing all connections", closed).await;
    }

    pub(crate) async fn wait_until<F>(&self, limit: Duration, mut condition: F)
    where
        F: FnMut(&[Request]) -> bool,
    {
        let holds = |stage: &Self| condition(&stage.requests()).then_some(());
        self.wait(limit, "the condition", holds).await;
    }

    /// Waits until `found` returns something; panics with the story after `limit`.
    async fn wait<T, F>(&self, limit: Duration, what: &str, mut found: F) -> T
    where
        F: FnMut(&Self) -> Option<T>,
    {
        let mut changes = self.changes.subscribe();
        let search = async {
            loop {
                // Marked as seen before the search: a change during it wakes the loop again. The other way
                // around, it would be lost.
                changes.borrow_and_update();
                if let Some(found) = found(self) {
                    return found;
                }
                changes.changed().await.expect("the sender is part of `self`");
            }
        };
        let found = time::timeout(limit, search).await;
        found.unwrap_or_else(|_| panic!("{what} took longer than {limit:?}\n{}", self.story()))
    }

    pub(crate) fn story(&self) -> String {
        let state = self.state();
        let requests = state.log.requests();
        let story = Story {
            forgotten: state.log.forgotten(),
            notes: &state.notes,
            played: &state.played,
            problems: &self.problems(&state),
            requests: &requests,
            script: &self.script,
        };
        story.to_string()
    }

    #[track_caller]
    pub(crate) fn verify(&self) {
        let problems = self.problems(&self.state());
        if !problems.is_empty() {
            // A failed `verify` is the test's failure: dropping the server must not repeat its story.
            self.told.store(true, Ordering::Release);
            panic!("the script was not played as written\n{}", self.story());
        }
    }

    fn problems(&self, state: &State) -> Vec<String> {
        let mut problems = state.problems.clone();
        for number in state.played.len()..self.script.scenes.len() {
            problems.push(format!("reply {} was never played", number + 1));
        }
        for expectation in &self.script.pending {
            problems.push(format!("{:?} matched no request", expectation.what));
        }
        problems
    }

    fn change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No panic under the lock leaves the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// User closures run without the lock, and their own state is theirs: tests may catch the panic of a story and
/// inspect the server.
impl RefUnwindSafe for Stage {}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Servers may be fields of clients, where the whole story would be too long.
        let asked = self.requests().len();
        f.debug_struct("Stage").field("requests", &asked).finish_non_exhaustive()
    }
}

/// The last outside owner of a stage; verifies on drop.
#[derive(Debug)]
pub(crate) struct Curtain {
    pub(crate) stage: Arc<Stage>,
}

impl Drop for Curtain {
    fn drop(&mut self) {
        // A panic while panicking would abort the process, and the story is not repeated.
        if !thread::panicking() && !self.stage.told.load(Ordering::Acquire) {
            self.stage.verify();
        }
    }
}

/// A response in progress. Dropping it before its end counts as an abort.
#[derive(Debug)]
pub(crate) struct Playing {
    request: Request,
    stage: Arc<Stage>,
}

impl Playing {
    /// Marks the response as complete.
    pub(crate) fn finish(&self) {
        self.end(Fate::Finished);
    }

    /// Marks the response as cut off by the script.
    pub(crate) fn cut(&self) {
        self.end(Fate::Cut);
    }

    fn end(&self, fate: Fate) {
        if self.request.end(fate) {
            self.stage.change();
        }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        let stopped = self.stage.stopped.load(Ordering::Acquire);
        self.end(if stopped { Fate::Cut } else { Fate::Aborted });
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connected {
    stage: Arc<Stage>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.stage.state().open -= 1;
        self.stage.change();
    }
}

const CHAT: &str = "/v1/chat/completions";
const MAX_LINES: usize = 100;
const MODELS: &str = "/v1/models";
