//! The server's notifications.

use std::sync::atomic::Ordering;

use oa_mcp_data::{read_integer, read_level, read_log, read_progress};
use oa_tools::Cancel;
use serde_json::Value;

use super::{Call, Link};
use crate::listener::guarded;

impl Link {
    pub(super) fn notice(&self, method: &str, params: &Value, within: Option<i64>) {
        match method {
            "notifications/progress" => self.progress(params, within),
            "notifications/message" => {
                if let Some(on_log) = &self.on_log {
                    let text = read_log(params, &self.secrets.get());
                    self.check(on_log.call(read_level(params["level"].as_str()), &text));
                }
            }
            "notifications/cancelled" => {
                // A question that the server canceled gets no answer.
                let taken_back = params.get("requestId").and_then(|id| self.forget(id));
                taken_back.iter().for_each(Cancel::cancel);
            }
            "notifications/elicitation/complete" => {
                let page = params["elicitationId"].as_str().unwrap_or_default();
                self.visits.send_modify(|visits| visits.report(page));
            }
            // Changes before the subscription were not announced, so its acknowledgment counts as a change, too.
            "notifications/subscriptions/acknowledged" | "notifications/tools/list_changed" => {
                self.changes.send_modify(|count| *count += 1);
            }
            _ => {}
        }
    }

    fn progress(&self, params: &Value, within: Option<i64>) {
        let token = params.get("progressToken").unwrap_or(&Value::Null);
        let state = self.lock();
        // The tokens of `rmcp` are numbers, like the ids of requests.
        let number = read_integer(token);
        let is_meant = |call: &&Call| match &call.token {
            Some(known) => known == token || number.is_some() && number == read_integer(known),
            None => false,
        };
        let call = state.calls.values().find(is_meant);
        // Some servers make up a token: on the stream of a call, they mean that call.
        let Some(call) = call.or_else(|| state.calls.get(&within?)) else {
            self.ignored.progress.fetch_add(1, Ordering::Relaxed);
            return;
        };
        call.beat.notify_one();
        let cx = call.cx.clone();
        // The emitter is foreign code, which may use this connection, so it runs without the lock. Only a call
        // that is dropped at this moment may still get progress: its answer is read after this returns.
        drop(state);
        if let Some(cx) = cx
            && let Some(progress) = read_progress(params, &self.secrets.get())
        {
            self.check(guarded("for progress", || cx.emit_progress(progress)));
        }
    }
}
