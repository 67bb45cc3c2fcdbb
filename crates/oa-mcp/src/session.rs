use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use oa_mcp_data::{
    CallClock, CallReply, Expired, Hello, Host, HostRefusal, Ignoring, Patience, QuestionLimits,
    REFUSED, is_session_lost,
};
use oa_tools::ToolContext;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, CustomRequest, Implementation,
    ProtocolVersion, RequestId,
};
use rmcp::service::{
    Peer, PeerRequestOptions, RoleClient, RunningService, RxJsonRpcMessage, TxJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::child::LastWords;
use crate::error::{Error, ErrorKind};
use crate::link::{Call, Link, OUTGOING, Question, Setup, Ticket};
use crate::secrets::KnownSecrets;
use crate::server::{McpServer, Target};
use crate::stdio::at;

/// One session of a connection: from the handshake until either side ends it.
pub(crate) struct Session {
    pub(crate) link: Arc<Link>,
    pub(crate) hello: Hello,
    is_over_http: bool,
    peer: Peer<RoleClient>,
    /// Stops when this value is dropped.
    _service: RunningService<RoleClient, Handler>,
    carrier: Mutex<Option<JoinHandle<()>>>,
}

/// Closes a connection whose handshake was abandoned.
struct CloseOnDrop(Option<Arc<Link>>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(link) = self.0.take() {
            link.closing.cancel();
        }
    }
}

impl Session {
    /// Starts or reaches a server and completes the handshake.
    pub(crate) async fn open(
        server: &McpServer,
        secrets: Arc<KnownSecrets>,
        ignored: Arc<Ignoring>,
    ) -> Result<Self, Error> {
        let (outgoing_in, outgoing) = mpsc::channel(OUTGOING);
        let (forward, incoming) = mpsc::unbounded_channel();
        let limits = server.limits.clone();
        let questions = QuestionLimits {
            text_bytes: limits.description_bytes,
            schema_bytes: limits.schema_bytes,
            tokens: limits.sampling_tokens,
        };
        let setup = Setup {
            secrets,
            on_log: server.on_log.clone(),
            host: Host::new(&server.name, server.name_prefix(), questions, server.offers.clone()),
            begins_stateless: server.is_stateless,
            limits,
            ignored,
        };
        let link = Link::new(setup, outgoing_in, forward);
        let link = Arc::new(link);
        let words = Arc::new(LastWords::default());
        let carrier = match &server.target {
            Target::Stdio(spec) => {
                crate::stdio::start(spec, &link, outgoing, &words, server.on_stderr.clone())?
            }
            #[cfg(feature = "http")]
            Target::Http(spec) => {
                crate::http::start(spec, &link, outgoing, server.longest_pause())?
            }
        };
        let mut guard = CloseOnDrop(Some(Arc::clone(&link)));
        let wire = Wire { link: Arc::clone(&link), incoming };
        let capabilities = serde_json::from_value(link.host.capabilities()).unwrap_or_default();
        let shaking = rmcp::serve_client(Handler { capabilities }, wire);
        let shaken = match tokio::time::timeout(server.connect_timeout, shaking).await {
            Ok(shaken) => shaken.map_err(|error| {
                let said = link.secrets.get().excerpt(&error.to_string(), 300);
                format!("the handshake failed: {said}")
            }),
            Err(_) => {
                let message =
                    format!("no answer to the handshake within {:?}", server.connect_timeout);
                Err(words.add_to(message, &link))
            }
        };
        let service = shaken.map_err(|message| {
            // Does nothing if the connection has ended, which `rmcp` knows without the reason.
            link.end(Error::new(ErrorKind::Connect, message));
            let error = link.failure().unwrap_or_else(Link::closed).with_kind(ErrorKind::Connect);
            // Programs print why they cannot start, which is not always on standard error.
            let warnings = link.warnings().into_iter().filter(|_| error.code().is_none());
            warnings.fold(error.clone(), |error, warning| error.with_note(&warning))
        })?;
        guard.0 = None;
        let hello = link.hello_said().unwrap_or_default();
        let peer = service.peer().clone();
        let (is_over_http, carrier) = (!server.is_program(), Mutex::new(Some(carrier)));
        Ok(Self { link, hello, is_over_http, peer, _service: service, carrier })
    }

    /// Sends a request and waits for the JSON of its result, or for the questions that the server returns instead.
    ///
    /// `headers` repeat arguments, if the transport has headers. The timer runs while it waits. Dropping the future asks
    /// the server to cancel the request.
    pub(crate) async fn request(
        &self,
        method: &'static str,
        params: Value,
        headers: Vec<(String, String)>,
        cx: Option<ToolContext>,
        timer: &mut Timer,
    ) -> Result<CallReply, Error> {
        timer.go_on();
        let answer = self.exchange(method, params, headers, cx, timer).await;
        timer.pause();
        match answer {
            Ok(result) if self.hello.is_stateless() => {
                CallReply::read(method, result).map_err(Error::protocol)
            }
            answer => answer.map(CallReply::Complete),
        }
    }

    async fn exchange(
        &self,
        method: &'static str,
        params: Value,
        headers: Vec<(String, String)>,
        cx: Option<ToolContext>,
        timer: &mut Timer,
    ) -> Result<Value, Error> {
        // The call is in one of three places: in the ticket until `rmcp` sends the request, then in the link,
        // and after its answer or failure in neither. Dropping `Open` cancels it in the first two.
        let (reply, mut answer) = oneshot::channel();
        let beat = Arc::new(Notify::new());
        let written = Arc::new(AtomicBool::new(false));
        let cancel = cx.as_ref().map(|cx| cx.cancel().clone());
        let (sender, mut questions) = Questions::new(&self.link, cx.clone());
        let ticket = Ticket::new(Call {
            params,
            headers,
            reply,
            cx,
            questions: sender,
            beat: Arc::clone(&beat),
            token: None,
            written,
        });
        let mut request = CustomRequest::new(method, None);
        request.extensions.insert(ticket.clone());
        let request = ClientRequest::CustomRequest(request);
        let gone = || self.link.failure().unwrap_or_else(Link::closed).untaken(true);
        // Waits only for room in the queue of `rmcp`. If it is dropped here, there is nothing to cancel.
        let sent =
            self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let RequestId::Number(id) = sent.map_err(|_| gone())?.id else {
            return Err(Error::protocol("a request has an id that is not a number"));
        };
        let mut open =
            Open { link: &self.link, ticket: &ticket, id: Some(id), reason: "no longer wanted" };
        let Timer { patience, start, clock, is_heard, is_silent } = timer;
        let mut asking = self.link.asking.subscribe();
        // A question pauses the clocks of all calls: over a pipe, the call that it belongs to is a guess.
        clock.set_paused(*asking.borrow_and_update() > 0, start.elapsed());
        let cancelled = async {
            match &cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let ended = self.link.ended.cancelled();
        tokio::pin!(cancelled, ended);
        let mut has_ended = false;
        loop {
            let deadline = clock.deadline();
            let time = deadline.and_then(|(after, _)| start.checked_add(after));
            tokio::select! {
                biased;
                answer = &mut answer => {
                    open.id = None;
                    return answer.unwrap_or_else(|_| Err(gone()));
                }
                () = &mut ended, if !has_ended => {
                    // A request that `rmcp` had not sent when it ended will get no answer.
                    if ticket.take().is_some() {
                        return Err(gone());
                    }
                    has_ended = true;
                }
                () = &mut cancelled => {
                    open.reason = "interrupted";
                    return Err(Self::interrupted());
                }
                () = beat.notified() => {
                    clock.beat(start.elapsed());
                    *is_heard = true;
                }
                Ok(()) = asking.changed() => {
                    let is_asking = *asking.borrow_and_update() > 0;
                    clock.set_paused(is_asking, start.elapsed());
                }
                () = questions.answer() => {}
                () = at(time) => {
                    open.reason = "timeout";
                    // Without progress, a call may reach its total timeout first.
                    *is_silent = !*is_heard || matches!(deadline, Some((_, Expired::Silence)));
                    let message = match deadline {
                        Some((_, Expired::Silence)) => {
                            format!("the server was silent for {:?}", patience.silence)
                        }
                        _ => format!("the call took longer than {:?}", patience.total),
                    };
                    return Err(Error::new(ErrorKind::Timeout, message));
                }
            }
        }
    }

    /// Returns true if a server over HTTP has lost the session, and says so in the answer to a request. A tool with
    /// sessions of its own may say the same, so the server is asked with a ping.
    pub(crate) async fn is_lost(&self, error: &Error, timer: &mut Timer) -> bool {
        let tells = |error: &Error| {
            error.code().is_some()
                && !matches!(error.status(), Some(401 | 403))
                && is_session_lost(&error.to_string().into())
        };
        if !self.is_over_http || self.hello.is_stateless() || !tells(error) {
            return false;
        }
        let ping = self.request("ping", json!({}), Vec::new(), None, timer).await;
        ping.is_err_and(|refusal| refusal.is_untaken() || tells(&refusal))
    }

    pub(crate) fn interrupted() -> Error {
        Error::new(ErrorKind::Closed, "the call was interrupted")
    }

    /// Ends the connection without waiting for it.
    pub(crate) fn hang_up(&self) {
        self.link.closing.cancel();
    }

    /// Ends the connection and waits until it has been cleaned up.
    pub(crate) async fn close(&self) {
        self.hang_up();
        let carrier = self.carrier.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(carrier) = carrier {
            let _ = carrier.await;
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.hang_up();
    }
}

/// The timer of a call, across all of its requests.
pub(crate) struct Timer {
    patience: Patience,
    start: Instant,
    clock: CallClock,
    /// The server has reported progress.
    is_heard: bool,
    /// The call ended because the server was silent, and not in the middle of its work.
    pub(crate) is_silent: bool,
}

impl Timer {
    /// Creates a paused timer.
    pub(crate) fn new(patience: Patience) -> Self {
        let mut clock = CallClock::new(patience, Duration::ZERO);
        clock.set_paused(true, Duration::ZERO);
        Self { patience, start: Instant::now(), clock, is_heard: false, is_silent: false }
    }

    fn go_on(&mut self) {
        let now = self.start.elapsed();
        // Silence counts from each request of a call anew, only the total from its first one.
        self.clock.set_paused(false, now);
        self.clock.beat(now);
    }

    fn pause(&mut self) {
        self.clock.set_paused(true, self.start.elapsed());
    }
}

/// An open request. Dropping it cancels the request.
struct Open<'a> {
    link: &'a Link,
    ticket: &'a Ticket,
    id: Option<i64>,
    reason: &'static str,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.link.give_up(id, self.ticket, self.reason);
        }
    }
}

/// The questions that the server asks within one call. Dropping this refuses the open ones.
struct Questions<'a> {
    link: &'a Arc<Link>,
    cx: Option<ToolContext>,
    waiting: mpsc::Receiver<Question>,
    /// The question that is being answered.
    current: Option<(Value, Answering)>,
}

type Answering = Pin<Box<dyn Future<Output = Option<Result<Value, HostRefusal>>> + Send>>;

impl<'a> Questions<'a> {
    /// Creates a queue. There is a sender only for calls with a context: the others may not be asked anything.
    fn new(link: &'a Arc<Link>, cx: Option<ToolContext>) -> (Option<mpsc::Sender<Question>>, Self) {
        let (sender, waiting) =
            mpsc::channel(link.limits.questions.clamp(1, Semaphore::MAX_PERMITS));
        let sender = cx.is_some().then_some(sender);
        (sender, Self { link, cx, waiting, current: None })
    }

    /// Answers the next question. Never returns if no more can come.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the next call continues with the same answer.
    async fn answer(&mut self) {
        let (id, answering) = match &mut self.current {
            Some(current) => current,
            None => {
                let (Some(question), Some(cx)) = (self.waiting.recv().await, self.cx.clone())
                else {
                    return std::future::pending().await;
                };
                let Question { id, asked, cancel } = question;
                let link = Arc::clone(self.link);
                let answering = async move {
                    tokio::select! {
                        biased;
                        () = cancel.cancelled() => None,
                        answer = link.host.answer(asked, cx) => Some(answer),
                    }
                };
                self.current.insert((id, Box::pin(answering)))
            }
        };
        if let Some(answer) = answering.await {
            self.link.reply(id, answer);
        }
        self.current = None;
    }
}

impl Drop for Questions<'_> {
    fn drop(&mut self) {
        // Closed first, so that no question can arrive behind the ones that are refused here.
        self.waiting.close();
        let current = self.current.take().map(|(id, _)| id);
        let waiting = std::iter::from_fn(|| self.waiting.try_recv().ok()).map(|one| one.id);
        for id in current.into_iter().chain(waiting) {
            self.link.reply(&id, Err(HostRefusal::new(REFUSED, "the call has ended")));
        }
    }
}

/// The transport as `rmcp` sees it.
struct Wire {
    link: Arc<Link>,
    incoming: mpsc::UnboundedReceiver<RxJsonRpcMessage<RoleClient>>,
}

impl Transport<RoleClient> for Wire {
    type Error = Error;

    fn name() -> Cow<'static, str> {
        "oa-mcp".into()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        std::future::ready(self.link.send(item))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        tokio::select! {
            biased;
            // Never `None`: the link has the sender. First, so that `rmcp` gets what came before the end.
            message = self.incoming.recv() => message,
            () = self.link.ended.cancelled() => None,
        }
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.link.closing.cancel();
        Ok(())
    }
}

/// The client handler for `rmcp`. The [`Link`] answers all requests from the server.
#[derive(Clone)]
struct Handler {
    capabilities: ClientCapabilities,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("open-agent", env!("CARGO_PKG_VERSION"));
        let info = ClientConfig::new(self.capabilities.clone(), us);
        info.with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}
