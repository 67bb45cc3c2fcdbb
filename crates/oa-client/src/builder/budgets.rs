//! Options that limit a turn: prompts, calls, tokens, time and cost.

use oa_types::{Cost, Price, Timeout};

use super::AgentOptionsBuilder;

impl AgentOptionsBuilder {
    /// Limits the prompts of a client; the next one is an error of kind `MaxTurns`. There is no limit by default. Does
    /// not apply to [`query`](crate::query), which sends one prompt.
    pub fn max_turns(mut self, turns: impl Into<Option<u32>>) -> Self {
        self.config.turn.max_turns = self.at_least_one("max_turns", turns);
        self
    }

    /// Limits the calls run for one prompt in auto mode; no limit by default. If the calls of an answer would exceed
    /// the limit, none of them runs, and the turn ends with
    /// [`FinishReason::MaxToolCalls`](oa_types::FinishReason::MaxToolCalls).
    pub fn max_tool_calls(mut self, calls: impl Into<Option<u32>>) -> Self {
        self.config.turn.max_calls = self.at_least_one("max_tool_calls", calls);
        let is_on = self.config.turn.max_calls.is_some();
        self.auto_only_if(is_on, "max_tool_calls")
    }

    /// Limits how many tool calls start in any 60 seconds in auto mode. A call beyond the limit is not denied: it
    /// waits, and calls start in call order as soon as the limit allows. An interrupt or
    /// [`max_run_time`](Self::max_run_time) ends the wait. Clients with the same options share the limit. Calls that
    /// do not run, or are answered from the cache, do not count. To share a limit among agents with different options,
    /// use [`CallRate`](oa_executor::CallRate).
    pub fn max_tool_calls_per_minute(mut self, calls: impl Into<Option<u32>>) -> Self {
        self.calls_per_minute = self.at_least_one("max_tool_calls_per_minute", calls);
        let is_on = self.calls_per_minute.is_some();
        self.auto_only_if(is_on, "max_tool_calls_per_minute")
    }

    /// Sets the price of a million input tokens and of a million output tokens, in any currency. The usage of each
    /// answer with token counts then has a [`cost`](oa_types::Usage::cost), even for steps that use another model.
    pub fn price(mut self, input: f64, output: f64) -> Self {
        match Price::per_million(input, output) {
            Ok(price) => self.config.price = Some(price),
            Err(error) => self.refuse(error.to_string()),
        }
        self
    }

    /// Limits the cost of one prompt in auto mode, in the currency of the [`price`](Self::price). Setting it without a
    /// price and without sub-agents is an error at [`build`](Self::build). Once the amount is used up, no more calls
    /// run, and the turn ends with [`FinishReason::MaxRunCost`](oa_types::FinishReason::MaxRunCost). Answers without
    /// token counts are not limited.
    pub fn max_run_cost(mut self, amount: f64) -> Self {
        match Cost::new(amount) {
            Ok(Cost::ZERO) => self.refuse("max_run_cost must be above 0".to_owned()),
            Ok(cost) => self.config.turn.max_cost = Some(cost),
            Err(error) => self.refuse(format!("max_run_cost: {error}")),
        }
        self.auto_only("max_run_cost")
    }

    /// Limits the tokens of one prompt in auto mode, as the server counts them; no limit by default. Once they are used
    /// up, no more calls run, and the turn ends with
    /// [`FinishReason::MaxRunTokens`](oa_types::FinishReason::MaxRunTokens). Without token counts, there is no limit.
    pub fn max_run_tokens(mut self, tokens: impl Into<Option<u64>>) -> Self {
        self.config.turn.max_tokens = self.at_least_one("max_run_tokens", tokens);
        let is_on = self.config.turn.max_tokens.is_some();
        self.auto_only_if(is_on, "max_run_tokens")
    }

    /// Limits the time from a prompt to the end of its turn, including tools; no limit by default. The turn then ends
    /// as after an interrupt, with [`FinishReason::MaxRunTime`](oa_types::FinishReason::MaxRunTime).
    pub fn max_run_time(mut self, time: impl Into<Timeout>) -> Self {
        self.config.max_run_time = self.timeout_of("max_run_time", time);
        self
    }

    /// Sets the number of consecutive identical calls with identical results after which the model is warned. One more
    /// ends the turn. The default is 3; `None` disables the guard. Applies to auto mode.
    pub fn repeat_guard(mut self, times: impl Into<Option<u32>>) -> Self {
        self.config.turn.repeat_guard = self.at_least_one("repeat_guard", times);
        let is_on = self.config.turn.repeat_guard.is_some();
        self.auto_only_if(is_on, "repeat_guard")
    }

    /// Sets whether one last request without tools is sent after a limit is reached in auto mode, unless the tokens or
    /// the cost are used up. For structured output, that request offers only the output tool. Off by default.
    pub fn last_answer_without_tools(mut self, last_answer: bool) -> Self {
        self.config.turn.last_answer_without_tools = last_answer;
        self.auto_only_if(last_answer, "last_answer_without_tools")
    }
}
