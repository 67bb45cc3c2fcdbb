use std::fmt;
use std::time::Duration;

use oa_client::{AgentOptions, Error, Result};
use oa_types::Backoff;

#[cfg(feature = "log")]
use crate::log::BatchLog;
use crate::scheduler::Rules;

/// The settings of a batch; the second argument of [`run_batch`](crate::run_batch).
#[must_use = "options do nothing by themselves"]
pub struct BatchOptions {
    pub(crate) agent: AgentOptions,
    pub(crate) rules: Rules,
    #[cfg(feature = "log")]
    pub(crate) log: Option<BatchLog>,
}

impl BatchOptions {
    /// Creates options for an agent, with the defaults of the [crate's page](crate#limits). Each prompt is a separate
    /// conversation with the agent, which runs tools if `auto_execute_tools` is set. Otherwise, a reply may end with
    /// calls.
    pub fn new(agent: AgentOptions) -> Self {
        Self {
            agent,
            rules: Rules {
                concurrency: 8,
                window: 64,
                in_order: false,
                retry_budget: 100,
                max_retries: 3,
                backoff: Backoff::new(Duration::from_millis(500), Duration::from_secs(30)),
            },
            #[cfg(feature = "log")]
            log: None,
        }
    }

    /// Sets how many conversations are in progress at once, at least 1. The default is 8.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.rules.concurrency = most;
        self
    }

    /// Sets how many prompts are held beyond those in progress: prompts that wait for a retry or for the log, and, with
    /// [`in_input_order`](Self::in_input_order), replies that wait for an earlier one. The default is 64. While the
    /// window is full, no further prompts are taken.
    pub fn window(mut self, prompts: usize) -> Self {
        self.rules.window = prompts;
        self
    }

    /// Sets the order of the replies: that of the prompts (`true`) or of completion (`false`, the default).
    pub fn in_input_order(mut self, in_order: bool) -> Self {
        self.rules.in_order = in_order;
        self
    }

    /// Sets the maximum number of retries of all prompts together. The default is 100; 0 means none.
    pub fn retry_budget(mut self, most: u32) -> Self {
        self.rules.retry_budget = most;
        self
    }

    /// Sets the maximum number of retries of one prompt. The default is 3.
    pub fn max_retries(mut self, most: u32) -> Self {
        self.rules.max_retries = most;
        self
    }

    /// Sets the delays before a prompt is retried, and the pauses while every prompt fails. The default is half a
    /// second, doubled up to 30 seconds.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.rules.backoff = backoff;
        self
    }

    /// Sets the log. Replies that it contains are yielded from it, and new replies are added to it.
    #[cfg(feature = "log")]
    pub fn log(mut self, log: BatchLog) -> Self {
        self.log = Some(log);
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.rules.concurrency == 0 {
            return Err(Error::config("the concurrency of a batch must be at least 1"));
        }
        self.agent.check()
    }
}

impl fmt::Debug for BatchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options = f.debug_struct("BatchOptions");
        options.field("agent", &self.agent).field("rules", &self.rules);
        #[cfg(feature = "log")]
        options.field("log", &self.log);
        options.finish()
    }
}
