//! Options that end a turn: limits of prompts, calls, tokens, time and money.

use oa_chat::Timeout;
use oa_types::{Cost, Price};

use super::AgentOptionsBuilder;

impl AgentOptionsBuilder {
    /// Bounds how many prompts a client takes; the next is an error of kind `MaxTurns`. Not for
    /// [`query`](crate::query), which takes one.
    pub fn max_turns(mut self, turns: u32) -> Self {
        if turns == 0 {
            self.refuse("max_turns is 0".to_owned());
        }
        self.config.turn.max_turns = Some(turns);
        self
    }

    /// Bounds how many calls are run for one prompt in auto mode.
    pub fn max_tool_calls(mut self, calls: u32) -> Self {
        if calls == 0 {
            self.refuse("max_tool_calls is 0".to_owned());
        }
        self.config.turn.max_calls = Some(calls);
        self.auto_only("max_tool_calls")
    }

    /// Limits how many tool calls begin in any 60 seconds in auto mode. A call beyond the limit is not denied: it waits,
    /// and begins, in call order, as soon as the limit allows. An interrupt or [`max_run_time`](Self::max_run_time)
    /// ends the wait. Clients made of the same options share the limit; calls that are not run, or answered from the
    /// cache, do not count. Agents with other options share one by [`CallRate`](oa_executor::CallRate).
    pub fn max_tool_calls_per_minute(mut self, calls: u32) -> Self {
        if calls == 0 {
            self.refuse("max_tool_calls_per_minute is 0".to_owned());
        }
        self.calls_per_minute = Some(calls);
        self.auto_only("max_tool_calls_per_minute")
    }

    /// Sets the price of a million tokens of requests and of answers, in any currency. Each answer whose tokens the
    /// server counts then has a [`cost`](oa_types::Usage::cost) in its usage.
    pub fn price(mut self, input: f64, output: f64) -> Self {
        match Price::per_million(input, output) {
            Ok(price) => self.config.price = Some(price),
            Err(error) => self.refuse(error.to_string()),
        }
        self
    }

    /// Limits what one prompt may cost in auto mode, in the currency of the [`price`](Self::price), without which it is
    /// an error at [`build`](Self::build). Once the money is used up, calls are no longer run, and the turn ends with
    /// [`FinishReason::MaxRunCost`](oa_types::FinishReason::MaxRunCost). Answers whose tokens the server does not
    /// count are not limited.
    pub fn max_run_cost(mut self, amount: f64) -> Self {
        match Cost::new(amount) {
            Ok(Cost::ZERO) => self.refuse("max_run_cost is 0".to_owned()),
            Ok(cost) => self.config.turn.max_cost = Some(cost),
            Err(error) => self.refuse(format!("max_run_cost: {error}")),
        }
        self.auto_only("max_run_cost")
    }

    /// Bounds what one prompt may cost in auto mode, in tokens as the server counts them: once they
    /// are used up calls are no longer run, and the turn ends.
    pub fn max_run_tokens(mut self, tokens: u64) -> Self {
        if tokens == 0 {
            self.refuse("max_run_tokens is 0".to_owned());
        }
        self.config.turn.max_tokens = Some(tokens);
        self.auto_only("max_run_tokens")
    }

    /// Bounds the time from a prompt to the end of its turn, tools included. The turn ends as by an
    /// interrupt, with a reason of its own.
    pub fn max_run_time(mut self, time: impl Into<Timeout>) -> Self {
        self.config.max_run_time = self.timeout_of("max_run_time", time);
        self
    }

    /// After this many identical calls in a row with identical results the model is told, and after one more
    /// the turn ends. 3 by default; `None` switches the guard off. For auto mode.
    pub fn repeat_guard(mut self, times: impl Into<Option<u32>>) -> Self {
        self.config.turn.repeat_guard = times.into();
        if self.config.turn.repeat_guard == Some(0) {
            self.refuse("repeat_guard is 0".to_owned());
        }
        self.auto_only("repeat_guard")
    }

    /// After a limit is reached in auto mode, sends one last request in which no tool is offered.
    pub fn last_answer_without_tools(mut self, last_answer: bool) -> Self {
        self.config.turn.last_answer_without_tools = last_answer;
        self.auto_only("last_answer_without_tools")
    }
}
