use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oa_contain::{Contained, contain};
use oa_executor::{Batch, ExecutorOptions, Placement, ToolEvent, ToolExecutor, TruncationPolicy};
use oa_hooks::{History, Permission, PermissionRequest};
use oa_tools::{ArgumentError, Cancel};
use oa_types::{Outcome, ToolUseBlock};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::tool_server::catalog::Catalog;
use crate::tool_server::limits::ServerLimits;
use crate::tool_server::message::{UNAVAILABLE, answer, error};
use crate::tool_server::output::{Output, failure};
use crate::tool_server::protocol::{Call, Protocol, Step};

/// The emissions of one call that wait to be sent. When there are more, the oldest are dropped.
const EMISSIONS: usize = 4_096;

type Decision = Pin<Box<dyn Future<Output = Permission> + Send>>;

/// The callback that is asked before a call runs.
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
            // The closure is called in the future, too, where its panic is caught.
            Box::pin(async move { permit(request).await })
        }))
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}

/// The part of a server that all clients share.
pub(crate) struct Runner {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) limits: ServerLimits,
    executor: ToolExecutor,
    permit: Option<Permit>,
}

/// One client: the state of its conversation, and its calls.
pub(crate) struct Connection {
    runner: Arc<Runner>,
    protocol: Mutex<Protocol>,
}

/// The reason why a call does not run, for the model.
struct Refused(String);

impl Runner {
    pub(crate) fn new(catalog: Catalog, limits: ServerLimits, permit: Option<Permit>) -> Self {
        let mut options = ExecutorOptions::new()
            .truncation(TruncationPolicy::none())
            // A call runs on while the client reads slowly.
            .placement(Placement::Spawned)
            .emission_queue(EMISSIONS);
        if let Some(time) = limits.call_time.filter(|time| !time.is_zero()) {
            options = options.timeout(time);
        }
        let registry = catalog.registry().clone();
        // Only zeros are refused, and there are none.
        let executor = ToolExecutor::with_options(registry.clone(), options)
            .unwrap_or_else(|_| ToolExecutor::new(registry));
        Self { catalog: Arc::new(catalog), limits, executor, permit }
    }

    /// Prepares a call's input and asks for permission.
    async fn admit(&self, call: &Call, cancel: &Cancel) -> Result<(Value, Batch), Refused> {
        let batch = Batch::new().state(self.catalog.state.clone()).cancel(cancel.clone());
        let Some(permit) = &self.permit else {
            return Ok((call.input.clone(), batch));
        };
        let input = match self.prepare(&call.tool, call.input.clone())? {
            Ok(input) => input,
            // The executor words it.
            Err(error) => return Ok((call.input.clone(), batch.prepared(call.key(), Err(error)))),
        };
        let category = self
            .executor
            .tools()
            .get(&call.tool)
            .and_then(|tool| contain(|| tool.category().map(str::to_owned)).ok().flatten());
        let request =
            PermissionRequest::new(&*call.tool, input.clone(), call.key(), History::default())
                .with_category(category);
        let decision = Contained::new((permit.0)(request)).await;
        let input = match decision {
            Ok(Permission::Allow) => input,
            Ok(Permission::AllowWith(input)) => match self.prepare(&call.tool, input)? {
                Ok(input) => input,
                Err(error) => {
                    return Ok((call.input.clone(), batch.prepared(call.key(), Err(error))));
                }
            },
            Ok(Permission::Deny(reason)) => {
                return Err(Refused(format!("permission denied: {reason}")));
            }
            Ok(_) => return Err(Refused("permission denied: nobody has decided".to_owned())),
            Err(_) => {
                return Err(Refused("permission denied: the permission check failed".to_owned()));
            }
        };
        Ok((input, batch.prepared(call.key(), Ok(()))))
    }

    fn prepare(&self, tool: &str, input: Value) -> Result<Result<Value, ArgumentError>, Refused> {
        let Some(tool) = self.executor.tools().get(tool) else {
            return Err(Refused("there is no such tool".to_owned()));
        };
        contain(|| tool.prepare(input)).map_err(|_| Refused("the tool panicked".to_owned()))
    }
}

impl Connection {
    pub(crate) fn new(runner: &Arc<Runner>) -> Self {
        let protocol = Protocol::new(Arc::clone(&runner.catalog), runner.limits.clone());
        Self { runner: Arc::clone(runner), protocol: Mutex::new(protocol) }
    }

    pub(crate) fn limits(&self) -> &ServerLimits {
        &self.runner.limits
    }

    pub(crate) fn receive(&self, bytes: &[u8]) -> Vec<Step> {
        self.protocol().receive(bytes)
    }

    #[cfg(feature = "server-http")]
    pub(crate) fn is_ready(&self) -> bool {
        self.protocol().is_ready()
    }

    #[cfg(feature = "server-http")]
    pub(crate) fn is_busy(&self) -> bool {
        self.protocol().is_busy()
    }

    /// Ends all calls that run; each is answered with an error.
    pub(crate) fn end(&self) {
        let running = self.protocol().running();
        running.iter().for_each(Cancel::cancel);
    }

    /// Runs a call, and sends what it tells and its answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the call, which is then not answered.
    pub(crate) async fn run(&self, call: Box<Call>, out: &mpsc::Sender<String>) {
        let open = Running { connection: self, call: &call };
        let answered = tokio::select! {
            biased;
            () = call.cancel.cancelled() => None,
            answer = self.perform(&call, out) => answer,
        };
        // The client's own cancellation has removed the call: then nothing is answered.
        if !open.finish() {
            return;
        }
        let answer = answered.unwrap_or_else(|| {
            error(&call.id, UNAVAILABLE, "the call was canceled: the session has ended")
        });
        // Nobody is left to read it.
        let _ = out.send(answer).await;
    }

    /// Returns the answer to a call; `None` if it was canceled.
    async fn perform(&self, call: &Call, out: &mpsc::Sender<String>) -> Option<String> {
        let runner = &*self.runner;
        let _turn = runner.catalog.turn(&call.tool).await;
        let (input, batch) = match runner.admit(call, &call.cancel).await {
            Ok(admitted) => admitted,
            Err(Refused(why)) => return Some(answer(&call.id, &failure(&why))),
        };
        let calls = vec![ToolUseBlock::new(call.key(), &*call.tool, input)];
        let mut events = runner.executor.execute_batch_streaming(calls, batch);
        let mut output = Output::new(call);
        while let Some(event) = events.next().await {
            if let ToolEvent::CallComplete(result) = &event {
                // The executor may see it first.
                if result.outcome == Outcome::Cancelled {
                    return None;
                }
                let tool = runner.executor.tools().get(&call.tool);
                let schema = tool.and_then(|tool| contain(|| tool.output_schema()).ok().flatten());
                return Some(output.answer(result, schema, runner.limits.result_bytes));
            }
            if let Some(notice) = output.notice(&event)
                && out.send(notice).await.is_err()
            {
                break;
            }
        }
        None
    }

    fn protocol(&self) -> MutexGuard<'_, Protocol> {
        self.protocol.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that runs; dropping it frees its place.
struct Running<'a> {
    connection: &'a Connection,
    call: &'a Call,
}

impl Running<'_> {
    fn finish(&self) -> bool {
        self.connection.protocol().finish(&self.call.ticket)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
