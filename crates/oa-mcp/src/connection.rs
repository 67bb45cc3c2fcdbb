use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use oa_mcp_data::client::HEADER_MISMATCH;
use oa_mcp_data::{
    Approval, CallReply, Hello, HostRequest, Ignored, Ignoring, Limits, Patience, Pins, Relisting,
    Restarts, Round, RoundError, RoundLimits, Rounds, ToolDescription, ToolOrigin, UnconfirmedTool,
};
use oa_redact::Secrets;
use oa_tools::{Cancel, ToolContext};
use serde_json::{Value, json};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::{Instant, timeout};

use crate::error::{Error, ErrorKind};
use crate::secrets::KnownSecrets;
use crate::server::McpServer;
use crate::session::{Session, Timer};

/// The number of consecutive calls without an answer after which the server is restarted.
const SILENT_CALLS: u32 = 3;

/// The connection to one server, shared by all its tools and calls.
///
/// If a server dies, the next call restarts it; until then its tools stay offered.
pub struct Connection {
    /// A reference to this value for the tasks that follow the list.
    me: Weak<Self>,
    server: McpServer,
    secrets: Arc<KnownSecrets>,
    live: Mutex<Live>,
    permits: Semaphore,
    /// Limits the open questions in the stateless version, which returns questions instead of a result.
    questions: Semaphore,
    silent: AtomicU32,
    closed: Cancel,
    tools: watch::Sender<Arc<[Arc<ToolDescription>]>>,
    /// Held while the list is read again, so that an older one does not replace a newer one.
    reloading: Mutex<()>,
    /// Counts the changes of the list.
    revision: AtomicU64,
    warnings: std::sync::Mutex<Vec<String>>,
    ignored: Arc<Ignoring>,
    approval: std::sync::Mutex<Approval>,
}

#[derive(Default)]
struct Live {
    session: Option<Arc<Session>>,
    restarts: Restarts,
}

impl Connection {
    /// Connects to a server and reads its list of tools.
    pub(crate) async fn open(server: McpServer) -> Result<Arc<Self>, Error> {
        let name = server.name.clone();
        server.check()?;
        let began = Instant::now();
        let this = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            secrets: Arc::new(KnownSecrets::new(server.secrets())),
            live: Mutex::default(),
            permits: Semaphore::new(server.limits.calls.clamp(1, Semaphore::MAX_PERMITS)),
            questions: Semaphore::new(server.limits.questions.clamp(1, Semaphore::MAX_PERMITS)),
            silent: AtomicU32::new(0),
            closed: Cancel::new(),
            tools: watch::Sender::new(Arc::default()),
            reloading: Mutex::default(),
            revision: AtomicU64::new(0),
            warnings: std::sync::Mutex::default(),
            ignored: Arc::default(),
            approval: std::sync::Mutex::new(Approval::new(server.pins.clone())),
            server,
        });
        let (secrets, ignored) = (Arc::clone(&this.secrets), Arc::clone(&this.ignored));
        let session = Session::open(&this.server, secrets, ignored).await;
        let session = Arc::new(session.map_err(|error| error.of(&name))?);
        // If the list changes while it is read, it is read again.
        let changes = session.link.changes.subscribe();
        let left = this.server.connect_timeout.saturating_sub(began.elapsed());
        let listed = timeout(left, this.list(&session)).await.unwrap_or_else(|_| {
            let time = this.server.connect_timeout;
            let message = format!("the server did not list its tools within {time:?}");
            Err(Error::new(ErrorKind::Connect, message))
        });
        let tools = listed.map_err(|error| match error.kind() {
            ErrorKind::Config => error.of(&name),
            _ => error.with_kind(ErrorKind::Connect).of(&name),
        })?;
        this.tools.send_replace(tools);
        this.watch_list(&session, changes);
        this.live.lock().await.session = Some(session);
        Ok(this)
    }

    /// Returns the server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.server.name
    }

    /// Returns the server's instructions, bounded; `None` if it sent none or is not running.
    ///
    /// They are not added to any prompt.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn instructions(&self) -> Option<String> {
        let live = self.live.lock().await;
        live.session.as_ref().and_then(|session| session.hello.instructions.clone())
    }

    /// Returns the warnings: problems that did not cause an error, such as tools that were left out or output that is
    /// not a message.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.kept_warnings().clone();
        // A call that restarts the server holds the lock; its warnings are already kept.
        if let Ok(live) = self.live.try_lock()
            && let Some(session) = &live.session
        {
            warnings.extend(session.link.warnings());
        }
        warnings
    }

    /// Returns the counts of ignored server output, over all starts. The first line that is not a message is also in
    /// [`warnings`](Self::warnings).
    #[must_use]
    pub fn ignored(&self) -> Ignored {
        self.ignored.counts()
    }

    /// Returns the pins of the approved tools, to store for the next connection; `None` if the server has
    /// [no pins](McpServer::pins).
    #[must_use]
    pub fn pins(&self) -> Option<Pins> {
        self.approval().pins().cloned()
    }

    /// Returns the tools that are left out because they differ from their pins, or have none.
    #[must_use]
    pub fn unconfirmed(&self) -> Vec<UnconfirmedTool> {
        self.approval().unconfirmed().to_vec()
    }

    /// Pins a tool as [`unconfirmed`](Self::unconfirmed) shows it, and offers it from now on.
    ///
    /// The list is read again; a tool that has changed in between stays left out.
    ///
    /// # Errors
    ///
    /// `Config` if the tool is not waiting to be confirmed, or has changed since it was shown; otherwise those of a call.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the tool pinned, but not offered until the list changes.
    pub async fn confirm(&self, tool: &UnconfirmedTool) -> Result<(), Error> {
        let confirmed = self.approval().confirm(tool);
        confirmed.map_err(|refusal| Error::config(refusal).of(self.name()))?;
        let session = self.session().await.map_err(|error| error.of(self.name()))?;
        self.reload(&session).await.map(drop).map_err(|error| error.of(self.name()))
    }

    /// Sends a protocol request and returns the JSON of its result, for requests that have no method here, such as
    /// `completion/complete`.
    ///
    /// # Errors
    ///
    /// `Config` if `params` is neither an object nor null, or its `_meta` is not an object. Otherwise those of a call:
    /// errors of the connection, or the server's error with kind [`Rejected`](ErrorKind::Rejected).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future asks the server to cancel the request.
    pub async fn request(&self, method: &'static str, params: Value) -> Result<Value, Error> {
        let is_valid = params.is_null() || params.is_object();
        if !is_valid || params.get("_meta").is_some_and(|meta| !meta.is_object()) {
            let message = "the parameters of a request, and their _meta, must be JSON objects";
            return Err(Error::config(message).of(self.name()));
        }
        self.send(method, params, None).await.map_err(|error| error.of(self.name()))
    }

    pub(crate) fn secrets(&self) -> Arc<Secrets> {
        self.secrets.get()
    }

    pub(crate) fn server(&self) -> &McpServer {
        &self.server
    }

    pub(crate) fn tools(&self) -> Arc<[Arc<ToolDescription>]> {
        Arc::clone(&self.tools.borrow())
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<[Arc<ToolDescription>]>> {
        self.tools.subscribe()
    }

    /// Calls a tool by its name on the server.
    pub(crate) async fn call(
        &self,
        tool: &str,
        input: Value,
        cx: &ToolContext,
    ) -> Result<Value, Error> {
        let is_it =
            |known: &Arc<ToolDescription>| known.of == ToolOrigin::Server && known.raw_name == tool;
        if !self.tools.borrow().iter().any(is_it) {
            let message = "the server no longer has this tool";
            return Err(Error::new(ErrorKind::Rejected, message));
        }
        let params = json!({ "name": tool, "arguments": input });
        self.send("tools/call", params, Some(cx.clone())).await
    }

    pub(crate) async fn send(
        &self,
        method: &'static str,
        params: Value,
        cx: Option<ToolContext>,
    ) -> Result<Value, Error> {
        // A request made by the program is not a tool call.
        let about = cx.clone().unwrap_or_else(|| ToolContext::new(method, method));
        let cancelled = about.cancel().cancelled();
        tokio::select! {
            biased;
            // First, so that an open request can send the server the reason.
            answer = self.converse(method, params, cx, &about) => answer,
            () = cancelled => Err(Session::interrupted()),
        }
    }

    /// Sends a request, and sends it again with the answers for as long as the server returns questions.
    async fn converse(
        &self,
        method: &'static str,
        mut params: Value,
        cx: Option<ToolContext>,
        about: &ToolContext,
    ) -> Result<Value, Error> {
        // Held for all rounds of the call, also while its questions are answered.
        let _permit = self.permits.acquire().await.map_err(|_| crate::link::Link::closed())?;
        let Limits { rounds, questions, state_bytes, .. } = self.server.limits;
        let mut rounds = Rounds::new(RoundLimits { rounds, questions, state_bytes });
        let mut timer = Timer::new(self.patience());
        let first = self.exchange(method, &params, cx.as_ref(), &mut timer).await;
        let (mut session, mut reply) = match first {
            Err(error) if cx.is_some() && error.pages().is_some() => {
                self.visit(error, about).await?;
                self.exchange(method, &params, cx.as_ref(), &mut timer).await?
            }
            first => first?,
        };
        loop {
            let asked = match reply {
                CallReply::Complete(result) => return Ok(result),
                CallReply::Asks(asked) => asked,
            };
            let round = rounds.begin(asked, &session.link.host).map_err(|error| match error {
                RoundError::Limit(why) => Error::limit(why),
                RoundError::Protocol(why) => Error::protocol(why),
            })?;
            self.answer(&session, round, about, &mut params).await?;
            (session, reply) = self.exchange(method, &params, cx.as_ref(), &mut timer).await?;
            if !session.hello.is_stateless() {
                let why = "the server changed its protocol version after it asked for input";
                return Err(Error::protocol(why));
            }
        }
    }

    /// Has the questions of a round answered in sequence.
    async fn answer(
        &self,
        session: &Session,
        mut round: Round,
        cx: &ToolContext,
        params: &mut Value,
    ) -> Result<(), Error> {
        while let Some(question) = round.next_question() {
            round.answer(self.ask(session, question, cx).await?);
        }
        tokio::time::sleep(round.wait()).await;
        round.finish(params);
        Ok(())
    }

    async fn ask(
        &self,
        session: &Session,
        question: HostRequest,
        cx: &ToolContext,
    ) -> Result<Value, Error> {
        let _permit = self.questions.acquire().await.map_err(|_| crate::link::Link::closed())?;
        let answered = session.link.host.answer_in_round(question, cx.clone()).await;
        let (answer, warning) = answered.map_err(|refusal| {
            let why = session.link.secrets.get().excerpt(&refusal.message, 300);
            let why = format!("the server's request to a model was refused: {why}");
            Error::new(ErrorKind::Refused, why)
        })?;
        if let Some(why) = warning {
            let why = session.link.secrets.get().excerpt(&why, 300);
            session.link.warn(format!("a question from the server was not answered: {why}"));
        }
        Ok(answer)
    }

    /// Asks the user to visit the pages that a call requires, and waits until they were visited. If there is no
    /// callback or a page is not accepted, returns the call's error.
    async fn visit(&self, error: Error, cx: &ToolContext) -> Result<(), Error> {
        let has_callback = self.server.offers.on_elicitation.is_some();
        let Some(pages) = error.pages().filter(|_| has_callback) else { return Err(error) };
        let session = match self.session().await {
            // The stateless version has no such error: its servers ask with a result.
            Ok(session) if !session.hello.is_stateless() => session,
            _ => return Err(error),
        };
        let link = &session.link;
        let Limits { questions, state_bytes, .. } = self.server.limits;
        let mut rounds = Rounds::new(RoundLimits { rounds: 1, questions, state_bytes });
        let mut round = match rounds.begin(pages.questions(), &link.host) {
            Ok(round) => round,
            Err(RoundError::Limit(why) | RoundError::Protocol(why)) => {
                link.warn(format!("pages that a call requires were not shown: {why}"));
                return Err(error);
            }
        };
        while let Some(question) = round.next_question() {
            round.answer(self.ask(&session, question, cx).await?);
            if !round.is_accepted() {
                return Err(error.with_note("this was not accepted"));
            }
        }
        // The user has agreed, but may not have been there yet. Servers need not report the visit.
        let mut visits = link.visits.subscribe();
        let visited = visits.wait_for(|visits| pages.are_visited(visits));
        let _ = timeout(self.server.call_timeout, visited).await;
        Ok(())
    }

    /// Returns true if arguments are repeated in headers.
    pub(crate) fn mirrors(&self, session: &Session) -> bool {
        session.hello.is_stateless() && !self.server.is_program()
    }

    /// Returns the headers that repeat the arguments of a call; `None` if the tool is not offered.
    fn headers(&self, method: &str, params: &Value) -> Option<Vec<(String, String)>> {
        let name = params.get("name").filter(|_| method == "tools/call")?.as_str()?;
        let tools = self.tools();
        let tool =
            tools.iter().find(|tool| tool.of == ToolOrigin::Server && tool.raw_name == name)?;
        Some(tool.mirrored.headers(&params["arguments"]))
    }

    /// Sends a request, and repeats it once if the server did not accept it. Returns the session that was used.
    async fn exchange(
        &self,
        method: &'static str,
        params: &Value,
        cx: Option<&ToolContext>,
        timer: &mut Timer,
    ) -> Result<(Arc<Session>, CallReply), Error> {
        let (mut is_first, mut may_list) = (true, true);
        loop {
            let session = self.session().await?;
            let headers = self.headers(method, params);
            let said = headers.clone().unwrap_or_default();
            let answer = session.request(method, params.clone(), said, cx.cloned(), timer).await;
            if let Err(error) = &answer
                && error.code() == Some(HEADER_MISMATCH)
                && may_list
                && self.mirrors(&session)
            {
                // The server did not run the call: its tool may have other headers than when it was listed.
                may_list = false;
                let _ = self.reload(&session).await;
                let now = self.headers(method, params);
                if now.is_some() && now != headers {
                    continue;
                }
            }
            match &answer {
                // The request never reached the server, or its session was lost.
                Err(error)
                    if is_first && (error.is_untaken() || session.is_lost(error, timer).await) =>
                {
                    is_first = false;
                    // Others may still wait for answers there: the last of them drops and closes it.
                    session.link.retire();
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Timeout && timer.is_silent => {
                    if self.silent.fetch_add(1, Ordering::Relaxed) + 1 >= SILENT_CALLS {
                        session.hang_up();
                    }
                }
                _ => self.silent.store(0, Ordering::Relaxed),
            }
            return answer.map(|reply| (session, reply));
        }
    }

    /// Returns the open session; restarts the server if it has died.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Error> {
        // Held while the server starts, so that calls which find it dead share one start. If the call that
        // starts it is dropped, the next in line begins anew.
        let mut live = self.live.lock().await;
        if self.closed.is_cancelled() {
            return Err(crate::link::Link::closed());
        }
        if let Some(session) = &live.session
            && session.link.is_usable()
        {
            return Ok(Arc::clone(session));
        }
        let Limits { restarts, restart_delay, .. } = self.server.limits;
        // Before the attempt, so that failed and canceled starts count, too.
        let delay = live.restarts.begin(Instant::now().into_std(), restarts, restart_delay);
        let delay = delay.map_err(|count| {
            let what = if self.server.is_program() { "was restarted" } else { "was not reached" };
            let message = format!("the server {what} {count} times within five minutes");
            Error::new(ErrorKind::Closed, message)
        })?;
        if let Some(dead) = live.session.take() {
            self.keep_warnings(dead.link.warnings());
        }
        let opening = async {
            if self.server.is_program() {
                tokio::time::sleep(delay).await;
            }
            Session::open(&self.server, Arc::clone(&self.secrets), Arc::clone(&self.ignored)).await
        };
        let opened = tokio::select! {
            biased;
            // `close` waits for the lock that is held here.
            () = self.closed.cancelled() => Err(crate::link::Link::closed()),
            opened = opening => opened,
        };
        let session = opened.map_err(|error| error.untaken(false))?;
        if !self.server.is_program() {
            // A server may forget its sessions as often as it likes.
            live.restarts.forgive();
        }
        let session = Arc::new(session);
        live.session = Some(Arc::clone(&session));
        let mut changes = session.link.changes.subscribe();
        // Another process may have other tools, so the list is read as after a notification.
        changes.mark_changed();
        self.watch_list(&session, changes);
        self.silent.store(0, Ordering::Relaxed);
        Ok(session)
    }

    /// Reads the list again whenever the server announces a change.
    fn watch_list(&self, session: &Arc<Session>, mut changes: watch::Receiver<u64>) {
        let ended = session.link.ended.cancelled();
        let (this, session) = (Weak::clone(&self.me), Arc::downgrade(session));
        tokio::spawn(async move {
            tokio::select! {
                () = ended => {}
                () = follow(&mut changes, &this, &session) => {}
            }
        });
    }

    /// Reads the list of tools again, and returns true if it has changed.
    async fn reload(&self, session: &Session) -> Result<bool, Error> {
        let _turn = self.reloading.lock().await;
        let tools = self.list(session).await?;
        Ok(self.tools.send_if_modified(|known| {
            let is_other = *known != tools;
            *known = tools;
            // After the list, so that a reader of the new revision sees the new list.
            self.revision.fetch_add(u64::from(is_other), Ordering::Release);
            is_other
        }))
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    pub(crate) fn approval(&self) -> MutexGuard<'_, Approval> {
        self.approval.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the server's information about itself; restarts the server if it has died.
    pub(crate) async fn hello(&self) -> Result<Hello, Error> {
        Ok(self.session().await?.hello.clone())
    }

    pub(crate) fn patience(&self) -> Patience {
        Patience::new(self.server.call_timeout, self.server.max_call_time)
    }

    /// Closes the connection permanently and waits until the program or session has ended.
    pub(crate) async fn close(&self) {
        self.closed.cancel();
        let session = self.live.lock().await.session.take();
        if let Some(session) = session {
            self.keep_warnings(session.link.warnings());
            session.close().await;
        }
    }

    fn kept_warnings(&self) -> MutexGuard<'_, Vec<String>> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keep_warnings(&self, warnings: Vec<String>) {
        let mut kept = self.kept_warnings();
        for warning in warnings {
            if kept.len() < self.server.limits.warnings && !kept.contains(&warning) {
                kept.push(warning);
            }
        }
    }
}

/// Reloads the list after notifications of changes.
async fn follow(
    changes: &mut watch::Receiver<u64>,
    connection: &Weak<Connection>,
    session: &Weak<Session>,
) {
    let mut relisting = Relisting::default();
    while changed(changes, &relisting).await {
        let (Some(this), Some(session)) = (connection.upgrade(), session.upgrade()) else { return };
        let has_changed = this.reload(&session).await.unwrap_or_else(|error| {
            session.link.warn(format!("the list of tools could not be reloaded: {error}"));
            false
        });
        relisting.read(has_changed);
    }
}

/// Waits for a notification, and until the list is to be read; returns false after the last one.
async fn changed(changes: &mut watch::Receiver<u64>, relisting: &Relisting) -> bool {
    let has_changed = changes.changed().await.is_ok();
    let pause = relisting.pause();
    let burst = async { while let Ok(Ok(())) = timeout(pause, changes.changed()).await {} };
    let _ = timeout(relisting.longest(), burst).await;
    has_changed
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.server)
            .field("tools", &self.tools.borrow().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn list_is_read_while_notices_go_on() {
        let (notices, mut changes) = watch::channel(0);
        let relisting = Relisting::default();
        let began = Instant::now();
        let storm = async {
            loop {
                notices.send_modify(|count| *count += 1);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            is_open = changed(&mut changes, &relisting) => assert!(is_open),
            () = storm => {}
        }
        assert_eq!(began.elapsed(), relisting.longest());

        notices.send_modify(|count| *count += 1);
        let began = Instant::now();
        assert!(changed(&mut changes, &relisting).await);
        assert_eq!(began.elapsed(), relisting.pause());
        drop(notices);
        assert!(!changed(&mut changes, &relisting).await);
    }
}
