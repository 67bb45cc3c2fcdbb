use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::iter;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use oa_contain::contain;
use oa_tools::{Cancel, Cancelled, Tool, ToolContext};
use oa_types::{ToolUseBlock, micros};
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::attempt::Job;
use crate::batch::Batch;
use crate::cache::Key;
use crate::ended::Ended;
use crate::event::{CallStart, ToolEvent, ToolsEnd};
use crate::executor::ToolExecutor;
use crate::metrics::BatchMetrics;
use crate::options::ExecutionMode;
use crate::queue::{EventQueue, QueuedEvent, Sender};
use crate::rate::Slot;
use crate::result::ExecutionResult;
use crate::running::RunningTasks;
use crate::schedule::Schedule;
use crate::store::{READ_RESULT, ResultStore, reading_hint};

/// The events of a batch, returned by [`ToolExecutor::execute_batch_streaming`].
///
/// Yields `tool_call_start`, emissions of the tool and `tool_call_complete` for each call, and `tools_end`
/// last. A slow reader slows tools down and loses their oldest emissions when the queue is full; events of the
/// executor itself, such as `tool_retry`, are never lost. Panics of tools, policies and callbacks are
/// contained.
///
/// # Cancel safety
///
/// Dropping a pending [`next`](Self::next) loses nothing: the next call resumes. Dropping the stream cancels
/// the running calls: their contexts are signaled, then their futures dropped, all before `drop` returns (for
/// tasks, see [`Placement`](crate::Placement)). Handlers on the blocking pool are signaled but cannot be
/// stopped.
#[must_use = "streams do nothing unless polled"]
pub struct BatchStream {
    executor: ToolExecutor,
    batch: Batch,
    calls: Vec<Call>,
    schedule: Schedule,
    queue: Arc<EventQueue>,
    running: RunningTasks,
    /// The next call, delayed by the call rate.
    delayed: Option<Box<Delayed>>,
    /// The batch's own signal, a child of the caller's.
    cancel: Cancel,
    cancelled: Cancelled,
    /// Events for the reader.
    out: VecDeque<ToolEvent>,
    /// Results in order of completion.
    ended: Vec<Arc<ExecutionResult>>,
    metrics: BatchMetrics,
    started: Option<Instant>,
    is_over: bool,
}

struct Call {
    block: ToolUseBlock,
    result: Option<Arc<ExecutionResult>>,
    /// The cache key for its result.
    key: Option<Key>,
}

/// A call that is ready to run but delayed by the call rate.
struct Delayed {
    place: usize,
    start: ToolEvent,
    job: Job,
    slot: Slot,
    pause: Pin<Box<Sleep>>,
}

impl ToolExecutor {
    /// Runs a batch of calls and returns its events as a stream.
    ///
    /// Nothing runs before the stream is polled. Timeouts, delays, blocking handlers and
    /// [spawned](crate::Placement::Spawned) tools need a tokio runtime.
    pub fn execute_batch_streaming(&self, calls: Vec<ToolUseBlock>, batch: Batch) -> BatchStream {
        BatchStream::new(self.clone(), calls, batch)
    }
}

impl BatchStream {
    fn new(executor: ToolExecutor, calls: Vec<ToolUseBlock>, batch: Batch) -> Self {
        let options = executor.options();
        let is_barrier = |call: &ToolUseBlock| {
            options.mode == ExecutionMode::Sequential
                || executor
                    .tools()
                    .get(&call.name)
                    // A tool that panics here runs alone, which is never wrong.
                    .is_some_and(|tool| contain(|| tool.is_exclusive()).unwrap_or(true))
        };
        // Servers repeat ids, so an id stands for every call that has it. Dependencies are acyclic over ids,
        // and therefore over calls, as `Schedule::new` requires.
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        if !batch.dependencies.is_empty() {
            for (place, call) in calls.iter().enumerate() {
                places.entry(&call.id).or_default().push(place);
            }
        }
        let after = |call: &ToolUseBlock| {
            let on = batch.dependencies.of(&call.id).iter();
            on.filter_map(|dependency| places.get(&*dependency.on)).flatten().copied().collect()
        };
        let barriers = calls.iter().map(is_barrier).collect();
        let after = calls.iter().map(after).collect();
        let mut schedule = Schedule::new(barriers, after, options.max_parallel);
        // A call that is alone needs no limit.
        if calls.len() > 1 {
            let mut of_tool: HashMap<&str, Vec<usize>> = HashMap::new();
            for (place, call) in calls.iter().enumerate() {
                of_tool.entry(&call.name).or_default().push(place);
            }
            for (name, places) in of_tool {
                // If asking for the limit panics, allow one call at a time.
                let most =
                    |tool: &Arc<dyn Tool>| contain(|| tool.max_parallel()).unwrap_or(Some(1));
                if let Some(most) = executor.tools().get(name).and_then(most) {
                    schedule.cap(places, most);
                }
            }
        }
        let queue = Arc::new(EventQueue::new(calls.len(), options.emission_queue));
        let running = RunningTasks::new(Arc::clone(&queue), options.placement);
        let cancel = batch.cancel.child();
        Self {
            batch,
            calls: calls.into_iter().map(|block| Call { block, result: None, key: None }).collect(),
            schedule,
            queue,
            running,
            delayed: None,
            cancelled: cancel.cancelled(),
            cancel,
            out: VecDeque::new(),
            ended: Vec::new(),
            metrics: BatchMetrics::default(),
            started: None,
            is_over: false,
            executor,
        }
    }

    /// Waits for the next event; `None` after `tools_end`.
    ///
    /// # Panics
    ///
    /// If polled outside a tokio runtime, or in one without time enabled.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ToolEvent> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Waits for the end of the batch, discarding all other events.
    ///
    /// # Panics
    ///
    /// The same as [`next`](Self::next).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the stream, which cancels the batch.
    pub async fn end(mut self) -> ToolsEnd {
        while let Some(event) = self.next().await {
            if let ToolEvent::End(end) = event {
                return end;
            }
        }
        self.tools_end()
    }

    /// Returns the results of the calls that have ended, in order of completion, whether or not their events were read.
    #[must_use]
    pub fn results(&self) -> &[Arc<ExecutionResult>] {
        &self.ended
    }

    /// Cancels the batch: running calls are dropped, waiting calls never start, and both complete as canceled.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns the signal that cancels the batch.
    #[must_use]
    pub fn cancel_signal(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Starts a call, which runs, waits for the rate limit, or ends immediately.
    fn begin(&mut self, place: usize) {
        let prepared = self.prepare(place);
        // Created after preparing, so that the event shows the input that runs.
        let start = self.start_event(place);
        // A refusal on the way is a result like any other: the call still gets its start and its completion.
        let admitted = prepared.and_then(|tool| self.admit(place, tool));
        let (job, slot) = match admitted.and_then(|job| self.reserve(job)) {
            Ok(ready) => ready,
            Err(ended) => {
                self.out.push_back(start);
                return self.complete(place, *ended);
            }
        };
        match slot {
            Some(slot) if slot.begin() > Instant::now() => {
                let pause = Box::pin(sleep_until(slot.begin()));
                // The schedule counts the call as running, but its start event waits with it. Nothing else
                // begins until it runs, because later calls would only get later slots.
                self.delayed = Some(Box::new(Delayed { place, start, job, slot, pause }));
            }
            slot => self.run(place, start, job, slot),
        }
    }

    /// Reserves a start time, if there is a call rate. A call that could not start before the end of its run is
    /// not run.
    fn reserve(&self, job: Job) -> Result<(Job, Option<Slot>), Box<Ended>> {
        let Some(rate) = &self.executor.options().rate else { return Ok((job, None)) };
        let slot = rate.reserve(Instant::now());
        if job.deadline.is_some_and(|deadline| deadline <= slot.begin()) {
            let calls = match rate.calls() {
                1 => "1 call".to_owned(),
                calls => format!("{calls} calls"),
            };
            let reason = format!(
                "the rate limit of {calls} per minute would delay the call past the time limit of the run"
            );
            return Err(Ended::not_run(reason));
        }
        Ok((job, Some(slot)))
    }

    fn run(&mut self, place: usize, start: ToolEvent, mut job: Job, slot: Option<Slot>) {
        // An unused slot is given back when it is dropped, so it is used up only here, where the call runs. The
        // same holds for the call's count.
        slot.into_iter().for_each(Slot::use_up);
        job.counted.start();
        self.out.push_back(start);
        self.running.add(place, job);
        let running = self.schedule.running() as u64;
        self.metrics.peak_parallel = self.metrics.peak_parallel.max(running);
    }

    /// Runs the delayed call once its time has come.
    fn poll_delayed(&mut self, cx: &mut Context<'_>) {
        if let Some(delayed) = &mut self.delayed
            && delayed.pause.as_mut().poll(cx).is_ready()
            && let Some(delayed) = self.delayed.take()
        {
            let Delayed { place, start, job, slot, .. } = *delayed;
            self.run(place, start, job, Some(slot));
        }
    }

    /// Looks up a call's tool and prepares its input, unless that was done before the batch.
    fn prepare(&mut self, place: usize) -> Result<Arc<dyn Tool>, Box<Ended>> {
        let tools = self.executor.tools();
        let block = &self.calls[place].block;
        let tool = tools.get(&block.name).ok_or_else(|| {
            // Calling `name` runs foreign code, which may panic.
            let names = tools.iter().map(|tool| contain(|| tool.name()));
            Ended::unknown_tool(names.flatten())
        })?;
        // Before `prepare`, which is the tool's code, because this call does not run.
        if let Some(reason) = self.unmet(&block.id) {
            return Err(Ended::not_run(reason));
        }
        let tool = Arc::clone(tool);
        match self.batch.calls.get(&block.id).and_then(|call| call.prepared.as_ref()) {
            Some(Ok(())) => {}
            Some(Err(error)) => return Err(Ended::invalid_input(error)),
            None => {
                let input = block.input.clone();
                // Tools and policies are foreign code: their panics end the call, not the batch.
                let input = contain(|| tool.prepare(input))
                    .map_err(|panic| Ended::panicked(&panic))?
                    .map_err(|error| Ended::invalid_input(&error))?;
                self.calls[place].block.input = input;
            }
        }
        Ok(tool)
    }

    /// Creates the job for a prepared call, or the result of a call that is not run.
    fn admit(&mut self, place: usize, tool: Arc<dyn Tool>) -> Result<Job, Box<Ended>> {
        let options = self.executor.options();
        let call = &mut self.calls[place];
        let block = &call.block;
        if let Some(skip) = &options.skip {
            let reason = contain(|| skip.reason(block, &self.ended))
                .map_err(|_| Ended::not_run("the skip condition panicked"))?;
            if let Some(reason) = reason {
                return Err(Ended::not_run(reason));
            }
        }
        if let Some(cache) = &options.cache
            && contain(|| tool.is_cacheable()).map_err(|panic| Ended::panicked(&panic))?
        {
            let key = Key::new(&block.name, &block.input);
            if let Some(result) = cache.get(&key) {
                return Err(Ended::cached(result));
            }
            call.key = Some(key);
        }
        let timeout = contain(|| options.timeouts.of(&block.name, &tool))
            .map_err(|panic| Ended::panicked(&panic))?;
        // After the skip policy and the cache, because calls that these answer do not count.
        let counted = options.caps.admit(&self.batch.run).map_err(Ended::not_run)?;
        let sender = || Sender { queue: Arc::clone(&self.queue), call: place };
        let mut cx = ToolContext::new(&*block.id, &*block.name)
            .with_cancel(self.cancel.child())
            .with_state(self.batch.state.clone());
        if self.batch.emits {
            cx = cx.with_emitter(Arc::new(sender()));
        }
        if let Some(key) = self.batch.calls.get(&block.id).and_then(|call| call.key.clone()) {
            cx = cx.with_idempotency_key(key);
        }
        Ok(Job {
            tool,
            input: block.input.clone(),
            cx,
            timeout,
            deadline: options.caps.deadline(&self.batch.run),
            retry: options.retry.clone(),
            sender: sender(),
            record: Arc::default(),
            counted,
        })
    }

    /// Returns the reason why a dependency keeps a call from running, if one does.
    fn unmet(&self, id: &str) -> Option<String> {
        self.batch.dependencies.of(id).iter().find_map(|dependency| {
            let on = &*dependency.on;
            let mut others = self.calls.iter().filter(|call| call.block.id == on).peekable();
            if others.peek().is_none() {
                return Some(format!("it depends on call {on}, which is not in this batch"));
            }
            // The schedule begins a call only after the calls that it depends on, so they have results.
            let has_failed =
                |call: &Call| call.result.as_ref().is_some_and(|result| result.is_error());
            (dependency.needs_success && others.any(has_failed))
                .then(|| format!("it depends on call {on}, which did not succeed"))
        })
    }

    fn start_event(&self, place: usize) -> ToolEvent {
        let ToolUseBlock { id, name, input, .. } = &self.calls[place].block;
        ToolEvent::CallStart(CallStart {
            call_id: id.clone(),
            tool_name: name.clone(),
            input: input.clone(),
        })
    }

    /// Ends a call that has started.
    fn complete(&mut self, place: usize, ended: Ended) {
        let (events, dropped_events) = self.queue.close(place);
        self.deliver(events);
        let options = self.executor.options();
        let call = &mut self.calls[place];
        let mut full_result = None;
        // The reader of full results fits its pages to the limit itself.
        let results = self.batch.state.get::<ResultStore>();
        let is_page = results.is_some() && call.block.name == READ_RESULT;
        let keep = |full: &Value| Some(reading_hint(&results?.keep(&call.block.id, full)?));
        // Caches and `full_result` get the result before truncation; the model and the events get it after.
        let result = match ended.result {
            Ok(full) if is_page => full,
            Ok(full) => {
                if let (Some(cache), Some(key)) = (&options.cache, call.key.take()) {
                    cache.insert(key, &full, &ended.images);
                }
                match options.truncation.parts(&full) {
                    Some(parts) => {
                        let cut = parts.with_hint(keep(&full).as_deref());
                        full_result = Some(Arc::new(full));
                        Value::String(cut)
                    }
                    None => full,
                }
            }
            Err(mut body) => {
                body.tool.clone_from(&call.block.name);
                let whole = body.to_value();
                let texts = iter::once(&mut body.error).chain(&mut body.reason);
                let cut = texts.filter_map(|text| {
                    let parts = options.truncation.parts_of_text(text)?;
                    Some((text, parts))
                });
                let mut cut: Vec<_> = cut.collect();
                if let Some((text, parts)) = cut.pop() {
                    *text = parts.with_hint(keep(&whole).as_deref());
                    full_result = Some(Arc::new(whole));
                }
                for (text, parts) in cut {
                    *text = parts.with_hint(None);
                }
                body.to_value()
            }
        };
        let result = Arc::new(ExecutionResult {
            call_id: call.block.id.clone(),
            tool_name: call.block.name.clone(),
            input: call.block.input.clone(),
            outcome: ended.outcome,
            result,
            images: ended.images,
            truncated: full_result.is_some(),
            full_result,
            duration: micros::whole(ended.duration),
            attempts: ended.attempts,
            cached: ended.cached,
            dropped_events,
        });
        call.result = Some(Arc::clone(&result));
        self.metrics.count(&result);
        self.ended.push(Arc::clone(&result));
        // Only now may calls that depend on this one begin: `unmet` and skip policies look at its result.
        self.schedule.end(place);
        self.out.push_back(ToolEvent::CallComplete(result));
    }

    fn deliver(&mut self, events: Vec<(usize, QueuedEvent)>) {
        for (place, event) in events {
            let ToolUseBlock { id, name, .. } = &self.calls[place].block;
            self.out.push_back(match event {
                QueuedEvent::Emission(emission) => {
                    ToolEvent::emitted(id.clone(), name.clone(), emission)
                }
                QueuedEvent::Retry(retry) => ToolEvent::Retry(retry),
            });
        }
    }

    /// Ends all remaining calls, in call order.
    fn cancel_rest(&mut self) {
        if let Some(delayed) = self.delayed.take() {
            // Its start has not been shown yet, and must come before its completion in the loop below.
            self.out.push_back(delayed.start);
        }
        for place in 0..self.calls.len() {
            if self.schedule.has_ended(place) {
                continue;
            }
            if !self.schedule.has_begun(place) {
                self.schedule.begin(place);
                let start = self.start_event(place);
                self.out.push_back(start);
            }
            // Calls that have not begun have no task and end with no attempt.
            let ended = self.running.cancel(place);
            self.complete(place, ended);
        }
    }

    fn tools_end(&self) -> ToolsEnd {
        let results = self.calls.iter().filter_map(|call| call.result.as_ref());
        ToolsEnd {
            tool_messages: results.clone().map(|result| result.to_message()).collect(),
            execution_results: results.cloned().collect(),
        }
    }

    fn finish(&mut self) {
        self.is_over = true;
        if self.executor.options().metrics {
            let elapsed = self.started.map_or_else(Default::default, |started| started.elapsed());
            self.metrics.duration = micros::whole(elapsed);
            self.out.push_back(ToolEvent::Metrics(Box::new(self.metrics.clone())));
        }
        self.out.push_back(ToolEvent::End(self.tools_end()));
    }
}

impl Stream for BatchStream {
    type Item = ToolEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ToolEvent>> {
        let this = &mut *self;
        if this.started.is_none() {
            this.started = Some(Instant::now());
            this.batch.run.started();
        }
        // Register the waker before checking the queue, so that no wakeup is lost.
        this.queue.listen(cx.waker());
        loop {
            // Known events first; then the end of the batch, a cancel, calls that may begin, and calls that
            // were woken.
            if let Some(event) = this.out.pop_front() {
                return Poll::Ready(Some(event));
            }
            if this.is_over {
                return Poll::Ready(None);
            }
            if this.schedule.is_over() {
                this.finish();
                continue;
            }
            // Checked before calls begin or are polled: a canceled batch begins none. Polling also registers
            // the waker. Once ready, it is not polled again, because all calls have ended then.
            if Pin::new(&mut this.cancelled).poll(cx).is_ready() {
                this.cancel_rest();
                continue;
            }
            this.poll_delayed(cx);
            while this.delayed.is_none()
                && let Some(place) = this.schedule.begin_next()
            {
                this.begin(place);
                // A call that was just delayed registers the waker of its timer here.
                this.poll_delayed(cx);
            }
            // Tools run only after the reader has taken all that is known: its pace limits theirs.
            if this.out.is_empty() {
                let ended = this.running.poll();
                // Taken after polling, so that emissions of these polls are delivered in the same pass and
                // before the completion of their call.
                let events = this.queue.take_events();
                this.deliver(events);
                match ended {
                    Poll::Ready((place, ended)) => this.complete(place, ended),
                    Poll::Pending if this.out.is_empty() => return Poll::Pending,
                    Poll::Pending => {}
                }
            }
        }
    }
}

impl Drop for BatchStream {
    fn drop(&mut self) {
        if !self.is_over {
            // Signal before the fields are dropped.
            self.cancel.cancel();
        }
    }
}

impl fmt::Debug for BatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchStream")
            .field("calls", &self.calls.len())
            .field("ended", &self.ended.len())
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}
