use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oa_contain::{Contained, contain};
use oa_executor::{Batch, ExecutorOptions, Placement, ToolEvent, TruncationPolicy};
use oa_hooks::{History, Permission, PermissionRequest};
use oa_mcp_data::client::{Origin, ServerLimits, failure};
use oa_tools::{ArgumentError, Cancel, State};
use oa_types::{Outcome, ToolUseBlock};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::tool_server::catalog::{About, Catalog};
use crate::tool_server::live::Live;
use crate::tool_server::output::Output;
use crate::tool_server::protocol::{Call, Protocol, Step, Subscription, Ticket};

/// The maximum number of queued emissions of one call. When the queue is full, the oldest are dropped.
const EMISSIONS: usize = 4_096;

type Decision = Pin<Box<dyn Future<Output = Permission> + Send>>;

/// The callback that decides whether a call may run.
#[derive(Clone)]
pub(crate) struct Permit(Arc<dyn Fn(PermissionRequest) -> Decision + Send + Sync>);

impl Permit {
    pub(crate) fn new<F, Fut>(permit: F) -> Self
    where
        F: Fn(PermissionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Permission> + Send + 'static,
    {
        let permit = Arc::new(permit);
        Self(Arc::new(move |request| {
            let permit = Arc::clone(&permit);
            // The closure is called within the future, so that its panic is caught, too.
            Box::pin(async move { permit(request).await })
        }))
    }
}

/// The part of a server that all clients share.
pub(crate) struct Runner {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) limits: ServerLimits,
    permit: Option<Permit>,
}

/// One client: the state of its conversation and its calls.
pub(crate) struct Connection {
    runner: Arc<Runner>,
    protocol: Mutex<Protocol>,
}

/// The reason why a call was refused, for the model.
struct Refused(String);

impl Runner {
    pub(crate) fn new(
        live: Arc<Live>,
        about: About,
        state: State,
        limits: ServerLimits,
        permit: Option<Permit>,
    ) -> Self {
        let mut options = ExecutorOptions::new()
            .truncation(TruncationPolicy::none())
            // A call continues while the client reads slowly.
            .placement(Placement::Spawned)
            .emission_queue(EMISSIONS);
        if let Some(time) = limits.call_time.filter(|time| !time.is_zero()) {
            options = options.timeout(time);
        }
        let catalog = Arc::new(Catalog::new(live, about, state, options));
        Self { catalog, limits, permit }
    }

    /// Prepares a call's input and asks for permission.
    async fn admit(&self, call: &Call, cancel: &Cancel) -> Result<(Value, Batch), Refused> {
        let batch = Batch::new().state(self.catalog.state.clone()).cancel(cancel.clone());
        let Some(permit) = &self.permit else {
            return Ok((call.input.clone(), batch));
        };
        let input = match prepare(call, call.input.clone())? {
            Ok(input) => input,
            // The executor writes the message.
            Err(error) => return Ok((call.input.clone(), batch.prepared(call.key(), Err(error)))),
        };
        let tool = call.offer.executor.tools().get(&call.tool);
        let spec = tool.and_then(|tool| contain(|| tool.spec()).ok());
        let category = tool.and_then(|tool| contain(|| tool.category().map(str::to_owned)).ok());
        let request =
            PermissionRequest::new(&*call.tool, input.clone(), call.key(), History::default())
                .with_tool(spec)
                .with_category(category.flatten());
        let decision = Contained::new((permit.0)(request)).await;
        let input = match decision {
            Ok(Permission::Allow) => input,
            Ok(Permission::AllowWith(input)) => match prepare(call, input)? {
                Ok(input) => input,
                Err(error) => {
                    return Ok((call.input.clone(), batch.prepared(call.key(), Err(error))));
                }
            },
            Ok(Permission::Deny(reason)) => {
                return Err(Refused(format!("permission denied: {reason}")));
            }
            Ok(_) => return Err(Refused("permission denied: no decision was made".to_owned())),
            Err(_) => {
                return Err(Refused("permission denied: the permission check failed".to_owned()));
            }
        };
        Ok((input, batch.prepared(call.key(), Ok(()))))
    }
}

fn prepare(call: &Call, input: Value) -> Result<Result<Value, ArgumentError>, Refused> {
    let Some(tool) = call.offer.executor.tools().get(&call.tool) else {
        return Err(Refused("there is no such tool".to_owned()));
    };
    contain(|| tool.prepare(input)).map_err(|_| Refused("the tool panicked".to_owned()))
}

impl Connection {
    pub(crate) fn new(runner: &Arc<Runner>) -> Self {
        let protocol = Protocol::new(Arc::clone(&runner.catalog), runner.limits.clone());
        Self { runner: Arc::clone(runner), protocol: Mutex::new(protocol) }
    }

    pub(crate) fn limits(&self) -> &ServerLimits {
        &self.runner.limits
    }

    pub(crate) fn receive(&self, bytes: &[u8], origin: Origin<'_>) -> Vec<Step> {
        self.protocol().receive(bytes, origin)
    }

    pub(crate) fn live(&self) -> &Live {
        &self.runner.catalog.live
    }

    /// Returns the subscribed notifications after this number, each with its number, and the number of the latest
    /// notification.
    pub(crate) fn news(&self, seen: u64) -> (Vec<(u64, String)>, u64) {
        let news = self.live().after(seen);
        let last = news.last().map_or(seen, |(number, _)| *number);
        let protocol = self.protocol();
        let wanted =
            news.iter().filter_map(|(number, news)| Some((*number, protocol.announce(news)?)));
        (wanted.collect(), last)
    }

    #[cfg(feature = "server-http")]
    pub(crate) fn is_ready(&self) -> bool {
        self.protocol().is_ready()
    }

    #[cfg(feature = "server-http")]
    pub(crate) fn is_busy(&self) -> bool {
        self.protocol().is_busy()
    }

    /// Cancels all running calls; each is answered with an error, as are later calls.
    pub(crate) fn end(&self) {
        let running = self.protocol().end();
        running.iter().for_each(Cancel::cancel);
    }

    /// Runs a call, and sends its notifications and its answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the call without an answer.
    pub(crate) async fn run<M: From<String>>(&self, call: Box<Call>, out: &mpsc::Sender<M>) {
        let open = Running { connection: self, ticket: &call.ticket };
        let answered = tokio::select! {
            biased;
            () = call.cancel.cancelled() => None,
            answer = self.perform(&call, out) => answer,
        };
        // A cancellation by the client has removed the call: it gets no answer.
        if !open.finish() {
            return;
        }
        let answer = answered
            .unwrap_or_else(|| call.unavailable("the call was canceled: the session has ended"));
        // Fails only if the client is gone.
        let _ = out.send(answer.into()).await;
    }

    /// Sends notifications of changes until the subscription is canceled, then answers it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the subscription without an answer.
    pub(crate) async fn listen<M: From<String>>(
        &self,
        subscription: Box<Subscription>,
        out: &mpsc::Sender<M>,
    ) {
        let open = Running { connection: self, ticket: &subscription.ticket };
        let live = self.live();
        // Before `last`, or a change between the two would be missed.
        let mut changes = live.subscribe();
        let mut seen = live.last();
        let telling = async {
            let mut next = Some(subscription.acknowledgment());
            loop {
                if let Some(notice) = next.take()
                    && out.send(notice.into()).await.is_err()
                {
                    return false;
                }
                tokio::select! {
                    biased;
                    changed = changes.changed() => if changed.is_err() { return true },
                    () = out.closed() => return false,
                }
                // All changes since the last notification are one: the list is read anew.
                for (number, news) in live.after(seen) {
                    seen = number;
                    next = subscription.notice(&news).or(next);
                }
            }
        };
        let is_ended = tokio::select! {
            biased;
            // Also while the client leaves its notifications unread.
            () = subscription.cancel.cancelled() => true,
            is_ended = telling => is_ended,
        };
        if is_ended && open.finish() {
            let end = out.send(subscription.end().into());
            let _ = tokio::time::timeout(self.limits().write_time, end).await;
        }
    }

    /// Returns the answer to a call; `None` if it was canceled.
    async fn perform<M: From<String>>(&self, call: &Call, out: &mpsc::Sender<M>) -> Option<String> {
        let runner = &*self.runner;
        let (input, batch) = match runner.admit(call, &call.cancel).await {
            Ok(admitted) => admitted,
            Err(Refused(why)) => return Some(call.answer(failure(&why))),
        };
        // Permission first: a user may take long to decide, and other calls must not wait for that.
        let turn = runner.catalog.turn(&call.offer, &call.tool).await;
        let calls = vec![ToolUseBlock::new(call.key(), &*call.tool, input)];
        let mut events = call.offer.executor.execute_batch_streaming(calls, batch);
        let mut output = Output::new(call);
        // The notices that the client has not made room for yet. Events are read all the same, because other calls
        // may wait for the end of this tool.
        let mut notices = VecDeque::new();
        let answer = loop {
            let event = tokio::select! {
                biased;
                room = out.reserve(), if !notices.is_empty() => {
                    let (Ok(room), Some(notice)) = (room, notices.pop_front()) else { return None };
                    room.send(M::from(notice));
                    continue;
                }
                event = events.next() => event?,
            };
            if let ToolEvent::CallComplete(result) = &event {
                // The executor may have seen the cancellation first.
                if result.outcome == Outcome::Cancelled {
                    return None;
                }
                let tool = call.offer.executor.tools().get(&call.tool);
                let schema = tool.and_then(|tool| contain(|| tool.output_schema()).ok().flatten());
                break output.answer(result, schema, runner.limits.result_bytes);
            }
            notices.extend(output.notice(&event));
            if notices.len() > EMISSIONS {
                notices.pop_front();
            }
        };
        drop((events, turn));
        for notice in notices {
            // A client that does not read loses notices, and not the answer.
            if out.send_timeout(notice.into(), runner.limits.write_time).await.is_err() {
                break;
            }
        }
        Some(answer)
    }

    fn protocol(&self) -> MutexGuard<'_, Protocol> {
        self.protocol.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open request. Dropping it frees its slot.
struct Running<'a> {
    connection: &'a Connection,
    ticket: &'a Ticket,
}

impl Running<'_> {
    fn finish(&self) -> bool {
        self.connection.protocol().finish(self.ticket)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
